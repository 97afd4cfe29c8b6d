package cli

import (
	"strings"
	"testing"
	"time"
)

// A topic that was created a moment ago may be unknown to the first broker that is asked.
func TestTopicsThatAreNewAreWaitedFor(t *testing.T) {
	asked := 0
	look := func(names []string) (map[string]int32, error) {
		asked++
		if asked < 3 {
			return map[string]int32{"in": 4}, nil
		}
		return map[string]int32{"in": 4, "out": 2}, nil
	}
	found, err := findUsers(t.Context(), look, []string{"in", "out"}, time.Hour)
	if err != nil || found["in"] != 4 || found["out"] != 2 || asked != 3 {
		t.Errorf("%v, %v after %d looks", found, err, asked)
	}
	asked = 0
	if _, err := findUsers(t.Context(), look, []string{"in", "out"}, 0); err == nil || !strings.Contains(err.Error(), "topic out does not exist") {
		t.Errorf("%v", err)
	}
}
