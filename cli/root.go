// Package cli holds the commands, one file each, and wires the parts of the program together. To add a command, write newXCommand in a
// file of its own and name it in newRoot.
package cli

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"millrace/config"
	"millrace/topology"
)

// The exit codes, the same for every command.
const (
	exitGood     = 0
	exitFindings = 1 // findings, or tests that failed
	exitUsage    = 2 // wrong flags or arguments, or a configuration that cannot be read
	exitRuntime  = 3
)

// app is what the commands share: where they write, and the flags that all of them take.
type app struct {
	stdout, stderr io.Writer
	files, sets    []string
	logLevel       string
	format         string
	started        bool // flags and arguments were accepted
	// check finds what is wrong with a topology that could be decoded.
	check func(topology.Spec) []topology.Finding
}

// exitError ends a command with a code. Its error may be nil where everything was said already.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// Run executes the command that args name and returns the process's exit code.
func Run(args []string, stdout, stderr io.Writer) int {
	a := &app{stdout: stdout, stderr: stderr, check: checkTopology}
	root := newRoot(a)
	root.SetArgs(args)
	err := root.Execute()
	if err == nil {
		return exitGood
	}
	code := exitRuntime
	if !a.started {
		code = exitUsage
	}
	var exit *exitError
	if errors.As(err, &exit) {
		code = exit.code
		if exit.err == nil {
			return code
		}
	}
	fmt.Fprintf(stderr, "millrace: %v\n", err)
	if !a.started {
		fmt.Fprintln(stderr, "see millrace --help")
	}
	return code
}

func newRoot(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:           "millrace",
		Short:         "Kafka Streams without the JVM and without code",
		Long:          "Millrace runs keyed, windowed, event-time stream processing from Kafka to Kafka, exactly once. A job is one YAML file.",
		SilenceUsage:  true,
		SilenceErrors: true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			if err := a.acceptFormat(cmd); err != nil {
				return err
			}
			a.started = true
			return nil
		},
	}
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	flags := root.PersistentFlags()
	flags.StringArrayVarP(&a.files, "config", "c", nil, "YAML file of the job; more than one are laid over each other, later ones win (default "+config.DefaultFile+")")
	flags.StringArrayVar(&a.sets, "set", nil, "set one setting, as in --set kafka.client_id=x; stronger than the environment and the files")
	flags.StringVar(&a.logLevel, "log-level", "", "the same as --set log.level=LEVEL: debug, info, warn, error")
	flags.StringVar(&a.format, "format", "text", "format of what is written to standard output: text, json; validate also: github, explain also: mermaid, dot; test also: junit")
	root.AddCommand(
		newValidateCommand(a),
		newExplainCommand(a),
		newConfigCommand(a),
		newVersionCommand(a),
		newRunCommand(a),
		newTestCommand(a),
		newDevCommand(a),
		newKafkaCommand(a),
	)
	return root
}

func (a *app) acceptFormat(cmd *cobra.Command) error {
	known := []string{string(config.Text), string(config.JSON)}
	switch cmd.Name() {
	case "validate":
		known = append(known, string(config.GitHub))
	case "explain":
		known = topology.ExplainFormats
	case "test":
		known = append(known, junitFormat)
	case "dev":
		known = []string{string(config.Text)} // what it writes is for the person in front of it
	}
	if !slices.Contains(known, a.format) {
		return fmt.Errorf("--format %q: %s knows %q", a.format, cmd.Name(), known)
	}
	return nil
}
