package millrace.bench;

import java.time.Duration;
import java.util.Properties;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.state.Stores;
import org.apache.kafka.streams.state.WindowBytesStoreSupplier;

/** What the jobs have in common: their topics, how they read JSON, where their windows are kept. */
abstract class Job {
    String in;
    private String out;
    private boolean inMemory;
    private ClickReader reader;

    /** Takes the job's own arguments out of the settings, so that only those of Kafka Streams stay in them. */
    static Job take(Properties settings) {
        String name = required(settings, "job");
        Job job = switch (name) {
            case "passthrough" -> new Passthrough();
            case "filter" -> new FilterClicks();
            case "count" -> new CountPerMinute();
            case "hopping" -> new HoppingTotals();
            default -> throw new IllegalArgumentException("unknown job " + name);
        };
        job.in = required(settings, "in");
        job.out = required(settings, "out");
        job.inMemory = choice(settings, "store", "memory", "rocksdb");
        job.reader = choice(settings, "json", "jackson", "scan") ? new JacksonReader() : new ScanningReader();
        return job;
    }

    abstract void build(StreamsBuilder builder);

    ClickReader reader() {
        return reader;
    }

    KStream<Bytes, byte[]> clicks(StreamsBuilder builder) {
        return builder.stream(in, Consumed.<Bytes, byte[]>with(new EventTime(reader)));
    }

    void write(KStream<Bytes, byte[]> rows) {
        rows.to(out);
    }

    /** A store for windows that live as long as late records may still change them. */
    WindowBytesStoreSupplier windows(Duration size, Duration grace) {
        Duration retention = size.plus(grace);
        return inMemory
                ? Stores.inMemoryWindowStore("windows", retention, size, false)
                : Stores.persistentTimestampedWindowStore("windows", retention, size, false);
    }

    private static String required(Properties settings, String name) {
        Object value = settings.remove(name);
        if (value == null) {
            throw new IllegalArgumentException("the argument " + name + "=... is missing");
        }
        return (String) value;
    }

    private static boolean choice(Properties settings, String name, String yes, String no) {
        String value = required(settings, name);
        if (!value.equals(yes) && !value.equals(no)) {
            throw new IllegalArgumentException(name + "=" + value + ": want " + yes + " or " + no);
        }
        return value.equals(yes);
    }
}
