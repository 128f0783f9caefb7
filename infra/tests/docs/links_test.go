package docs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Links into the repository must lead to existing files and headings. Other hosts are not called.
func TestLinksLeadToExistingTargets(t *testing.T) {
	all := texts(t)
	checked := 0
	for path, text := range all {
		for _, target := range links(text) {
			if strings.Contains(target, "://") {
				continue
			}
			checked++
			file, anchor, _ := strings.Cut(target, "#")
			aim := path
			if file != "" {
				aim = filepath.Join(filepath.Dir(path), file)
			}
			if _, err := os.Stat(filepath.Join(root, aim)); err != nil {
				t.Errorf("%s: %s does not exist", path, target)
			} else if anchor != "" && !anchors(all[aim])[anchor] {
				t.Errorf("%s: %s has no heading %q", path, aim, anchor)
			}
		}
	}
	if checked < 100 {
		t.Errorf("only %d links were found", checked)
	}
}
