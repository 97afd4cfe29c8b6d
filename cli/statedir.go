package cli

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"millrace/record"
	"millrace/store"
)

// stateDir is the application's folder under state.dir: one process at a time, one folder a task.
type stateDir struct {
	path        string
	application string
	lock        *os.File
	warn        func(string)
}

// openStateDir takes the folder for this process. A second process on the same folder is refused: two of them would
// write the same rows.
func openStateDir(root, application string, warn func(string)) (*stateDir, error) {
	d := &stateDir{path: filepath.Join(root, application), application: application, warn: warn}
	if err := os.MkdirAll(d.path, 0o700); err != nil {
		return nil, fmt.Errorf("state.dir: %w", err)
	}
	var err error
	if d.lock, err = lockFile(filepath.Join(d.path, "lock")); err != nil {
		return nil, fmt.Errorf("state.dir: another process works in %s (%w): give each replica a state.dir of its own", d.path, err)
	}
	return d, nil
}

// replicaID names this replica for good. It is a part of the transactional id, by which a restart decides what its
// former life left open.
func (d *stateDir) replicaID() (string, error) {
	path := filepath.Join(d.path, "replica")
	b, err := os.ReadFile(path)
	if id := strings.TrimSpace(string(b)); err == nil && id != "" {
		return id, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("state.dir: %w", err)
	}
	var raw [6]byte
	rand.Read(raw[:]) // never fails: crypto/rand crashes the program instead
	id := hex.EncodeToString(raw[:])
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return "", fmt.Errorf("state.dir: %w", err)
	}
	_, err = f.WriteString(id + "\n")
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return "", fmt.Errorf("state.dir: %w", err)
	}
	return id, nil
}

// formerMember is the group's name for the process that worked here before. The lock says that it is dead.
func (d *stateDir) formerMember() string {
	b, err := os.ReadFile(filepath.Join(d.path, "member"))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// joined notes the group's name for this process. Losing the note costs a wait for the session's end, nothing else.
func (d *stateDir) joined(memberID string) {
	if err := os.WriteFile(filepath.Join(d.path, "member"), []byte(memberID+"\n"), 0o600); err != nil {
		d.warn("the member id could not be noted: " + err.Error())
	}
}

func (d *stateDir) task(id record.TaskID) string { return filepath.Join(d.path, id.String()) }

func (d *stateDir) openEngine(id record.TaskID, stores []string) (store.Engine, store.OpenResult, error) {
	return store.OpenDir(d.task(id), store.Identity{Application: d.application, Task: id.String(), Stores: stores}, d.warn)
}

func (d *stateDir) wipe(id record.TaskID) error { return store.Wipe(d.task(id)) }

// local lists the tasks whose rows are here.
func (d *stateDir) local() []record.TaskID {
	entries, err := os.ReadDir(d.path)
	if err != nil {
		return nil // it only means that we have no preference
	}
	var ids []record.TaskID
	for _, e := range entries {
		if id, err := record.ParseTaskID(e.Name()); err == nil {
			if _, err := os.Stat(filepath.Join(d.path, e.Name(), "db")); err == nil {
				ids = append(ids, id)
			}
		}
	}
	return ids
}

func (d *stateDir) close() error { return d.lock.Close() }
