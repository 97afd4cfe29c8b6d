package config

import (
	"fmt"
	"strings"

	"millrace/topology/spelling"
)

// didYouMean phrases the nearest word as a hint; without one it lists what there is.
func didYouMean(word string, known []string) string {
	if near := spelling.Nearest(word, known); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	return "known here: " + strings.Join(known, ", ")
}
