package observe

import (
	"math"
	"slices"
	"time"

	"millrace/record"
)

// The documents of /v1. Field names are a contract with scripts, like those of the metrics.

type statusDoc struct {
	ApplicationID string             `json:"application_id"`
	Instance      string             `json:"instance"`
	Version       string             `json:"version"`
	Topology      string             `json:"topology"`
	Guarantee     string             `json:"guarantee"`
	State         string             `json:"state"`
	StateSince    string             `json:"state_since"`
	UptimeSeconds float64            `json:"uptime_seconds"`
	Live          bool               `json:"live"`
	Ready         bool               `json:"ready"`
	SafeToStop    bool               `json:"safe_to_stop"` // nothing is restoring and commits succeed: no other instance need wait for this one
	Kafka         kafkaDoc           `json:"kafka"`
	Tasks         []taskDoc          `json:"tasks"`
	LagRecords    int64              `json:"lag_records"`
	Watermarks    []watermarkDoc     `json:"watermarks"`
	Commits       commitsDoc         `json:"commits"`
	Steps         map[string]stepDoc `json:"steps"`
	Stores        []storeDoc         `json:"stores"`
	DiskFreeBytes *int64             `json:"disk_free_bytes,omitempty"`
	LastError     *errorDoc          `json:"last_error,omitempty"`
}

type kafkaDoc struct {
	Reachable  bool   `json:"reachable"`
	Brokers    int    `json:"brokers"`
	Cluster    string `json:"cluster"`
	Joined     bool   `json:"joined"`
	Generation int32  `json:"generation"`
}

type taskDoc struct {
	Task  string `json:"task"`
	Role  string `json:"role"`
	State string `json:"state"` // restoring, running
}

type watermarkDoc struct {
	Source       string   `json:"source"`
	Topic        string   `json:"topic"`
	Partition    int32    `json:"partition"`
	MaxEventTime string   `json:"max_event_time,omitempty"`
	Watermark    string   `json:"watermark,omitempty"`
	DelaySeconds *float64 `json:"delay_seconds,omitempty"`
	Idle         bool     `json:"idle"`
	Holding      bool     `json:"holding_back"`
	LagRecords   int64    `json:"lag_records"`
}

type commitsDoc struct {
	OK              int64    `json:"ok"`
	Aborted         int64    `json:"aborted"`
	Fenced          int64    `json:"fenced"`
	Failed          int64    `json:"failed"`
	LastEpoch       int64    `json:"last_epoch"`
	LastAt          string   `json:"last_at,omitempty"`
	LastAgeSeconds  *float64 `json:"last_age_seconds,omitempty"`
	LastRecords     int64    `json:"last_records"`
	LastOutputs     int64    `json:"last_outputs"`
	LastBytes       int64    `json:"last_bytes"`
	LastTookSeconds float64  `json:"last_took_seconds"`
}

type stepDoc struct {
	In           int64 `json:"in"`
	Out          int64 `json:"out"`
	Late         int64 `json:"late"`
	Filtered     int64 `json:"filtered"`
	Dropped      int64 `json:"dropped"`
	DeadLettered int64 `json:"dead_lettered"`
}

type storeDoc struct {
	Store       string `json:"store"`
	Task        string `json:"task"`
	Keys        int64  `json:"keys"`
	Bytes       int64  `json:"bytes"`
	CacheHits   int64  `json:"cache_hits"`
	CacheMisses int64  `json:"cache_misses"`
}

type errorDoc struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Error   string `json:"error,omitempty"`
	At      string `json:"at"`
}

type restoreDoc struct {
	Task          string   `json:"task"`
	Store         string   `json:"store"`
	Partition     int32    `json:"partition"`
	State         string   `json:"state"` // running, done
	Reused        bool     `json:"reused"`
	From          int64    `json:"from"`
	Position      int64    `json:"position"`
	End           int64    `json:"end"`
	Remaining     int64    `json:"remaining"`
	Percent       float64  `json:"percent"`
	RatePerSecond float64  `json:"rate_per_second"`
	ETASeconds    *float64 `json:"eta_seconds,omitempty"`
	Replayed      int64    `json:"replayed"`
	TookSeconds   float64  `json:"took_seconds"`
}

// status is a consistent picture of the instance.
func (o *Observer) status() statusDoc {
	live, ready := o.live().ok(), o.readiness().ok()
	now := o.opt.Clock()
	o.mu.Lock()
	defer o.mu.Unlock()
	l := o.life
	d := statusDoc{
		ApplicationID: o.opt.ApplicationID, Instance: o.opt.Instance, Version: o.opt.Version,
		Topology: o.opt.Topology, Guarantee: o.opt.Guarantee,
		State: l.state, StateSince: stamp(l.since), UptimeSeconds: seconds(now.Sub(l.started)),
		Live: live, Ready: ready, SafeToStop: live && ready,
		Kafka:      kafkaDoc{l.reachable, l.brokers, l.cluster, l.joined, l.generation},
		Tasks:      o.taskDocs(),
		LagRecords: totalLag(o.marks), Watermarks: watermarkDocs(o.marks, now),
		Commits: o.commitsDoc(now), Steps: make(map[string]stepDoc, len(o.steps)), Stores: o.storeDocs(),
	}
	for name, s := range o.steps {
		d.Steps[name] = stepDoc(*s)
	}
	if o.disk >= 0 {
		free := o.disk
		d.DiskFreeBytes = &free
	}
	if !o.last.At.IsZero() {
		d.LastError = &errorDoc{o.last.Code, o.last.Message, o.last.Error, stamp(o.last.At)}
	}
	return d
}

