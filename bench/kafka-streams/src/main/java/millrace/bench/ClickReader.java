package millrace.bench;

/** Reads fields out of a click's JSON. Used by one stream thread or by two, so implementations keep no state. */
interface ClickReader {
    long time(byte[] json);

    long cents(byte[] json);

    /** Returns null for a record of another type. */
    Click click(byte[] json);
}
