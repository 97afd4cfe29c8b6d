package millrace.bench;

import java.nio.ByteBuffer;
import java.time.Duration;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.kstream.Windowed;

/** Records and cents per user in windows of a minute that begin every ten seconds. */
final class HoppingTotals extends Job {
    private static final Duration SIZE = Duration.ofMinutes(1);
    private static final Duration ADVANCE = Duration.ofSeconds(10);
    private static final Duration GRACE = Duration.ofSeconds(30);

    record Totals(long count, long cents) {
        Totals add(long more) {
            return new Totals(count + 1, cents + more);
        }
    }

    @Override
    void build(StreamsBuilder builder) {
        // The cents are taken out once a record, before it goes to its six windows.
        write(clicks(builder)
                .mapValues(reader()::cents)
                .groupByKey(Grouped.with(Serdes.Bytes(), Serdes.Long()))
                .windowedBy(TimeWindows.ofSizeAndGrace(SIZE, GRACE).advanceBy(ADVANCE))
                .aggregate(
                        () -> new Totals(0, 0),
                        (user, cents, totals) -> totals.add(cents),
                        Materialized.<Bytes, Totals>as(windows(SIZE, GRACE)).withKeySerde(Serdes.Bytes()).withValueSerde(totals()))
                .toStream()
                .map((key, totals) -> KeyValue.pair(key.key(), row(key, totals))));
    }

    private static byte[] row(Windowed<Bytes> key, Totals totals) {
        return Row.of(key).text(",\"count\":").number(totals.count()).text(",\"cents\":").number(totals.cents()).text("}").toArray();
    }

    private static Serde<Totals> totals() {
        return Serdes.serdeFrom(
                (topic, t) -> t == null ? null : ByteBuffer.allocate(16).putLong(t.count()).putLong(t.cents()).array(),
                (topic, bytes) -> {
                    if (bytes == null) {
                        return null;
                    }
                    ByteBuffer b = ByteBuffer.wrap(bytes);
                    return new Totals(b.getLong(), b.getLong());
                });
    }
}
