package docs

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const configuration = "docs/CONFIGURATION.md"

var (
	update = flag.Bool("update", false, "write docs/CONFIGURATION.md anew")
	option = regexp.MustCompile(
		`(?m)^ +(--[a-z-]+)(?:\[=<[A-Z]+>\]| <[A-Z]+>) +(.+) \[env: (DAEGI_[A-Z_]+)\](?: \[default: ([^\]]*)\])?$`)
)

const preface = `# Configuration

<!-- Written by ` + "`make docs`" + ` from what the binaries say of themselves. Do not edit. -->

Every option is a variable, too; the command line wins. All binaries know all options, so that a fleet can share one environment. A
variable that begins with ` + "`DAEGI_`" + ` and is no option is refused, and so is a bad value: one line that names it, and exit 64.
An empty variable counts as unset.

` + "`daegi`" + ` starts with none of them and makes the secrets it is not given, anew with every start. The others need a store and what they
work with: the api ` + "`--ticket-secrets`" + ` and ` + "`--pass-key`" + `, the scheduler ` + "`--ticket-secrets`" + ` and ` + "`--admin-token`" + `, the consumer
` + "`--ticket-secrets`" + `. How to make secrets and change them: [OPERATIONS.md](OPERATIONS.md#rotating-secrets). What can change while it runs
(quota, tick, policies) is in the [admin API](ADMIN.md).

| option | variable | default | meaning |
|---|---|---|---|
`

// What a binary says of its options: name, meaning, variable, default.
func optionsOf(t *testing.T, binary string) [][]string {
	t.Helper()
	dir := os.Getenv("BINARIES")
	if dir == "" {
		t.Fatal("BINARIES names no folder: infra/test.sh and make docs do")
	}
	help, err := exec.Command(filepath.Join(dir, binary), "--help").Output()
	must(t, err)
	var options [][]string
	for _, found := range option.FindAllStringSubmatch(string(help), -1) {
		options = append(options, found[1:])
	}
	if mentioned := strings.Count(string(help), "[env: "); mentioned != len(options) || mentioned < 20 {
		t.Fatalf("%s --help tells of %d options, %d were understood", binary, mentioned, len(options))
	}
	return options
}

func code(text string) string {
	if text == "" {
		return ""
	}
	return "`" + text + "`"
}

func TestConfigurationIsWhatTheBinariesSay(t *testing.T) {
	alone := optionsOf(t, "daegi")
	var out strings.Builder
	out.WriteString(preface)
	for i, fleet := range optionsOf(t, "daegi-api") {
		value := code(fleet[3])
		if own := alone[i][3]; own != fleet[3] {
			value = strings.TrimPrefix(value+"; ", "; ") + code(own) + " in `daegi`"
		}
		fmt.Fprintf(&out, "| `%s` | `%s` | %s | %s |\n", fleet[0], fleet[2], value, fleet[1])
	}
	if *update {
		must(t, os.WriteFile(filepath.Join(root, configuration), []byte(out.String()), 0o644))
	}
	if read(t, configuration) != out.String() {
		t.Errorf("%s is not what the binaries say: make docs", configuration)
	}
}

// Every string of a Rust file that the pattern finds is told in a text, as code.
func tells(t *testing.T, text, file string, pattern string) {
	t.Helper()
	found := regexp.MustCompile(pattern).FindAllStringSubmatch(read(t, file), -1)
	if len(found) < 4 {
		t.Fatalf("%s: only %d of %s", file, len(found), pattern)
	}
	for _, name := range found {
		if !strings.Contains(read(t, text), name[1]+"`") {
			t.Errorf("%s does not tell of %s", text, name[1])
		}
	}
}

func TestTheApiReferenceTellsOfEveryErrorAndRoute(t *testing.T) {
	tells(t, "docs/API.md", "crates/runtime/src/problem/code.rs", `\(S::[A-Z_]+, "([A-Z_]+)"`)
	tells(t, "docs/API.md", "services/api/src/routes.rs", `const [A-Z_]+: &str = "([^"]+)"`)
}

func TestTheAdminReferenceTellsOfEveryCall(t *testing.T) {
	tells(t, "docs/ADMIN.md", "services/scheduler/src/admin/routes.rs", `"(?:get|put|post|patch|delete)", "/([^"]+)"`)
}
