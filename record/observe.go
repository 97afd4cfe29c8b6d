package record

import (
	"math"
	"time"
)

// NoTime stands for an event time or watermark that nothing has set yet.
const NoTime int64 = math.MinInt64

// StoreWrites is what one epoch wrote to the changelog of one store.
type StoreWrites struct {
	Store          string
	Records, Bytes int64
}

// CommitStats describes one committed epoch: whoever committed it hands it over once, after the outcome is certain.
type CommitStats struct {
	Epoch     int64
	Records   int64 // input records
	Outputs   int64 // records written to sinks, late and dead letters included
	Bytes     int64 // sent, changelog included
	Tallies   []Tally
	Changelog []StoreWrites

	Produce, Offsets, EndTxn, Total time.Duration // the phases, and the whole
}

// WatermarkStatus is how far event time has come in one source partition. Times are ms since the epoch, or NoTime.
type WatermarkStatus struct {
	Source, Topic string
	Partition     int32
	MaxEventTime  int64
	Watermark     int64
	Idle          bool  // left out of the minimum
	Holding       bool  // the partition that keeps its task's watermark back
	Lag           int64 // records between our committed position and the end of the partition
	Oldest        int64 // timestamp of the oldest record that was fetched and is not processed; NoTime if none waits
}

// StoreStats is the size of one task's store, and what it did since the report before. Keys is an estimate. What the
// stores of a task have in common, their files and their cache's work, stands with the first of them.
type StoreStats struct {
	Task          TaskID
	Store         string
	Keys, Bytes   int64 // Bytes in memory and on disk
	ValueLogBytes int64 // of the files: large values
	CacheHits     int64
	CacheMisses   int64
	Operations    [StoreOperations]*Spread // sampled durations, ns; nil where nothing was measured
}

// What is done to a store.
const (
	StoreGet = iota
	StorePut
	StoreDelete
	StoreScan
	StoreOperations // their number
)

// TaskStats is where a task's time went since the report before, and how many windows it holds now.
type TaskStats struct {
	Task          TaskID
	Busy          time.Duration
	Backpressured time.Duration // there was work, and no room in the epoch for what it would put out
	Windows       []OpenWindows
}

// OpenWindows is how many ranges of time a step holds rows of: windows, or the slices that overlapping ones share.
type OpenWindows struct {
	Step string
	N    int
}
