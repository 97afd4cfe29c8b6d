package cli

import (
	"io"
	"os"
	"strings"

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
