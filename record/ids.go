// Package record holds the words that every other package uses: a record and its values, the partition it came
// from, the task that works on it. It imports nothing of ours and does no I/O.
package record

import (
	"fmt"
	"strconv"
	"strings"
)

// Offset is a position in a partition: always of the next record to read, never of the last one read.
type Offset = int64

// TopicPartition names one partition of one topic.
type TopicPartition struct {
	Topic     string
	Partition int32
}

func (tp TopicPartition) String() string { return tp.Topic + "-" + strconv.Itoa(int(tp.Partition)) }

// TaskID names one partition of one subtopology; it prints as "0_3", which is also its directory's name.
type TaskID struct {
	Subtopology int
	Partition   int32
}

func (id TaskID) String() string {
	return strconv.Itoa(id.Subtopology) + "_" + strconv.Itoa(int(id.Partition))
}

// Compare orders tasks by subtopology, then by partition.
func (id TaskID) Compare(other TaskID) int {
	if id.Subtopology != other.Subtopology {
		return id.Subtopology - other.Subtopology
	}
	return int(id.Partition - other.Partition)
}

// ParseTaskID reads what TaskID.String wrote.
func ParseTaskID(s string) (TaskID, error) {
	sub, part, ok := strings.Cut(s, "_")
	if ok {
		a, errA := strconv.Atoi(sub)
		b, errB := strconv.ParseInt(part, 10, 32)
		if errA == nil && errB == nil && a >= 0 && b >= 0 {
			return TaskID{a, int32(b)}, nil
		}
	}
	return TaskID{}, fmt.Errorf("task id %q: want SUBTOPOLOGY_PARTITION, as in 0_3", s)
}

// Generation is what the group coordinator fences by: a commit is accepted only under the member's present one.
type Generation struct {
	MemberID string
	ID       int32
}

// Committed is a group's offset of one partition, with what was noted beside it.
type Committed struct {
	Next     Offset // -1: none
	Metadata string
}
