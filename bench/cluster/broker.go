package cluster

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// Broker is a Kafka that scripts/kafka.sh runs for the benchmark.
type Broker struct {
	Addr   string
	PID    int // 0: it was there before and is not ours to look at
	script string
	dir    string
}

// StartBroker starts a broker that keeps its data in dir. prefix goes before the script's command line, as in taskset -c 1.
func StartBroker(ctx context.Context, script, dir string, prefix []string) (*Broker, error) {
	args := append(append([]string{}, prefix...), script, "start", dir, "0")
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	var problem bytes.Buffer
	cmd.Stderr = &problem
	addr, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(problem.String()))
	}
	b := &Broker{Addr: strings.TrimSpace(string(addr)), script: script, dir: dir}
	if text, err := os.ReadFile(filepath.Join(dir, "pid")); err == nil {
		b.PID, _ = strconv.Atoi(strings.TrimSpace(string(text))) // 0 means the same as no file
	}
	return b, nil
}

// Stop ends the broker, if it is ours, and removes its data.
func (b *Broker) Stop() error {
	if out, err := exec.Command(b.script, "stop", b.dir).CombinedOutput(); err != nil {
		return fmt.Errorf("stop the broker of %s: %w: %s", b.dir, err, out)
	}
	return os.RemoveAll(b.dir)
}
