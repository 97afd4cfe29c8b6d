package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"millrace/config"
	"millrace/driver"
	"millrace/record"
	"millrace/topology"
)

func newTestCommand(a *app) *cobra.Command {
	pattern := ""
	cmd := &cobra.Command{
		Use:   "test [path…]",
		Short: "Run the tests that jobs have in their files, without Kafka",
		Long: "Test plays the stories under tests: through the real tasks of a job, with topics in memory and a clock of its own. Each is played three times: with a commit after " +
			"every step, with as few as possible, and with every step cut off and done again; results that must not depend on that are compared.\n\n" +
			"A path is a job, a folder of jobs, or NAME_test.yaml, which holds more tests: for NAME.yaml beside it, or else for the job that -c names. " +
			"Without a path the job of -c is tested. Exit code 1: a test failed, or there is none.",
		RunE: func(_ *cobra.Command, paths []string) error { return a.test(paths, pattern) },
	}
	cmd.Flags().StringVar(&pattern, "run", "", "run only the tests whose name matches this regular expression")
	return cmd
}

// suite is a job with the tests of one file.
type suite struct {
	file  string
	job   *config.Config
	tests []config.Test
}

func (a *app) test(paths []string, pattern string) error {
	wanted, err := regexp.Compile(pattern)
	if err != nil {
		return &exitError{code: exitUsage, err: fmt.Errorf("--run: %w", err)}
	}
	suites, err := a.suites(paths)
	if err != nil {
		return err
	}
	var results []suiteResult
	found, chosen := 0, 0
	for _, s := range suites {
		found += len(s.tests)
		s.tests = slices.DeleteFunc(slices.Clone(s.tests), func(t config.Test) bool { return !wanted.MatchString(t.Name.Value) })
		if chosen += len(s.tests); len(s.tests) > 0 {
			results = append(results, s.run())
		}
	}
	switch {
	case found == 0:
		return &exitError{code: exitFindings, err: errors.New("there is no test: write tests: in the job's file, or in NAME_test.yaml beside NAME.yaml (docs/testing.md)")}
	case chosen == 0:
		return &exitError{code: exitFindings, err: fmt.Errorf("--run %q: none of %s has such a name", pattern, plural(found, "test"))}
	}
	if err := report(a.stdout, results, a.format); err != nil {
		return err
	}
	if _, failed, _ := total(results); failed > 0 {
		return &exitError{code: exitFindings}
	}
	return nil
}

// suites finds the tests that the paths name.
func (a *app) suites(paths []string) ([]suite, error) {
	if len(paths) == 0 {
		files := a.files
		if len(files) == 0 {
			files = []string{config.DefaultFile}
		}
		return a.jobSuites(files)
	}
	var all []suite
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			return nil, &exitError{code: exitUsage, err: err}
		}
		files := []string{path}
		if info.IsDir() {
			if files, err = jobsIn(path); err != nil {
				return nil, err
			}
		}
		for _, file := range files {
			found, err := a.fileSuites(file)
			if err != nil {
				return nil, err
			}
			all = append(all, found...)
		}
	}
	return all, nil
}

const testSuffix = "_test.yaml"

// jobsIn lists the YAML files of a folder. A file of further tests comes with its job; without one it stands for itself.
func jobsIn(dir string) ([]string, error) {
	found, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(found, func(name string) bool {
		job, further := strings.CutSuffix(name, testSuffix)
		return further && slices.Contains(found, job+".yaml")
	}), nil
}

// fileSuites returns the tests of one file: a job's, with those beside it, or further tests alone.
func (a *app) fileSuites(file string) ([]suite, error) {
	base, further := strings.CutSuffix(file, testSuffix)
	if !further {
		return a.jobSuites([]string{file})
	}
	files := a.files
	if _, err := os.Stat(base + ".yaml"); err == nil {
		files = []string{base + ".yaml"}
	}
	job, err := a.testJob(files)
	if err != nil {
		return nil, err
	}
	s, err := a.further(job, file)
	return []suite{s}, err
}

