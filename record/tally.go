package record

// Outcome is what became of records: every record that is read ends in exactly one of Applied, Late, Filtered, Dropped,
// Passed or DeadLettered at the last step that saw it, so that the counts add up.
type Outcome uint8

// The outcomes. The comment says what Where and Detail of a Tally hold.
const (
	Consumed     Outcome = iota // Where: source, Detail: topic
	In                          // Where: step
	Out                         // Where: step
	Late                        // Where: step; one a record, however many windows refused it
	LateWindow                  // Where: step; one a window that refused a record
	Filtered                    // Where: step; `where` or `having` was false
	Dropped                     // Where: step or source, Detail: reason (null_key, null_value, invalid_timestamp, …)
	DeadLettered                // Where: step or source, Detail: deserialization, processing, production, timestamp
	Produced                    // Where: sink, Detail: topic
	WindowClosed                // Where: step
	Expired                     // Where: step; rows that their ttl ended
	ExpressionError
	Lateness // Where: source, Spread: how many ms records were behind the newest of their partition
	Latency  // Where: sink, Spread: ms between a result's event time and the wall clock when it was made
)

// Tally is a count of one outcome at one place within an epoch. It reaches the metrics only when the epoch has
// committed, so that an aborted attempt is never counted.
type Tally struct {
	What          Outcome
	Where, Detail string
	N, Bytes      int64
	Spread        *Spread // of values; nil where only their number counts
}
