package cli

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"millrace/config"
	"millrace/driver"
)

// eachStory calls f with every test of the jobs in testdata/stories and of the example that users start from.
func eachStory(t *testing.T, f func(t *testing.T, job *config.Config, story *config.Test)) {
	t.Helper()
	files, err := filepath.Glob("../testdata/stories/*.yaml")
	if err != nil || len(files) < 40 {
		t.Fatalf("%d files of stories: %v", len(files), err)
	}
	for _, file := range append(files, "../config.yaml") {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			job, found := config.Load(config.LoadOptions{Files: []string{file}})
			if job == nil || exitCode(combine(found, checkTopology(job.Spec)), false) != exitGood {
				t.Fatalf("the job cannot run: %v", found)
			}
			if len(job.Tests) == 0 {
				t.Fatal("no tests")
			}
			for i := range job.Tests {
				t.Run(job.Tests[i].Name.Value, func(t *testing.T) { f(t, job, &job.Tests[i]) })
			}
		})
	}
}

func TestStories(t *testing.T) {
	eachStory(t, func(t *testing.T, job *config.Config, story *config.Test) {
		failures, _ := runTest(job, story)
		for _, f := range failures {
			t.Error(strings.Join(f.lines(), "\n"))
		}
	})
}

// A story that would hold whatever the job did would be no story: without any one of its expected records, with two of
// them swapped, or with another count, it must fail.
func TestStoriesCanFail(t *testing.T) {
	eachStory(t, func(t *testing.T, job *config.Config, story *config.Test) {
		shown := everyStep
		if slices.ContainsFunc(story.Input, func(s config.TestStep) bool { return s.Kind == config.StepCommit }) {
			shown = atCommits
		}
		d, err := play(job, story, shown)
		if err != nil {
			t.Fatal(err)
		}
		for what, broken := range brokenStories(story) {
			if len(verify(job, &broken, d)) == 0 {
				t.Errorf("it holds %s, too", what)
			}
		}
	})
}

func brokenStories(story *config.Test) map[string]config.Test {
	all := map[string]config.Test{}
	for s, sink := range story.Expect {
		for i := range sink.Records {
			broken := *story
			broken.Expect = slices.Clone(story.Expect)
			broken.Expect[s].Records = slices.Delete(slices.Clone(sink.Records), i, i+1)
			all[fmt.Sprintf("without record %d of %s", i, sink.Sink.Value)] = broken
		}
	}
	for i := range story.ExpectDeadLetters {
		broken := *story
		broken.ExpectDeadLetters = slices.Delete(slices.Clone(story.ExpectDeadLetters), i, i+1)
		all[fmt.Sprintf("without dead letter %d", i)] = broken
	}
	for i, c := range story.ExpectCounts {
		broken := *story
		broken.ExpectCounts = slices.Clone(story.ExpectCounts)
		broken.ExpectCounts[i].N++
		all[fmt.Sprintf("with another count at %s", c.Where.Value)] = broken
	}
	for i, sink := range story.ExpectNoOutput {
		broken := *story
		broken.ExpectNoOutput = slices.Delete(slices.Clone(story.ExpectNoOutput), i, i+1)
		record := config.ExpectedRecord{Partition: -1}
		broken.Expect = append(slices.Clone(story.Expect), config.SinkExpectation{Sink: sink, Records: []config.ExpectedRecord{record}})
		all["with a record in "+sink.Value] = broken
	}
	return all
}

// The comparison between the ways of playing a test must find a difference. Nothing of ours makes one, so the two runs
// are given different input.
func TestRunsThatDisagreeAreFound(t *testing.T) {
	job, found := config.Load(config.LoadOptions{Files: []string{"../config.yaml"}})
	if job == nil {
		t.Fatal(found)
	}
	story := job.Tests[0]
	other := story
	other.Input = slices.Delete(slices.Clone(story.Input), 0, 1)
	runs := []*driver.Driver{}
	for _, one := range []config.Test{story, other} {
		d, err := play(job, &one, everyStep)
		if err != nil {
			t.Fatal(err)
		}
		runs = append(runs, d)
	}
	if f := sameWhateverEpochs(&job.Spec, 1, runs[0], runs[1]); len(f) != 1 || !strings.Contains(f[0].Message, "clicks_per_minute depend on when epochs are committed") {
		t.Errorf("other epochs: %v", f)
	}
	if f := sameAfterInterruptions(&job.Spec, runs[0], runs[1]); len(f) != 1 || !strings.Contains(f[0].Message, "cut off and done again") {
		t.Errorf("cut off: %v", f)
	}
	if f := sameWhateverEpochs(&job.Spec, 1, runs[0], runs[0]); f != nil {
		t.Errorf("a run disagrees with itself: %v", f)
	}
}
