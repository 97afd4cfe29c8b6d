package process

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
)

// Pins splits the machine's cores: the measured process has some for itself, broker and benchmark share the others. The zero Pins pin
// nothing.
type Pins struct {
	Processor string // as taskset -c takes it
	Others    string
}

// SplitCores returns Pins for this machine, or the zero Pins where it has one core only or no taskset.
func SplitCores() Pins {
	if _, err := exec.LookPath("taskset"); err != nil || runtime.NumCPU() < 2 {
		return Pins{}
	}
	half := runtime.NumCPU() / 2
	return Pins{Processor: cores(0, half-1), Others: cores(half, runtime.NumCPU()-1)}
}

func cores(first, last int) string {
	if first == last {
		return strconv.Itoa(first)
	}
	return fmt.Sprintf("%d-%d", first, last)
}

// Prefix goes before a command line that is to run on the given cores.
func Prefix(cores string) []string {
	if cores == "" {
		return nil
	}
	return []string{"taskset", "-c", cores}
}

// PinSelf moves all threads of this process to the given cores.
func PinSelf(cores string) error {
	if cores == "" {
		return nil
	}
	if out, err := exec.Command("taskset", "-a", "-c", "-p", cores, strconv.Itoa(os.Getpid())).CombinedOutput(); err != nil {
		return fmt.Errorf("taskset: %w: %s", err, out)
	}
	return nil
}