// jobSuites returns the tests in a job's files, and those beside each of them.
func (a *app) jobSuites(files []string) ([]suite, error) {
	job, err := a.testJob(files)
	if err != nil {
		return nil, err
	}
	all := []suite{{strings.Join(files, ", "), job, job.Tests}}
	for _, file := range files {
		beside := strings.TrimSuffix(file, ".yaml") + testSuffix
		if _, err := os.Stat(beside); err != nil {
			continue
		}
		s, err := a.further(job, beside)
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

func (a *app) further(job *config.Config, file string) (suite, error) {
	tests, found := config.LoadTests([]string{file})
	return suite{file, job, tests}, a.refuse(found)
}

// testJob loads a job. Only errors are told: whoever runs tests has read the rest from validate.
func (a *app) testJob(files []string) (*config.Config, error) {
	with := *a
	with.files = files
	job, found := with.inspect()
	return job, a.refuse(found)
}

// refuse writes the errors among findings, and ends the command if there are any.
func (a *app) refuse(found []topology.Finding) error {
	errs := slices.DeleteFunc(slices.Clone(found), func(f topology.Finding) bool { return f.Severity != topology.Error })
	if err := config.Render(a.stderr, errs, config.Text); err != nil {
		return err
	}
	if code := exitCode(errs, false); code != exitGood {
		return &exitError{code: code}
	}
	return nil
}

func (s suite) run() suiteResult {
	result := suiteResult{file: s.file}
	var tallies []record.Tally
	for i := range s.tests {
		t := &s.tests[i]
		begin := time.Now()
		failures, counted := runTest(s.job, t)
		tallies = append(tallies, counted...)
		result.tests = append(result.tests, testResult{t.Name.Value, time.Since(begin), failures})
	}
	result.cover = cover(&s.job.Spec, tallies)
	return result
}

// runTest plays a test in every way, compares the ways with each other and the results with what is expected.
func runTest(job *config.Config, t *config.Test) ([]failure, []record.Tally) {
	if wrong := mistakes(&job.Spec, t); len(wrong) > 0 {
		return wrong, nil
	}
	runs := map[epochs]*driver.Driver{}
	for _, when := range []epochs{everyStep, atCommits, interrupted} {
		if when == interrupted && measuresSilence(job, t) {
			continue
		}
		d, err := play(job, t, when)
		if err != nil {
			return []failure{{Pos: t.Name.Pos.String(), Message: "the job stopped: " + err.Error()}}, nil
		}
		runs[when] = d
	}
	shown := runs[everyStep]
	if slices.ContainsFunc(t.Input, func(s config.TestStep) bool { return s.Kind == config.StepCommit }) {
		shown = runs[atCommits] // the test says itself when epochs end
	}
	failures := verify(job, t, shown)
	if len(failures) == 0 { // otherwise the test's own words come first
		failures = sameWhateverEpochs(&job.Spec, t.Partitions, runs[everyStep], runs[atCommits])
		if cut := runs[interrupted]; cut != nil {
			failures = append(failures, sameAfterInterruptions(&job.Spec, runs[everyStep], cut)...)
		}
		for i := range failures {
			failures[i].Pos = t.Name.Pos.String()
		}
	}
	return failures, shown.Tallies()
}

// measuresSilence tells whether a test is about how long a partition has been silent, which a process that starts anew
// counts from its own start.
func measuresSilence(job *config.Config, t *config.Test) bool {
	waits := slices.ContainsFunc(t.Input, func(s config.TestStep) bool { return s.Kind == config.StepAdvanceWallClock })
	idle := slices.ContainsFunc(job.Spec.Sources, func(s topology.SourceSpec) bool { return s.Watermark.IdleTimeout.Value > 0 })
	return waits && idle
}
