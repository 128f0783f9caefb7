// Package docs checks the documentation: links, equal structure of both READMEs, and references that match the code. It needs only the
// standard library.
package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const root = "../../.."

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Returns a file of the repository.
func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, path))
	must(t, err)
	return string(text)
}

// Returns every Markdown file by its path in the repository, without files that tools have installed.
func texts(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	must(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && (entry.Name() == "node_modules" || entry.Name() == "target" || entry.Name() == ".git") {
			return filepath.SkipDir
		}
		if filepath.Ext(path) == ".md" {
			relative, err := filepath.Rel(root, path)
			must(t, err)
			all[relative] = read(t, relative)
		}
		return nil
	}))
	return all
}

var (
	fence  = regexp.MustCompile("(?ms)^ *```[a-z]*\n.*?^ *```$")
	quoted = regexp.MustCompile("`[^`\n]*`")
	link   = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	title  = regexp.MustCompile(`(?m)^(#+) (.+)$`)
	spoken = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
)

// Returns the text without its code blocks.
func prose(text string) string { return fence.ReplaceAllString(text, "") }

// Returns the link targets of a text in order, images included.
func links(text string) []string {
	var targets []string
	for _, found := range link.FindAllStringSubmatch(quoted.ReplaceAllString(prose(text), ""), -1) {
		targets = append(targets, found[1])
	}
	return targets
}

// Returns the anchors of headings as on GitHub.
func anchors(text string) map[string]bool {
	all := map[string]bool{}
	for _, found := range title.FindAllStringSubmatch(prose(text), -1) {
		words := spoken.ReplaceAllString(strings.ToLower(found[2]), "")
		all[strings.ReplaceAll(strings.TrimSpace(words), " ", "-")] = true
	}
	return all
}
