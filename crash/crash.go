// Package crash names the places at which a test may end the process. In production nothing listens, and a place costs
// the load of one pointer; none of them is on the way of a single record.
package crash

import "sync/atomic"

var listener atomic.Pointer[func(place string)]

// At is passed at a place.
func At(place string) {
	if l := listener.Load(); l != nil {
		(*l)(place)
	}
}

// Listen makes f hear of every place that is passed, on the goroutine that passes it. nil ends it.
func Listen(f func(place string)) {
	if f == nil {
		listener.Store(nil)
		return
	}
	listener.Store(&f)
}

// Places lists every name that At is called with, in the order of an epoch's life.
var Places = []string{
	"start.offsets", "start.restore", "start.running",
	"commit.begin", "commit.partitions", "commit.produced", "commit.offsets_added", "commit.offsets", "commit.ended", "commit.applied",
	"flush.begin", "flush.rows", "flush.checkpoint",
	"drain.committed", "drain.closed",
}
