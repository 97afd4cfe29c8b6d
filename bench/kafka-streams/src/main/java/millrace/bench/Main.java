package millrace.bench;

import java.time.Duration;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler;

/**
 * Runs one job of the benchmark until SIGTERM.
 *
 * <p>Arguments are {@code name=value}: {@code job}, {@code in}, {@code out}, {@code json} (scan or jackson) and
 * {@code store} (rocksdb or memory) are read here, all others are settings of Kafka Streams.
 */
public final class Main {
    private Main() {}

    public static void main(String[] args) throws InterruptedException {
        Properties settings = new Properties();
        for (String arg : args) {
            int equals = arg.indexOf('=');
            if (equals < 1) {
                throw new IllegalArgumentException("not name=value: " + arg);
            }
            settings.setProperty(arg.substring(0, equals), arg.substring(equals + 1));
        }
        Job job = Job.take(settings);
        settings.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.BytesSerde.class);
        settings.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.ByteArraySerde.class);
        StreamsBuilder builder = new StreamsBuilder();
        job.build(builder);
        run(new KafkaStreams(builder.build(settings), settings));
    }

    private static void run(KafkaStreams streams) throws InterruptedException {
        CountDownLatch stopped = new CountDownLatch(1);
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            streams.close(Duration.ofSeconds(30));
            stopped.countDown();
        }));
        streams.setUncaughtExceptionHandler(cause -> {
            cause.printStackTrace();
            return StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse.SHUTDOWN_CLIENT;
        });
        streams.setStateListener((now, before) -> System.err.println("state " + now));
        streams.start();
        stopped.await();
    }
}
