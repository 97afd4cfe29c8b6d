package millrace.bench;

import static java.nio.charset.StandardCharsets.UTF_8;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import java.io.IOException;
import java.io.UncheckedIOException;

/** Reads with Jackson's streaming parser: real JSON, without building a tree. */
final class JacksonReader implements ClickReader {
    private static final JsonFactory FACTORY = new JsonFactory();

    @Override
    public long time(byte[] json) {
        return number(json, "ts");
    }

    @Override
    public long cents(byte[] json) {
        return number(json, "cents");
    }

    @Override
    public Click click(byte[] json) {
        try (JsonParser parser = FACTORY.createParser(json)) {
            byte[] user = null;
            byte[] page = null;
            byte[] country = null;
            long cents = 0;
            parser.nextToken();
            while (parser.nextToken() == JsonToken.FIELD_NAME) {
                String name = parser.currentName();
                parser.nextToken();
                switch (name) {
                    case "type" -> {
                        if (!parser.getText().equals("click")) {
                            return null;
                        }
                    }
                    case "user_id" -> user = parser.getText().getBytes(UTF_8);
                    case "page" -> page = parser.getText().getBytes(UTF_8);
                    case "country" -> country = parser.getText().getBytes(UTF_8);
                    case "cents" -> cents = parser.getLongValue();
                    default -> parser.skipChildren();
                }
            }
            return new Click(user, page, country, cents);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static long number(byte[] json, String wanted) {
        try (JsonParser parser = FACTORY.createParser(json)) {
            parser.nextToken();
            while (parser.nextToken() == JsonToken.FIELD_NAME) {
                boolean found = parser.currentName().equals(wanted);
                parser.nextToken();
                if (found) {
                    return parser.getLongValue();
                }
                parser.skipChildren();
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        throw new IllegalArgumentException("no field " + wanted + " in " + new String(json, UTF_8));
    }
}
