package store

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
)

// Badger's memtable has two bytes for the length of a key and cuts a longer one without a word, so that rows would take
// each other's place. A long key is therefore stored as its beginning and its hash, with the whole key before the value.

// longKey is the least length of a long key: what Badger refuses in its own transactions is a little more.
const longKey = 60 << 10

const shortenedKey = longKey + sha256.Size

// shortKey is the key that Badger gets. No other key is as long as a shortened one.
func shortKey(key []byte) []byte {
	if len(key) < longKey {
		return key
	}
	sum := sha256.Sum256(key)
	return append(key[:longKey:longKey], sum[:]...)
}

// packValue is the value that Badger gets.
func packValue(key, value []byte) []byte {
	if len(key) < longKey {
		return value
	}
	packed := make([]byte, 0, 4+len(key)+len(value))
	packed = binary.BigEndian.AppendUint32(packed, uint32(len(key)))
	return append(append(packed, key...), value...)
}

var errLongKey = errors.New("a row with a long key is damaged")

// unpackRow returns the key and the value of a row as Badger has it.
func unpackRow(key, value []byte) (k, v []byte, err error) {
	if len(key) != shortenedKey {
		return key, value, nil
	}
	if len(value) < 4 {
		return nil, nil, errLongKey
	}
	n := int(binary.BigEndian.Uint32(value))
	value = value[4:]
	if n < longKey || len(value) < n {
		return nil, nil, errLongKey
	}
	return value[:n:n], value[n:], nil
}
