package observe

import (
	"strconv"
	"time"

	"millrace/record"
)

// storeOperations are the words for what is done to a store, in record's order.
var storeOperations = [record.StoreOperations]string{record.StoreGet: "get", record.StorePut: "put", record.StoreDelete: "delete", record.StoreScan: "scan"}

// StoreStats reports the size of one task's store and what it did since the report before.
func (o *Observer) StoreStats(s record.StoreStats) {
	o.metrics.cacheRequests.WithLabelValues(s.Store, "hit").Add(float64(max(0, s.CacheHits)))
	o.metrics.cacheRequests.WithLabelValues(s.Store, "miss").Add(float64(max(0, s.CacheMisses)))
	for i, name := range storeOperations {
		o.metrics.storeOperations.add(s.Operations[i], s.Store, name)
	}
	s.Operations = [record.StoreOperations]*record.Spread{}
	k := restoreKey{s.Task, s.Store}
	o.mu.Lock()
	before := o.stores[k]
	s.CacheHits += before.CacheHits
	s.CacheMisses += before.CacheMisses
	o.stores[k] = s
	o.mu.Unlock()
}

// TaskStats reports where a task's time went since the report before, and how many windows it holds.
func (o *Observer) TaskStats(s record.TaskStats) {
	sub := strconv.Itoa(s.Task.Subtopology)
	o.metrics.busy.WithLabelValues(sub).Add(max(0, s.Busy).Seconds())
	o.metrics.backpressure.WithLabelValues(sub).Add(max(0, s.Backpressured).Seconds())
	o.mu.Lock()
	o.windows[s.Task] = s.Windows
	o.mu.Unlock()
}

// KafkaRequest reports one request to a broker: of which api, and whether the answer was ok, an error, or did not come
// (unanswered).
func (o *Observer) KafkaRequest(api, result string, took time.Duration) {
	o.metrics.kafkaRequests.WithLabelValues(api, result).Inc()
	o.metrics.kafkaDuration.WithLabelValues(api).Observe(took.Seconds())
}