func (o *Observer) taskDocs() []taskDoc {
	unfinished := map[record.TaskID]bool{}
	for k, r := range o.restores {
		unfinished[k.task] = unfinished[k.task] || !r.done
	}
	ids := make([]record.TaskID, 0, len(o.life.active))
	for t := range o.life.active {
		ids = append(ids, t)
	}
	slices.SortFunc(ids, record.TaskID.Compare)
	docs := make([]taskDoc, len(ids))
	for i, t := range ids {
		docs[i] = taskDoc{t.String(), "active", running}
		if unfinished[t] || !o.life.ready {
			docs[i].State = restoring
		}
	}
	return docs
}

func (o *Observer) storeDocs() []storeDoc {
	docs := make([]storeDoc, 0, len(o.stores))
	for k, s := range o.stores {
		docs = append(docs, storeDoc{k.store, k.task.String(), s.Keys, s.Bytes, s.CacheHits, s.CacheMisses})
	}
	slices.SortFunc(docs, func(a, b storeDoc) int { return compareText(a.Store, b.Store, a.Task, b.Task) })
	return docs
}

func (o *Observer) commitsDoc(now time.Time) commitsDoc {
	c := o.commits
	d := commitsDoc{
		OK: c.results[0], Aborted: c.results[1], Fenced: c.results[2], Failed: c.results[3],
		LastEpoch: c.last.Epoch, LastRecords: c.last.Records, LastOutputs: c.last.Outputs, LastBytes: c.last.Bytes,
		LastTookSeconds: seconds(c.last.Total),
	}
	if !c.at.IsZero() {
		age := seconds(now.Sub(c.at))
		d.LastAt, d.LastAgeSeconds = stamp(c.at), &age
	}
	return d
}

func watermarkDocs(marks []record.WatermarkStatus, now time.Time) []watermarkDoc {
	docs := make([]watermarkDoc, len(marks))
	for i, w := range marks {
		docs[i] = watermarkDoc{
			Source: w.Source, Topic: w.Topic, Partition: w.Partition, Idle: w.Idle, Holding: w.Holding, LagRecords: w.Lag,
			MaxEventTime: eventStamp(w.MaxEventTime), Watermark: eventStamp(w.Watermark),
		}
		if w.Watermark != record.NoTime {
			delay := float64(now.UnixMilli()-w.Watermark) / 1000
			docs[i].DelaySeconds = &delay
		}
	}
	return docs
}

// restoreDocs describes all restores since the tasks were assigned.
func (o *Observer) restoreDocs() (docs []restoreDoc, unfinished int) {
	now := o.opt.Clock()
	o.mu.Lock()
	defer o.mu.Unlock()
	docs = make([]restoreDoc, 0, len(o.restores))
	for _, r := range o.sortedRestores() {
		d := restoreDoc{
			Task: r.task.String(), Store: r.store, Partition: r.task.Partition, State: "running", Reused: r.reused,
			From: r.from, Position: r.position, End: r.end, Remaining: r.remaining(),
			Percent: math.Round(r.percent()*10) / 10, RatePerSecond: math.Round(r.rate(now)),
			Replayed: r.replayed, TookSeconds: seconds(r.took),
		}
		if r.done {
			d.State = "done"
		} else {
			unfinished++
			d.TookSeconds = seconds(now.Sub(r.began))
			if d.RatePerSecond >= 1 {
				eta := math.Ceil(float64(d.Remaining) / d.RatePerSecond)
				d.ETASeconds = &eta
			}
		}
		docs = append(docs, d)
	}
	return docs, unfinished
}

func stamp(t time.Time) string { return t.UTC().Format(timeForm) }

// eventStamp writes an event time; it is empty where there is none.
func eventStamp(ms int64) string {
	if ms == record.NoTime {
		return ""
	}
	return stamp(time.UnixMilli(ms))
}

func seconds(d time.Duration) float64 { return math.Round(d.Seconds()*1000) / 1000 }

// compareText compares a1 with b1, and a2 with b2 where those are equal.
func compareText(a1, b1, a2, b2 string) int {
	switch {
	case a1 < b1 || a1 == b1 && a2 < b2:
		return -1
	case a1 == b1 && a2 == b2:
		return 0
	}
	return 1
}
