package tests

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
)

var (
	variable = regexp.MustCompile(`\[env: (DAEGI_[A-Z_]+)\](?:\s+\[default: ([^\]]*)\])?`)
	helps    = map[string]map[string]string{}
)

// Returns the variables of a binary with their defaults, from its --help.
func optionsOf(t *testing.T, binary string) map[string]string {
	t.Helper()
	if known, asked := helps[binary]; asked {
		return known
	}
	dir := os.Getenv("BINARIES")
	if dir == "" {
		t.Fatal("BINARIES is not set: run infra/test.sh")
	}
	help, err := exec.Command(filepath.Join(dir, binary), "--help").Output()
	must(t, err)
	options := map[string]string{}
	for _, found := range variable.FindAllSubmatch(help, -1) {
		options[string(found[1])] = string(found[2])
	}
	if len(options) < 20 {
		t.Fatalf("%s --help lists only %d options", binary, len(options))
	}
	helps[binary] = options
	return options
}

func source(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../crates/runtime/src", file))
	must(t, err)
	return string(text)
}

// Returns a constant of crates/runtime in seconds.
func constant(t *testing.T, file, name string) int {
	t.Helper()
	pattern := regexp.MustCompile(`const ` + name + `: Duration = Duration::from_secs\((\d+)\)`)
	found := pattern.FindStringSubmatch(source(t, file))
	if found == nil {
		t.Fatalf("%s has no constant %s in seconds", file, name)
	}
	seconds, err := strconv.Atoi(found[1])
	must(t, err)
	return seconds
}
