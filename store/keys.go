package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"time"

	"millrace/record"
)

// Keys in the engine: store number (2 bytes, big endian), segment (8 bytes, big endian, sign flipped so that negative
// times sort first), the row's key. The checkpoint's key sorts behind all of them, since it is written last.

const segmentBytes = 2 + 8

var checkpointKey = []byte{0xff, 0xff, 'c', 'h', 'e', 'c', 'k', 'p', 'o', 'i', 'n', 't'}

func appendSegment(b []byte, store int, segment int64) []byte {
	b = binary.BigEndian.AppendUint16(b, uint16(store))
	return binary.BigEndian.AppendUint64(b, uint64(segment)^1<<63)
}

func parseSegment(key []byte) (store int, segment int64, ok bool) {
	if len(key) < segmentBytes {
		return 0, 0, false
	}
	return int(binary.BigEndian.Uint16(key)), int64(binary.BigEndian.Uint64(key[2:]) ^ 1<<63), true
}

func bigEndian(b [8]byte) uint64 { return binary.BigEndian.Uint64(b[:]) }

// A Checkpoint says how far the engine is: everything of the changelogs before Positions is in it.
type Checkpoint struct {
	Positions []record.Offset // next offset of each store's changelog partition, in the stores' order
	Written   time.Time
	Note      []byte // what the task wants to find beside its rows: its progress as of Positions
}

const checkpointVersion = 1

func (c Checkpoint) encode() []byte {
	b := []byte{checkpointVersion}
	b = binary.LittleEndian.AppendUint64(b, uint64(c.Written.UnixMilli()))
	b = binary.LittleEndian.AppendUint16(b, uint16(len(c.Positions)))
	for _, p := range c.Positions {
		b = binary.LittleEndian.AppendUint64(b, uint64(p))
	}
	b = append(b, c.Note...)
	return binary.LittleEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
}

var errCheckpoint = errors.New("the checkpoint row is damaged")

func decodeCheckpoint(b []byte) (Checkpoint, error) {
	if len(b) < 1+8+2+4 || crc32.ChecksumIEEE(b[:len(b)-4]) != binary.LittleEndian.Uint32(b[len(b)-4:]) {
		return Checkpoint{}, errCheckpoint
	}
	if b[0] != checkpointVersion {
		return Checkpoint{}, fmt.Errorf("the checkpoint row has version %d, this program reads %d", b[0], checkpointVersion)
	}
	c := Checkpoint{Written: time.UnixMilli(int64(binary.LittleEndian.Uint64(b[1:])))}
	n := int(binary.LittleEndian.Uint16(b[9:]))
	b = b[11 : len(b)-4]
	if len(b) < 8*n {
		return Checkpoint{}, errCheckpoint
	}
	for i := range n {
		c.Positions = append(c.Positions, int64(binary.LittleEndian.Uint64(b[8*i:])))
	}
	c.Note = append(c.Note, b[8*n:]...)
	return c, nil
}
