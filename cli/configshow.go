package cli

import (
	"github.com/spf13/cobra"

	"millrace/config"
)

func newConfigCommand(a *app) *cobra.Command {
	parent := &cobra.Command{
		Use:   "config",
		Short: "Look at the configuration",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	opts := config.ShowOptions{}
	show := &cobra.Command{
		Use:   "show",
		Short: "Print the configuration that is in effect, with secrets hidden",
		Long: "Show prints the files laid over each other, with references expanded and environment and --set applied. " +
			"Without --effective it leaves out what nobody set.",
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			job, err := a.loadJob()
			if err != nil {
				return err
			}
			opts.JSON = a.format == string(config.JSON)
			return job.Show(a.stdout, opts)
		},
	}
	show.Flags().BoolVar(&opts.Effective, "effective", false, "with every default")
	show.Flags().BoolVar(&opts.Origin, "origin", false, "say where each value came from, as a comment")
	parent.AddCommand(show)
	return parent
}
