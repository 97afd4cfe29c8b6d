package millrace.bench;

import org.apache.kafka.streams.StreamsBuilder;

/** One of six types is kept; fields are projected, renamed, and one is added. */
final class FilterClicks extends Job {
    @Override
    void build(StreamsBuilder builder) {
        // One pass over the JSON decides and maps: null means that the record is no click.
        write(clicks(builder).mapValues(this::reshape).filter((user, row) -> row != null));
    }

    private byte[] reshape(byte[] json) {
        Click click = reader().click(json);
        if (click == null) {
            return null;
        }
        return new Row(128)
                .text("{\"user_id\":\"").bytes(click.user())
                .text("\",\"site\":\"").bytes(click.page())
                .text("\",\"country\":\"").bytes(click.country())
                .text("\",\"cents\":").number(click.cents())
                .text(click.cents() > 5000 ? ",\"dear\":true}" : ",\"dear\":false}")
                .toArray();
    }
}
