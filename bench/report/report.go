// Package report turns the figures of a comparison into a page and a picture.
package report

import (
	"os"
	"path/filepath"
	"strings"

	"millrace/bench/results"
)

// Write writes the page, and beside it a picture of the same name that it shows.
func Write(c *results.Comparison, page string) error {
	picture := strings.TrimSuffix(page, filepath.Ext(page)) + ".svg"
	if err := os.WriteFile(picture, []byte(Picture(c)), 0o644); err != nil {
		return err
	}
	return os.WriteFile(page, []byte(Page(c, filepath.Base(picture))), 0o644)
}
