// Package tests checks the chart, the manifests and the compose file without a cluster and without Docker: helm's packages render,
// and the types of Kubernetes and compose decode strictly.
package tests

import (
	"flag"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/lint/support"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

const (
	chartDir  = "../helm/daegi"
	manifests = "../k8s/daegi.yaml"
	header    = "# Rendered from infra/helm/daegi with its default values by `make manifests`. Do not edit.\n"
)

var update = flag.Bool("update", false, "regenerate infra/k8s")

// Returns the sets of values that every test of the chart uses, by name.
func allValues(t *testing.T) map[string]chartutil.Values {
	t.Helper()
	all := map[string]chartutil.Values{"default": {}}
	for _, name := range []string{"minimal", "full"} {
		values, err := chartutil.ReadValuesFile(filepath.Join(chartDir, "ci", name+".yaml"))
		must(t, err)
		all[name] = values
	}
	return all
}

// Parses values from the text of a values file.
func valuesFrom(t *testing.T, text string) chartutil.Values {
	t.Helper()
	values, err := chartutil.ReadValues([]byte(text))
	must(t, err)
	return values
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Returns the output of `helm template daegi`, without the notes.
func render(values chartutil.Values) (string, error) {
	return renderRelease("daegi", values, engine.Render)
}

// Renders a release of this name.
func renderRelease(name string, values chartutil.Values, with func(*chart.Chart, chartutil.Values) (map[string]string, error)) (string, error) {
	chart, err := loader.LoadDir(chartDir)
	if err != nil {
		return "", err
	}
	release := chartutil.ReleaseOptions{Name: name, Namespace: "default", IsInstall: true}
	// Validates the values against values.schema.json.
	all, err := chartutil.ToRenderValues(chart, values, release, chartutil.DefaultCapabilities)
	if err != nil {
		return "", err
	}
	files, err := with(chart, all)
	if err != nil {
		return "", err
	}
	names := make([]string, 0, len(files))
	for name := range files {
		if strings.HasSuffix(name, ".yaml") {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	var out strings.Builder
	for _, name := range names {
		for _, document := range strings.Split("\n"+files[name], "\n---\n") {
			if document = strings.TrimSpace(document); document != "" {
				out.WriteString("---\n" + document + "\n")
			}
		}
	}
	return out.String(), nil
}

func TestHelmLints(t *testing.T) {
	for name, values := range allValues(t) {
		linter := lint.All(chartDir, values, "default", true)
		for _, message := range linter.Messages {
			// The missing icon is the only permitted message.
			if message.Severity > support.InfoSev {
				t.Errorf("%s: %s", name, message)
			}
		}
	}
}

func TestInvalidValuesAreRejected(t *testing.T) {
	for text, why := range map[string]string{
		"api: { replica: 3 }":                    "replica",
		"store: { url: 'mysql://x' }":            "pattern",
		"kafka: broker":                          "pattern",
		"drainSeconds: -1":                       "minimum",
		"ingress: { enabled: true }":             "minItems",
		"env: { DAEGI_STORE: 'redis://other' }":  "DAEGI_STORE",
		"env: { TICK_MS: '50' }":                 "TICK_MS",
		"tracing: { endpoint: 'grpc://x:4317' }": "pattern",
		"files: { name: 'daegi-files' }":         "name",
		"tracing: { ratio: 2 }":                  "maximum",
		"secrets: { create: true }":              "ticketSecrets",
		"secrets: { create: true, ticketSecrets: '1:00112233445566778899aabbccddeeff', passKey: '-----BEGIN PRIVATE KEY-----', adminToken: x }": "minLength",
		"secrets: { create: true, ticketSecrets: '1:00', passKey: '-----BEGIN PRIVATE KEY-----', adminToken: long-enough-to-be-one }":           "pattern",
		"store: { fromSecret: { name: 'redis' } }":                "key",
		"monitoring: { rules: yes please }":                       "rules",
		"api: { autoscaling: { targetRequestsPerSecond: 1000 } }": "monitoring.rules",
	} {
		if _, err := render(valuesFrom(t, text)); err == nil {
			t.Errorf("%s was accepted; %s is invalid", text, why)
		}
	}
}

// A release's name has at most 53 characters (helm), a Service's at most 63 (Kubernetes).
func TestNamesFitForAnyReleaseName(t *testing.T) {
	for _, release := range []string{strings.Repeat("a", 53), "daegi-" + strings.Repeat("b", 47), strings.Repeat("c", 43) + "-" + strings.Repeat("d", 9)} {
		rendered, err := renderRelease(release, chartutil.Values{}, engine.Render)
		must(t, err)
		for _, object := range objects(t, rendered) {
			name := object.(meta.Object).GetName()
			if problems := validation.IsDNS1035Label(name); len(problems) > 0 {
				t.Errorf("release %s: %s has %d characters: %v", release, name, len(name), problems)
			}
		}
	}
}

// A recording rule provides the metric: of the chart, or loaded elsewhere.
func TestAnAutoscalerMayUseRequestsIfTheMetricIsRecorded(t *testing.T) {
	for rules, own := range map[string]bool{"true": true, "elsewhere": false} {
		rendered, err := render(valuesFrom(t, "api: { autoscaling: { targetRequestsPerSecond: 1000 } }\nmonitoring: { rules: "+rules+" }"))
		must(t, err)
		if !strings.Contains(rendered, "metric: { name: daegi_api_requests_per_second }") {
			t.Errorf("rules %s: the autoscaler does not use requests", rules)
		}
		if strings.Contains(rendered, "kind: PrometheusRule") != own {
			t.Errorf("rules %s: the PrometheusRule is present or absent against the setting", rules)
		}
	}
}

func TestManifestsMatchTheChart(t *testing.T) {
	rendered, err := render(chartutil.Values{})
	must(t, err)
	rendered = header + rendered
	if *update {
		must(t, os.WriteFile(manifests, []byte(rendered), 0o644))
	}
	committed, err := os.ReadFile(manifests)
	must(t, err)
	if string(committed) != rendered {
		t.Error("infra/k8s differs from the rendered chart: run make manifests")
	}
}
