package store

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
)

// checkManifest refuses a Badger whose MANIFEST is missing or does not end with a whole entry. Badger itself goes on without
// a word: it removes every table that it finds no entry of, while a log that is still there brings a checkpoint that speaks
// for their rows.
//
// A MANIFEST is 8 bytes of magic, and then entries: length (4 bytes, big endian), checksum (4 bytes), as many bytes as the
// length says. Badger checks the rest.
func checkManifest(db string) error {
	b, err := os.ReadFile(filepath.Join(db, "MANIFEST"))
	if err != nil {
		return fmt.Errorf("Badger's MANIFEST: %w", err)
	}
	const magic, entryHead = 8, 8
	at := magic
	for at+entryHead <= len(b) {
		at += entryHead + int(binary.BigEndian.Uint32(b[at:]))
	}
	if at != len(b) {
		return fmt.Errorf("Badger's MANIFEST has %d bytes, which is in the middle of an entry", len(b))
	}
	return nil
}
