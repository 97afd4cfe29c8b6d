// Package spelling finds the word that a misspelt one was meant to be. Everything that reports an unknown name uses it, so
// that a slip is understood in the same way wherever it is made.
package spelling

import "strings"

// longest is the length in bytes up to which a word may be a misspelling of another: the comparison costs the product of
// the two lengths, and the words come from files that anybody may have written.
const longest = 64

// Nearest returns the known word that word most likely meant, or "". Upper and lower case count as the same letter, and the
// first of several equally near words wins.
func Nearest(word string, known []string) string {
	if word == "" || len(word) > longest {
		return ""
	}
	best, least := "", slips(len(word))+1
	for _, k := range known {
		if d := distance(strings.ToLower(word), strings.ToLower(k)); d < least {
			best, least = k, d
		}
	}
	return best
}

// slips is how many mistakes a word of n letters may have and still be recognised. Among short words everything is near
// to everything.
func slips(n int) int {
	if n < 5 {
		return 1
	}
	return max(2, n/3)
}

// distance counts the insertions, deletions, replacements and swaps of neighbours that turn a into b.
func distance(a, b string) int {
	before, previous := make([]int, len(b)+1), make([]int, len(b)+1)
	current := make([]int, len(b)+1)
	for j := range previous {
		previous[j] = j
	}
	for i := 1; i <= len(a); i++ {
		current[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			current[j] = min(previous[j]+1, current[j-1]+1, previous[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				current[j] = min(current[j], before[j-2]+1)
			}
		}
		before, previous, current = previous, current, before
	}
	return previous[len(b)]
}
