package kafka

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"millrace/record"

	"github.com/IBM/sarama"
)

// A logBatch is a batch of version 2 as the log has it. It begins with its first offset (8 bytes), its length from there on
// (4), leader epoch (4), version (1), checksum of all that follows (4), attributes (2), last offset delta (4), first and newest
// timestamp (8 and 8), producer id (8), producer epoch (2), first sequence number (4) and the number of its records (4).
type logBatch []byte

const (
	batchHead    = 61
	batchChecked = 21 // where the checksum's bytes begin
	batchVersion = 16
	batchUnsized = 12 // what the length does not count
	attrCodec    = 0x07
	attrAppend   = 0x08
	attrTxn      = 0x10
	attrControl  = 0x20
	magic        = 2 // the version
)

func (b logBatch) short(at int) int32 { return int32(binary.BigEndian.Uint32(b[at:])) }
func (b logBatch) long(at int) int64  { return int64(binary.BigEndian.Uint64(b[at:])) }

func (b logBatch) first() record.Offset           { return b.long(0) }
func (b logBatch) size() int64                    { return batchUnsized + int64(b.short(8)) }
func (b logBatch) last() record.Offset            { return b.first() + int64(b.short(23)) }
func (b logBatch) has(attribute byte) bool        { return b[22]&attribute != 0 }
func (b logBatch) codec() sarama.CompressionCodec { return sarama.CompressionCodec(b[22] & attrCodec) }
func (b logBatch) times() (first, newest int64)   { return b.long(27), b.long(35) }
func (b logBatch) producer() int64                { return b.long(43) }
func (b logBatch) count() int32                   { return b.short(57) }

// intact tells whether the checksum is right.
func (b logBatch) intact() bool {
	return crc32.Checksum(b[batchChecked:], castagnoli) == binary.BigEndian.Uint32(b[17:])
}

// nextBatch cuts the first batch off a set of whole ones.
func nextBatch(set []byte) (b logBatch, rest []byte) {
	size := logBatch(set).size()
	return set[:size:size], set[size:]
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// readable returns the whole batches of a record set; nil if it holds anything else than batches of version 2 with
// right checksums. A last batch that was cut off is left out: the next answer begins with it.
func readable(set []byte) []byte {
	at := 0
	for at+batchHead <= len(set) {
		b := logBatch(set[at:])
		size := b.size()
		switch {
		case b[batchVersion] != magic, size < batchHead:
			return nil
		case size > int64(len(b)):
			return whole(set[:at])
		case !b[:size].intact():
			return nil
		}
		at += int(size)
	}
	return whole(set[:at])
}

// whole is nil for a set of no batch: what became of it is sarama's to say.
func whole(set []byte) []byte {
	if len(set) == 0 {
		return nil
	}
	return set
}

// decodeSet does for a record set of a tap what decode does for one of sarama. It costs no heap object a record, and the
// memory of its records is used again when the batch has been worked off.
func (t *tap) decodeSet(g *gathering, set []byte) (record.Batch, error) {
	next := g.batch.Next
	g.into.records = t.memory.list(countRecords(set))
	for len(set) > 0 {
		var b logBatch
		b, set = nextBatch(set)
		h := header{first: b.first(), last: b.last(), producer: b.producer(), transactional: b.has(attrTxn), control: b.has(attrControl)}
		h.abort = h.control && abortsIn(b)
		if g.wants(h) {
			if err := g.into.walkBatch(b, next); err != nil {
				if g.batch.Next > next {
					break // what lies before is read first
				}
				return g.batch, fmt.Errorf("%w: batch at offset %d: %w", errUnreadable, h.first, err)
			}
		}
		g.passed(h)
	}
	g.batch.Free = t.memory.free(t.answer, g.into.records)
	return g.done(), nil
}

// countRecords is the number of records that the batches say they have, as far as it is worth believing at once.
func countRecords(set []byte) int {
	n := 0
	for len(set) > 0 {
		var b logBatch
		if b, set = nextBatch(set); !b.has(attrControl) {
			n += int(max(0, b.count()))
		}
	}
	return min(n, believed)
}

const believed = 1 << 16

func abortsIn(b logBatch) bool {
	var t target
	return t.walkBatch(b, 0) == nil && len(t.records) > 0 && endsAsAborted(t.records[0].Key)
}

// walkBatch appends the records of a batch from the offset next on; they alias it unless it is compressed.
func (t *target) walkBatch(b logBatch, next record.Offset) error {
	records, err := decompress(b.codec(), b[batchHead:])
	if err != nil {
		return err
	}
	return t.walk(b[:batchHead], records, next)
}

// walk appends records, which are those of the batch with this head.
func (t *target) walk(head logBatch, records []byte, next record.Offset) error {
	firstOffset, appended := head.first(), head.has(attrAppend)
	firstTime, newest := head.times()
	w := record.WireOf(records)
	before := *t
	var r record.Record
	for n := head.count(); n > 0; n-- {
		if !w.Next(&r, &t.headers) {
			clear(t.records[len(before.records):]) // the list is used again, and would keep the answer
			*t = before
			return sarama.ErrInsufficientData
		}
		r.Offset += firstOffset
		if r.Offset < next {
			continue
		}
		if r.Timestamp += firstTime; appended {
			r.Timestamp = newest
		}
		t.bytes += len(r.Key) + len(r.Value)
		t.records = append(t.records, r)
	}
	return nil
}
