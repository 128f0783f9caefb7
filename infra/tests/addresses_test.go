package tests

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	core "k8s.io/api/core/v1"
)

// Cluster addresses in the docs must be services of the chart.
func TestAddressesInDocsAreServicesOfTheChart(t *testing.T) {
	rendered, err := render(nil)
	must(t, err)
	served := map[string]bool{}
	for _, object := range objects(t, rendered) {
		if service, is := object.(*core.Service); is {
			for _, port := range service.Spec.Ports {
				served[service.Name+":"+strconv.Itoa(int(port.Port))] = true
			}
		}
	}
	address := regexp.MustCompile(`http://(daegi-[a-z-]+)(?::(\d+))?`)
	checked := 0
	for _, file := range []string{"README.md", "README.ko.md", "docs/*.md", "docs/*/*.md", "crates/guard/README.md",
		"crates/guard/src/lib.rs", "sdk/java/README.md", "sdk/js/*.md"} {
		paths, err := filepath.Glob(filepath.Join("../..", file))
		must(t, err)
		for _, path := range paths {
			text, err := os.ReadFile(path)
			must(t, err)
			for _, found := range address.FindAllStringSubmatch(string(text), -1) {
				checked++
				port := found[2]
				if port == "" {
					port = "80"
				}
				if !served[found[1]+":"+port] {
					t.Errorf("%s: no service has the address %s", path, found[0])
				}
			}
		}
	}
	if checked < 4 {
		t.Errorf("only %d addresses were found", checked)
	}
}
