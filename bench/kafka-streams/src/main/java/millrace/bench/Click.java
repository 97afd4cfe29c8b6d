package millrace.bench;

/** The fields of a click that the filtering job needs; texts are UTF-8 as they stand in the JSON. */
record Click(byte[] user, byte[] page, byte[] country, long cents) {}
