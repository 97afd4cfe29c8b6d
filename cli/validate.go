package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"millrace/config"
	"millrace/topology"
)

func newValidateCommand(a *app) *cobra.Command {
	denyWarnings := false
	cmd := &cobra.Command{
		Use:     "validate",
		Aliases: []string{"lint"},
		Short:   "Check everything about a job that can be known without Kafka",
		Long:    "Validate reports every finding with its place. Exit code 0: the job may start; 1: it may not; 2: a file cannot be read.",
		Args:    cobra.NoArgs,
		RunE:    func(*cobra.Command, []string) error { return a.validate(denyWarnings) },
	}
	cmd.Flags().BoolVar(&denyWarnings, "deny-warnings", false, "let warnings fail, too")
	return cmd
}

func (a *app) validate(denyWarnings bool) error {
	job, list := a.inspect()
	if err := config.Render(a.stdout, list, config.Format(a.format)); err != nil {
		return err
	}
	if a.format == string(config.Text) {
		fmt.Fprintln(a.stdout, summary(job, list))
	}
	if code := exitCode(list, denyWarnings); code != exitGood {
		return &exitError{code: code}
	}
	return nil
}

// summary counts the findings, and what was checked so that an empty answer can be told from an empty job.
func summary(job *config.Config, list []topology.Finding) string {
	counts := make(map[topology.Severity]int)
	for _, f := range list {
		counts[f.Severity]++
	}
	text := strings.Join([]string{
		plural(counts[topology.Error], "error"), plural(counts[topology.Warning], "warning"), plural(counts[topology.Note], "note"),
	}, ", ")
	if job == nil {
		return text
	}
	return fmt.Sprintf("%s   (%s, %s, %s, %s)", text, plural(len(job.Spec.Sources), "source"), plural(len(job.Spec.Steps), "step"),
		plural(len(job.Spec.Sinks), "sink"), plural(len(job.Tests), "test"))
}

func plural(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}
