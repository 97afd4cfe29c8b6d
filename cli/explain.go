package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"millrace/config"
	"millrace/topology"
)

func newExplainCommand(a *app) *cobra.Command {
	acls := false
	cmd := &cobra.Command{
		Use:   "explain",
		Short: "Show what the job is made of: subtopologies, internal topics, state, and why it repartitions",
		Long: "Explain prints the plan as text, as JSON, or as a diagram for Mermaid or Graphviz. " +
			"It asks no broker: what only the data can tell is listed as undecided.",
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return a.explain(acls) },
	}
	cmd.Flags().BoolVar(&acls, "acls", false, "list the permissions that the job needs in Kafka instead")
	return cmd
}

func (a *app) explain(acls bool) error {
	job, err := a.loadJob()
	if err != nil {
		return err
	}
	plan, err := planOf(job)
	if err != nil {
		return err
	}
	opts := explainOptions(job)
	opts.ACLs = acls
	text, err := plan.Explain(a.format, opts)
	if err != nil {
		return &exitError{code: exitUsage, err: err}
	}
	_, err = fmt.Fprint(a.stdout, text)
	return err
}

// explainOptions says what an explanation takes from the settings.
func explainOptions(job *config.Config) topology.ExplainOptions {
	return topology.ExplainOptions{Guarantee: job.Settings.Processing.Guarantee, CommitInterval: job.Settings.Processing.CommitInterval}
}

// explain is the running plan, for the HTTP page.
func (r *replica) explain(format string) (string, error) {
	return r.shown.Load().Explain(format, explainOptions(r.job))
}
