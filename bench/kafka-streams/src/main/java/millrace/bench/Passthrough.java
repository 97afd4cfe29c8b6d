package millrace.bench;

import org.apache.kafka.streams.StreamsBuilder;

/** Every record as it came. */
final class Passthrough extends Job {
    @Override
    void build(StreamsBuilder builder) {
        write(clicks(builder));
    }
}
