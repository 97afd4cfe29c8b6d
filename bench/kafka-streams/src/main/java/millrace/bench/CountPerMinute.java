package millrace.bench;

import java.time.Duration;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.kstream.Windowed;

/** Records per user and minute; a row for each change, merged by the cache between two commits. */
final class CountPerMinute extends Job {
    private static final Duration SIZE = Duration.ofMinutes(1);
    private static final Duration GRACE = Duration.ofSeconds(30);

    @Override
    void build(StreamsBuilder builder) {
        write(clicks(builder)
                .groupByKey(Grouped.with(Serdes.Bytes(), Serdes.ByteArray()))
                .windowedBy(TimeWindows.ofSizeAndGrace(SIZE, GRACE))
                .count(Materialized.<Bytes, Long>as(windows(SIZE, GRACE)).withKeySerde(Serdes.Bytes()).withValueSerde(Serdes.Long()))
                .toStream()
                .map((key, count) -> KeyValue.pair(key.key(), row(key, count))));
    }

    private static byte[] row(Windowed<Bytes> key, long count) {
        return Row.of(key).text(",\"count\":").number(count).text("}").toArray();
    }
}
