package observe

import (
	"io"
	"sync"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
)

// screen is where lines go. While bars are on it, lines are written through the bars' container, which puts them
// above: otherwise each would overwrite the other.
type screen struct {
	out  io.Writer
	bars bool // whether bars may be shown

	mu       sync.Mutex // guards the rest
	progress *mpb.Progress
	byStore  map[string]*mpb.Bar
	refresh  <-chan any // tests: the bars are drawn when it delivers
}

// Write writes whole lines.
func (s *screen) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.progress != nil {
		if n, err := s.progress.Write(b); err == nil {
			return n, nil
		}
		// The bars have failed, for example because the terminal went away. Lines go on without them.
	}
	return s.out.Write(b)
}

// bar shows the progress of a store, and makes its bar when there is something left to wait for.
func (s *screen) bar(store string, done, total int64) {
	if !s.bars {
		return
	}
	s.mu.Lock()
	if s.byStore[store] == nil && done < total {
		s.add(store, total)
	}
	s.mu.Unlock()
	s.update(store, done, total)
}

// update moves a bar that exists.
func (s *screen) update(store string, done, total int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b := s.byStore[store]; b != nil {
		// The bar ends in close and not here: another task of the same store may still begin to restore.
		b.SetTotal(max(total, 1), false)
		b.SetCurrent(done)
	}
}

func (s *screen) add(store string, total int64) {
	if s.progress == nil {
		// Refreshing is asked for, since without it lines would wait in the container's buffer where out is a pipe.
		opts := []mpb.ContainerOption{mpb.WithOutput(s.out), mpb.WithAutoRefresh()}
		if s.refresh != nil {
			opts = append(opts, mpb.WithManualRefresh(s.refresh))
		}
		s.progress, s.byStore = mpb.New(opts...), map[string]*mpb.Bar{}
	}
	s.byStore[store] = s.progress.AddBar(0,
		mpb.PrependDecorators(decor.Name("restoring "+clean(store), decor.WCSyncSpaceR), decor.Percentage(decor.WC{W: 6})),
		mpb.AppendDecorators(
			decor.AverageSpeed(0, " %.0f/s", decor.WC{W: 12}),
			decor.Name(" eta "), decor.AverageETA(decor.ET_STYLE_GO, decor.WC{W: 6}),
		))
	s.byStore[store].SetTotal(max(total, 1), false)
}

// showing tells whether bars are on the screen.
func (s *screen) showing() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.progress != nil
}

// close finishes all bars and takes them off the screen. It waits for the last drawing, a few milliseconds.
func (s *screen) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.progress == nil {
		return
	}
	for _, b := range s.byStore {
		b.Abort(true)
	}
	s.progress.Wait()
	s.progress, s.byStore = nil, nil
}
