package millrace.bench;

import org.apache.kafka.streams.StreamsBuilder;

/** Every record as it came; its time is the record's own, as in the YAML job. */
final class Passthrough extends Job {
    @Override
    void build(StreamsBuilder builder) {
        write(builder.stream(in));
    }
}
