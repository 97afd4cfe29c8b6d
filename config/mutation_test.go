package config

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"millrace/topology"
)

const mutants = 10_000

// TestMalformedConfigurations damages the example in ten thousand ways. Each must end in findings or in a configuration,
// never in a panic, and every finding must point into the file.
func TestMalformedConfigurations(t *testing.T) {
	example, err := os.ReadFile(filepath.Join("..", DefaultFile))
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(7, 11))
	refused, accepted := 0, 0
	for i := range mutants {
		text := mutate(random, example)
		found := &findings{}
		c := loadText(text, found)
		if !HasErrors(found.list) {
			accepted++
			if c == nil {
				t.Fatalf("mutant %d: neither a configuration nor an error\n%s", i, text)
			}
			continue
		}
		refused++
		if i%50 == 0 {
			render(t, found.list, Text)
		}
		for _, f := range found.list {
			if f.Code == "" || f.Message == "" || (f.Pos.File == "config.yaml" && f.Pos.Line > 0 && f.Pos.Col < 1) {
				t.Fatalf("mutant %d: finding %+v", i, f)
			}
		}
	}
	if refused < mutants/2 || accepted < mutants/100 {
		t.Errorf("%d refused, %d accepted: the mutations are too weak or too strong to show anything", refused, accepted)
	}
}

// loadText does what Load does with one file, without a file.
func loadText(text []byte, found *findings) *Config {
	tree, _ := parseText("config.yaml", text, found)
	if tree == nil {
		return nil
	}
	c := &Config{tree: tree}
	x := expander{lookup: nothingSet, found: found}
	l := settingsLoader{tree: tree, expander: x, file: "config.yaml"}
	c.Settings, c.origins = l.load()
	if n := tree.get("topology"); n != nil {
		c.Spec = decoder{expander: x}.topology(n)
	} else {
		found.errorAt(topology.Pos{}, codeMissing, "topology", "")
	}
	if n := tree.get("tests"); n != nil {
		c.Tests = testDecoder{found: found}.tests(n)
	}
	return c
}

var fragments = []string{
	"{", "}", "[", "]", ":", ": ", "-", "- ", "\n", "\t", "  ", "\"", "'", "|", ">", "&a ", "*a", "!!int ", "<<: ", "#", "~", "null", "true", "0", "-1",
	"99999999999999999999", "1e999", "${env:X}", "${file:/}", "${", "$$", "\x00", "\xff", "é", "\u2028", "key: value", "x-a: &a {}", "---\n", "...\n", "%YAML 9\n", "? ", "@", "`",
}

// mutate makes one to four changes: bytes replaced, pieces cut, doubled, moved, or fragments of YAML put in.
func mutate(random *rand.Rand, text []byte) []byte {
	out := append([]byte(nil), text...)
	for range 1 + random.IntN(4) {
		at := random.IntN(len(out))
		end := min(len(out), at+1+random.IntN(40))
		switch random.IntN(6) {
		case 0:
			out[at] = byte(random.IntN(256))
		case 1:
			out = append(out[:at:at], out[end:]...)
		case 2:
			out = append(out[:end:end], append(append([]byte(nil), out[at:end]...), out[end:]...)...)
		case 3:
			to := random.IntN(len(out))
			piece := append([]byte(nil), out[at:end]...)
			out = append(out[:to:to], append(piece, out[to:]...)...)
		default:
			fragment := fragments[random.IntN(len(fragments))]
			out = append(out[:at:at], append([]byte(fragment), out[at:]...)...)
		}
	}
	return out
}
