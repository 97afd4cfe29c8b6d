package cli

import (
	"context"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"millrace/config"
)

// isTerminal tells whether a person reads what is written.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

func (r *replica) showConfig() (string, error) {
	var text strings.Builder
	err := r.job.Show(&text, config.ShowOptions{Effective: true})
	return text.String(), err
}

// untilStopped is a context that ends with Ctrl-C or SIGTERM. A second signal ends the process at once, which is always
// safe.
func untilStopped() (ctx context.Context, stop context.CancelFunc) {
	ctx, stop = signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}
