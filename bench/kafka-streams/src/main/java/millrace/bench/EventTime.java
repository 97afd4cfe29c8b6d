package millrace.bench;

import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.streams.processor.TimestampExtractor;

/** The event time is a field of the value, as in the YAML jobs. */
record EventTime(ClickReader reader) implements TimestampExtractor {
    @Override
    public long extract(ConsumerRecord<Object, Object> record, long partitionTime) {
        return reader.time((byte[]) record.value());
    }
}
