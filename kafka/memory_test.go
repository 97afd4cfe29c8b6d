package kafka

import (
	"testing"

	"millrace/record"
)

// An answer's memory is used again only when every batch that lies in it has been worked off.
func TestMemoryIsSharedAndUsedAgain(t *testing.T) {
	var m memory
	a := m.answer(1000)
	a.users.Store(2)
	first, second := m.free(a, m.list(10)), m.free(a, m.list(20))
	first()
	if b := m.answer(1000); &b.b[0] == &a.b[0] {
		t.Error("an answer is used again while a batch of it is not worked off")
	}
	second()
	if b := m.answer(500); &b.b[0] != &a.b[0] || len(b.b) != 500 {
		t.Error("an answer that nobody needs is not used again")
	}
	if l := m.list(15); cap(l) < 20 || len(l) != 0 {
		t.Errorf("a list of %d for 15 records, room for %d", len(l), cap(l))
	}
	m.lists = [][]record.Record{make([]record.Record, 0, 100_000)}
	if l := m.list(100); cap(l) < 100 || cap(l) > 10_000 {
		t.Errorf("room for %d records of 100", cap(l))
	}
	m.lists = nil
	for range 100 {
		give(&m, &m.lists, make([]record.Record, 0, 7), 70)
	}
	if len(m.lists) != 10 {
		t.Errorf("%d lists of 7 are kept, want 10", len(m.lists))
	}
	if give(&m, &m.lists, make([]record.Record, 0, 71), 70); len(m.lists) != 10 {
		t.Errorf("a list that is too large is kept, or has driven out others: %d", len(m.lists))
	}
}
