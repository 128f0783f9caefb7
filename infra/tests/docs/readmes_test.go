package docs

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

var remark = regexp.MustCompile(`(?m)\s*(^|\s)(#|//) .*$`)

// What both READMEs must have in common. Text, comments in code and anchors of headings may differ.
type skeleton struct {
	headings, code, links []string
}

func skeletonOf(text string) (bones skeleton) {
	for _, found := range title.FindAllStringSubmatch(prose(text), -1) {
		bones.headings = append(bones.headings, found[1])
	}
	for _, block := range fence.FindAllString(text, -1) {
		bones.code = append(bones.code, remark.ReplaceAllString(block, ""))
	}
	for _, target := range links(text) {
		file, _, _ := strings.Cut(target, "#")
		// Each links to the other.
		if file != "README.md" && file != "README.ko.md" {
			bones.links = append(bones.links, file)
		}
	}
	// Sentences have their links in another order.
	slices.Sort(bones.links)
	return bones
}

func TestBothReadmesHaveTheSameStructure(t *testing.T) {
	english, korean := skeletonOf(read(t, "README.md")), skeletonOf(read(t, "README.ko.md"))
	for what, pair := range map[string][2][]string{
		"headings":    {english.headings, korean.headings},
		"code blocks": {english.code, korean.code},
		"links":       {english.links, korean.links},
	} {
		if len(pair[0]) != len(pair[1]) {
			t.Errorf("%s: %d in README.md, %d in README.ko.md", what, len(pair[0]), len(pair[1]))
		}
		for i := range min(len(pair[0]), len(pair[1])) {
			if pair[0][i] != pair[1][i] {
				t.Errorf("%s differ:\n%s\nand\n%s", what, pair[0][i], pair[1][i])
				break
			}
		}
	}
}
