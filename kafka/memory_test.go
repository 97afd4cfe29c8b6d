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
	if l := m.list(100); cap(l) < 100 {
		t.Errorf("room for %d records of 100", cap(l))
	}
	for range 2 * keptLists {
		give(&m, &m.lists, make([]record.Record, 0, 7), keptLists)
	}
	if len(m.lists) != keptLists {
		t.Errorf("%d lists are kept", len(m.lists))
	}
}
