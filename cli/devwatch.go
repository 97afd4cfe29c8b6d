package cli

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"

	"millrace/config"
)

// follow runs the job and starts it anew whenever its files change and are right. A job that fails waits for a change,
// too: mending the file is what a developer does next.
func (d *dev) follow(ctx context.Context, job *config.Config, watch <-chan struct{}) error {
	for {
		s, err := d.start(ctx, job)
		if err != nil {
			return ended(ctx, err)
		}
		next, err := d.untilChanged(ctx, s, watch, job)
		if err != nil {
			return err
		}
		if next == nil {
			d.goodbye()
			return nil
		}
		job = next
	}
}

// untilChanged returns the next configuration once the session is stopped; nil when ctx ended.
func (d *dev) untilChanged(ctx context.Context, s *session, changed <-chan struct{}, job *config.Config) (*config.Config, error) {
	failed, names := s.failed, strings.Join(job.Files, " ")
	for {
		select {
		case <-ctx.Done():
			return nil, s.stop()
		case <-failed:
			failed = nil // it stays closed
			d.results.note("the job has stopped: " + textOf(s.stop()) + "; it starts again when " + names + " changes, or remove " + d.opts.dataDir + " to start over")
		case <-changed:
			next, err := d.load()
			if err == nil {
				_, err = d.loads(next.Spec)
			}
			if err != nil {
				d.results.note(names + " changed and has errors; the job goes on as it was" + reason(err))
				continue
			}
			if failed != nil {
				if err := s.stop(); err != nil {
					d.results.note("the job ended with an error: " + err.Error())
				}
			}
			return next, d.change(ctx, job, next)
		}
	}
}

// change prepares the broker for the next configuration and says what is different.
func (d *dev) change(ctx context.Context, job, next *config.Config) error {
	created, err := d.createTopics(next.Spec)
	if err != nil {
		return err
	}
	rebuilt, err := d.rebuild(ctx, next)
	if err != nil {
		return ended(ctx, err)
	}
	text := strings.Join(next.Files, " ") + " changed: " + describeChanges(job, next) + "; the job starts again"
	if rebuilt {
		text += ", " + anew
	}
	if len(created) > 0 {
		text += "; topics " + strings.Join(created, " ") + " created"
	}
	d.results.note(text)
	if len(next.Tests) > 0 {
		d.results.note("tests: " + d.test(next))
	}
	return nil
}

// reason is what is left to say about a configuration whose findings are on the screen already.
func reason(err error) string {
	var exit *exitError
	if errors.As(err, &exit) && exit.err == nil {
		return ""
	}
	return ": " + err.Error()
}

func textOf(err error) string {
	if err == nil {
		return "without an error"
	}
	return err.Error()
}

// settlingTime is how long files must be at rest: an editor writes more than once, a mount swaps several links.
const settlingTime = 100 * time.Millisecond

// watchFiles reports when the contents of the files have changed, until ctx ends. It watches their folders and compares
// contents: editors replace files instead of writing them, and Kubernetes changes what a link beside them points to.
func watchFiles(ctx context.Context, files []string) (<-chan struct{}, error) {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, fmt.Errorf("watch %s: %w", strings.Join(files, " "), err)
	}
	if err := watchFolders(w, files); err != nil {
		_ = w.Close() // the error that matters is at hand
		return nil, err
	}
	last, _ := digest(files) // unreadable files differ from whatever comes
	changed := make(chan struct{}, 1)
	go func() {
		defer w.Close()
		rest := time.NewTimer(settlingTime)
		defer rest.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-w.Events:
				rest.Reset(settlingTime)
			case <-w.Errors: // events were lost: look for ourselves
				rest.Reset(settlingTime)
			case <-rest.C:
				now, ok := digest(files)
				if !ok || now == last {
					continue // a file that is being replaced comes back with another event
				}
				last = now
				_ = watchFolders(w, files) // the folder that a link led to may be another one; without it the link's own still tells
				select {
				case changed <- struct{}{}:
				default: // the last change was not looked at yet, and will be looked at as it is then
				}
			}
		}
	}()
	return changed, nil
}

func watchFolders(w *fsnotify.Watcher, files []string) error {
	var folders []string
	for _, f := range files {
		folders = append(folders, filepath.Dir(f))
		if target, err := filepath.EvalSymlinks(f); err == nil {
			folders = append(folders, filepath.Dir(target))
		}
	}
	slices.Sort(folders)
	for _, folder := range slices.Compact(folders) {
		if err := w.Add(folder); err != nil {
			return fmt.Errorf("watch %s: %w", folder, err)
		}
	}
	return nil
}

// digest is a sum over the contents; ok is false while a file cannot be read.
func digest(files []string) (sum [sha256.Size]byte, ok bool) {
	h := sha256.New()
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			return sum, false
		}
		fmt.Fprintf(h, "%d\n", len(text))
		h.Write(text)
	}
	return [sha256.Size]byte(h.Sum(nil)), true
}
