package cli

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"
)

// suiteResult is what became of the tests of one file.
type suiteResult struct {
	file  string
	tests []testResult
	cover coverage
}

type testResult struct {
	name     string
	took     time.Duration
	failures []failure
}

func (s suiteResult) failed() int {
	n := 0
	for _, t := range s.tests {
		if len(t.failures) > 0 {
			n++
		}
	}
	return n
}

// total sums the suites up.
func total(suites []suiteResult) (tests, failed int, c coverage) {
	for _, s := range suites {
		tests += len(s.tests)
		failed += s.failed()
		c = c.plus(s.cover)
	}
	return tests, failed, c
}

const junitFormat = "junit"

// report writes the results of all suites in a format.
func report(out io.Writer, suites []suiteResult, format string) error {
	switch format {
	case junitFormat:
		return reportJUnit(out, suites)
	case "json":
		return reportJSON(out, suites)
	}
	var text strings.Builder
	for _, s := range suites {
		writeSuite(&text, s)
	}
	tests, failed, c := total(suites)
	fmt.Fprintf(&text, "%s, %d passed, %d failed   %s\n", plural(tests, "test"), tests-failed, failed, c)
	_, err := io.WriteString(out, text.String())
	return err
}

func writeSuite(text *strings.Builder, s suiteResult) {
	fmt.Fprintln(text, s.file)
	width := 0
	for _, t := range s.tests {
		width = max(width, min(utf8.RuneCountInString(t.name), 90))
	}
	for _, t := range s.tests {
		word := "ok  "
		if len(t.failures) > 0 {
			word = "FAIL"
		}
		fmt.Fprintf(text, "  %s  %s%s  %4d ms\n", word, t.name, strings.Repeat(" ", max(width-utf8.RuneCountInString(t.name), 0)), t.took.Milliseconds())
		for _, f := range t.failures {
			for _, line := range f.lines() {
				fmt.Fprintf(text, "        %s\n", line)
			}
		}
	}
	if len(s.cover.Missed) > 0 {
		fmt.Fprintf(text, "  never reached: %s\n", strings.Join(s.cover.Missed, ", "))
	}
}

func (f failure) lines() []string {
	lines := []string{f.Message}
	if f.Want != "" {
		lines = append(lines, "- "+f.Want)
	}
	if f.Got != "" {
		lines = append(lines, "+ "+f.Got)
	}
	lines = append(lines, f.Details...)
	if f.Watermark != "" {
		lines = append(lines, "watermark was "+f.Watermark+" when the record was produced")
	}
	return append(lines, "at "+f.Pos)
}

func reportJSON(out io.Writer, suites []suiteResult) error {
	type test struct {
		Name     string    `json:"name"`
		OK       bool      `json:"ok"`
		Millis   int64     `json:"ms"`
		Failures []failure `json:"failures,omitempty"`
	}
	type suite struct {
		File         string   `json:"file"`
		Tests        []test   `json:"tests"`
		NeverReached []string `json:"never_reached,omitempty"`
	}
	type reached struct {
		Reached int `json:"reached"`
		Of      int `json:"of"`
	}
	tests, failed, c := total(suites)
	all := struct {
		Files  []suite `json:"files"`
		Tests  int     `json:"tests"`
		Passed int     `json:"passed"`
		Failed int     `json:"failed"`
		Steps  reached `json:"steps"`
		Late   reached `json:"late"`
		Filter reached `json:"filtered"`
	}{Files: []suite{}, Tests: tests, Passed: tests - failed, Failed: failed, Steps: reached{c.StepsReached, c.Steps},
		Late: reached{c.LateReached, c.Late}, Filter: reached{c.FilterReached, c.Filter}}
	for _, s := range suites {
		one := suite{File: s.file, Tests: []test{}, NeverReached: s.cover.Missed}
		for _, t := range s.tests {
			one.Tests = append(one.Tests, test{t.name, len(t.failures) == 0, t.took.Milliseconds(), t.failures})
		}
		all.Files = append(all.Files, one)
	}
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(all)
}

func reportJUnit(out io.Writer, suites []suiteResult) error {
	type problem struct {
		Message string `xml:"message,attr"`
		Text    string `xml:",chardata"`
	}
	type testcase struct {
		Name    string   `xml:"name,attr"`
		Class   string   `xml:"classname,attr"`
		Time    string   `xml:"time,attr"`
		Failure *problem `xml:"failure"`
	}
	type testsuite struct {
		Name     string     `xml:"name,attr"`
		Tests    int        `xml:"tests,attr"`
		Failures int        `xml:"failures,attr"`
		Cases    []testcase `xml:"testcase"`
	}
	type testsuites struct {
		XMLName  xml.Name    `xml:"testsuites"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Suites   []testsuite `xml:"testsuite"`
	}
	tests, failed, _ := total(suites)
	all := testsuites{Tests: tests, Failures: failed}
	for _, s := range suites {
		one := testsuite{Name: s.file, Tests: len(s.tests), Failures: s.failed()}
		for _, t := range s.tests {
			c := testcase{Name: t.name, Class: s.file, Time: fmt.Sprintf("%.3f", t.took.Seconds())}
			if len(t.failures) > 0 {
				var text []string
				for _, f := range t.failures {
					text = append(text, f.lines()...)
				}
				c.Failure = &problem{t.failures[0].Message, strings.Join(text, "\n")}
			}
			one.Cases = append(one.Cases, c)
		}
		all.Suites = append(all.Suites, one)
	}
	text, err := xml.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "%s%s\n", xml.Header, text)
	return err
}
