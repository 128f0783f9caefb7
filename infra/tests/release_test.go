package tests

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Every file that names the version of the project.
var versioned = []string{
	"Cargo.toml", "Cargo.lock", "infra/helm/daegi/Chart.yaml", "infra/k8s/kustomization.yaml", "infra/k8s/daegi.yaml", "docs/OPERATIONS.md",
	"README.md", "README.ko.md", "docs/UPGRADING.md",
	"sdk/js/package.json", "web/wait/package.json", "web/console/package.json", "web/test/package.json", "package-lock.json", "sdk/java/pom.xml", "sdk/python/pyproject.toml",
}

const versionScript = "infra/release/version.sh"

func currentVersion(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../Cargo.toml")
	must(t, err)
	return regexp.MustCompile(`(?m)^version = "(.+)"$`).FindStringSubmatch(string(text))[1]
}

func TestEveryFileNamesTheSameVersion(t *testing.T) {
	version := currentVersion(t)
	said, err := exec.Command("../../"+versionScript, "v"+version).CombinedOutput()
	if err != nil || strings.TrimSpace(string(said)) != "version="+version {
		t.Errorf("%v: %s", err, said)
	}
	if said, err := exec.Command("../../"+versionScript, "v99.0.0").CombinedOutput(); err == nil {
		t.Errorf("a tag of another version is accepted: %s", said)
	}
}

// A release whose files disagree must not start: each file is given another version in a copy.
func TestAFileWithAnotherVersionStopsARelease(t *testing.T) {
	version := currentVersion(t)
	for _, changed := range versioned {
		dir := t.TempDir()
		for _, name := range append([]string{versionScript}, versioned...) {
			text, err := os.ReadFile(filepath.Join("../..", name))
			must(t, err)
			if name == changed {
				text = []byte(otherVersion(name, string(text), version))
			}
			must(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
			must(t, os.WriteFile(filepath.Join(dir, name), text, 0o755))
		}
		if said, err := exec.Command(filepath.Join(dir, versionScript)).CombinedOutput(); err == nil {
			t.Errorf("%s with another version is accepted: %s", changed, said)
		}
	}
}

// The text with one place changed where it names our version. Lock files name many versions; ours follow our names.
func otherVersion(name, text, version string) string {
	after := 0
	switch name {
	case "Cargo.lock":
		after = strings.Index(text, `name = "daegi`)
	case "package-lock.json":
		after = strings.Index(text, `    "sdk/js": {`)
	case "README.md", "README.ko.md", "docs/UPGRADING.md":
		after = strings.Index(text, "IMAGE_TAG=")
	case "sdk/java/pom.xml":
		after = strings.Index(text, "<artifactId>daegi-sdk<")
	}
	return text[:after] + strings.Replace(text[after:], version, "99.0.0", 1)
}

// `docker compose pull` finds what a release has published, and nothing else.
func TestComposeRunsTheImagesOfARelease(t *testing.T) {
	script, err := os.ReadFile("../release/images.sh")
	must(t, err)
	var published []string
	for _, found := range regexp.MustCompile(`(?m)^(?:service|worker|example) (daegi-[a-z-]+) `).FindAllStringSubmatch(string(script), -1) {
		published = append(published, "registry.test/team/"+found[1]+":1.2.3")
	}
	var used []string
	for _, service := range composeWith(t, []string{"IMAGE_REGISTRY=registry.test/team", "IMAGE_TAG=1.2.3"}).Services {
		if strings.Contains(service.Image, "daegi-") && !slices.Contains(used, service.Image) {
			used = append(used, service.Image)
		}
	}
	slices.Sort(published)
	slices.Sort(used)
	if !slices.Equal(published, used) || len(used) != 5 {
		t.Errorf("compose runs %v, a release publishes %v", used, published)
	}
	index, err := os.ReadFile("../release/publish.sh")
	must(t, err)
	for _, image := range published {
		name := strings.TrimSuffix(strings.TrimPrefix(image, "registry.test/team/"), ":1.2.3")
		if !strings.Contains(string(index), " "+name+" ") {
			t.Errorf("publish.sh does not sign %s", name)
		}
	}
}

// jsonschema validates documents in tests and alone takes as long to compile as the store; proptest and tempfile are for tests, too.
func TestReleasedBinariesLinkNoLibraryOfTests(t *testing.T) {
	tree := exec.Command("cargo", "tree", "--locked", "--offline", "--edges", "normal,build", "--prefix", "none", "--format", "{p}",
		"-p", "daegi", "-p", "daegi-api", "-p", "daegi-scheduler", "-p", "daegi-consumer", "-p", "daegi-storefront")
	tree.Dir = "../.."
	said, err := tree.Output()
	must(t, err)
	linked := regexp.MustCompile(`(?m)^(jsonschema|proptest|tempfile|daegi-testkit) `).FindAllString(string(said), -1)
	if len(linked) > 0 || !strings.Contains(string(said), "tokio v") {
		t.Errorf("released binaries link %v", linked)
	}
}
