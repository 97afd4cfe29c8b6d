package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"millrace/config"
	"millrace/kafka"
)

func newKafkaCommand(a *app) *cobra.Command {
	parent := &cobra.Command{
		Use:   "kafka",
		Short: "Look at the connection to Kafka",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	parent.AddCommand(&cobra.Command{
		Use:   "ping",
		Short: "Try each step of the way to Kafka and say which one fails",
		Long: "Ping goes from name resolution over TCP, TLS and SASL to the topics, the group and the transactions of the job, and reports each step with its time. " +
			"It changes nothing and disturbs no running replica. Exit code 3: a step failed.",
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			ctx, stop := untilStopped()
			defer stop()
			return a.ping(ctx)
		},
	})
	return parent
}

func (a *app) ping(ctx context.Context) error {
	job, err := a.loadJob()
	if err != nil {
		return err
	}
	plan, err := planOf(job)
	if err != nil {
		return err
	}
	var topics []kafka.PingTopic
	for _, name := range plan.SourceTopics() {
		topics = append(topics, kafka.PingTopic{Name: name})
	}
	for _, name := range plan.OutputTopics() {
		topics = append(topics, kafka.PingTopic{Name: name, Write: true})
	}
	report := a.pingText
	if a.format == string(config.JSON) {
		report = a.pingJSON
	}
	if err := kafka.Ping(ctx, kafkaConfig(job.Settings, "ping"), topics, report); err != nil {
		return &exitError{code: exitRuntime} // the report has said it
	}
	return nil
}

func (a *app) pingText(s kafka.PingStep) {
	verdict, text := "ok  ", s.Detail
	if s.Err != nil {
		verdict, text = "FAIL", s.Err.Error()
	}
	fmt.Fprintf(a.stdout, "  %s  %-11s  %-40s  %6.1f ms  %s\n", verdict, s.Name, s.Target, float64(s.Took.Microseconds())/1000, text)
}

func (a *app) pingJSON(s kafka.PingStep) {
	line := struct {
		Step   string  `json:"step"`
		Target string  `json:"target"`
		OK     bool    `json:"ok"`
		Millis float64 `json:"ms"`
		Detail string  `json:"detail,omitempty"`
		Error  string  `json:"error,omitempty"`
	}{Step: s.Name, Target: s.Target, OK: s.Err == nil, Millis: float64(s.Took) / float64(time.Millisecond), Detail: s.Detail}
	if s.Err != nil {
		line.Error = s.Err.Error()
	}
	_ = json.NewEncoder(a.stdout).Encode(line) // a closed pipe is the reader's decision
}
