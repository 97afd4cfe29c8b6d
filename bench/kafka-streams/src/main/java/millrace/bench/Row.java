package millrace.bench;

import java.util.Arrays;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.kstream.Windowed;

/** Writes a JSON row straight into bytes. The texts of this benchmark's results need no escapes. */
final class Row {
    private byte[] buffer;
    private int size;

    Row(int capacity) {
        buffer = new byte[capacity];
    }

    /** Begins a result row with its user and window. */
    static Row of(Windowed<Bytes> key) {
        return new Row(128)
                .text("{\"user_id\":\"").bytes(key.key().get())
                .text("\",\"window_start\":").number(key.window().start())
                .text(",\"window_end\":").number(key.window().end());
    }

    @SuppressWarnings("deprecation") // getBytes(int, int, byte[], int) copies ASCII without an encoder or an object
    Row text(String ascii) {
        reserve(ascii.length());
        ascii.getBytes(0, ascii.length(), buffer, size);
        size += ascii.length();
        return this;
    }

    Row bytes(byte[] utf8) {
        reserve(utf8.length);
        System.arraycopy(utf8, 0, buffer, size, utf8.length);
        size += utf8.length;
        return this;
    }

    /** Appends a number that is not negative. */
    Row number(long value) {
        int digits = 1;
        for (long rest = value; rest >= 10; rest /= 10) {
            digits++;
        }
        reserve(digits);
        for (int i = size + digits - 1; i >= size; i--) {
            buffer[i] = (byte) ('0' + value % 10);
            value /= 10;
        }
        size += digits;
        return this;
    }

    byte[] toArray() {
        return Arrays.copyOf(buffer, size);
    }

    private void reserve(int more) {
        if (size + more > buffer.length) {
            buffer = Arrays.copyOf(buffer, Math.max(2 * buffer.length, size + more));
        }
    }
}
