package clicks

import "fmt"

// Windows are tumbling when Advance equals Size, else hopping. All in milliseconds.
type Windows struct {
	Size, Advance, Grace int64
}

// Tally is the result of one window of one user.
type Tally struct {
	Count, Cents uint32
}

// Table holds the newest result of each window and user.
type Table struct {
	users uint64
	rows  map[int64][]Tally // by the window's start, then by user: most users occur in most windows
}

// NewTable returns an empty table for users 0 to users-1.
func NewTable(users uint64) *Table {
	return &Table{users: users, rows: map[int64][]Tally{}}
}

func (t *Table) row(start int64, user uint64) *Tally {
	window := t.rows[start]
	if window == nil {
		window = make([]Tally, t.users)
		t.rows[start] = window
	}
	return &window[user]
}

// Set takes a result row as a reader sees it. A count that went back means that state was lost.
func (t *Table) Set(start int64, user uint64, tally Tally) error {
	if user >= t.users {
		return fmt.Errorf("user %d was never in the input", user)
	}
	if off := (start - Begin) % 10_000; off != 0 {
		return fmt.Errorf("no window starts at %d", start)
	}
	row := t.row(start, user)
	if tally.Count < row.Count {
		return fmt.Errorf("the count of user %d at %d went back from %d to %d", user, start, row.Count, tally.Count)
	}
	*row = tally
	return nil
}

// Summary is a table in a few numbers. Digest and Check are sums over the rows, each row mixed in its own way, so their order
// does not matter; together they are 128 bits.
type Summary struct {
	Windows, Counts, Cents uint64
	Digest, Check          uint64
}

// Summary adds the table up.
func (t *Table) Summary() Summary {
	var s Summary
	for start, window := range t.rows {
		for user, tally := range window {
			if tally.Count == 0 {
				continue
			}
			s.Windows++
			s.Counts += uint64(tally.Count)
			s.Cents += uint64(tally.Cents)
			row := mix(mix(uint64(start)) ^ uint64(user))
			result := uint64(tally.Count)<<32 | uint64(tally.Cents)
			s.Digest += mix(row ^ result)
			s.Check += mix(row + mix(result))
		}
	}
	return s
}

// Windowed is what a job that counts in windows must have as its newest results after the first n records; cents are added up where sums is true. A record is
// late for a window whose end lies more than Grace behind the newest time that its partition has seen.
func (s Stream) Windowed(w Windows, n uint64, sums bool) Summary {
	table := NewTable(s.Users)
	newest := make([]int64, s.Partitions)
	var key []byte
	for i := range n {
		c := s.At(i)
		key = AppendUser(key[:0], c.User)
		p := Partition(key, s.Partitions)
		newest[p] = max(newest[p], c.Time)
		for start := c.Time - c.Time%w.Advance; start > c.Time-w.Size && start+w.Size+w.Grace > newest[p]; start -= w.Advance {
			row := table.row(start, c.User)
			row.Count++
			if sums {
				row.Cents += uint32(c.Cents)
			}
		}
	}
	return table.Summary()
}
