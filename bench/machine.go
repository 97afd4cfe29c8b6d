package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"millrace/bench/results"
)

// buildMillrace builds the binary as `make build` does.
func buildMillrace(ctx context.Context, root, binary string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", binary, ".")
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build millrace: %w\n%s", err, out)
	}
	return nil
}

// describeMachine leaves empty what this machine does not tell.
func describeMachine(millrace string) results.Machine {
	memory, _ := strconv.ParseInt(strings.TrimSuffix(lineOf("/proc/meminfo", "MemTotal"), " kB"), 10, 64) // 0 when unknown
	return results.Machine{CPU: lineOf("/proc/cpuinfo", "model name"), Cores: runtime.NumCPU(), Memory: memory << 10,
		Kernel: firstLine(exec.Command("uname", "-sr")), Go: runtime.Version(), Java: firstLine(exec.Command("java", "--version")),
		Millrace: firstLine(exec.Command(millrace, "version"))}
}

// lineOf returns the value of the first "name : value" of a file.
func lineOf(file, name string) string {
	text, err := os.ReadFile(filepath.Clean(file))
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

func firstLine(cmd *exec.Cmd) string {
	out, err := cmd.Output()
	if err != nil {
		return ""
	}
	first, _, _ := strings.Cut(string(out), "\n")
	return strings.TrimSpace(first)
}
