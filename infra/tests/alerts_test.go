package tests

import (
	"os"
	"path/filepath"
	"testing"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"sigs.k8s.io/yaml"
)

func TestEveryAlertHasASummaryASeverityAndARunbook(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(chartDir, "files/alerts.yml"))
	must(t, err)
	var rules monitoring.PrometheusRuleSpec
	must(t, yaml.UnmarshalStrict(text, &rules))
	for _, group := range rules.Groups {
		for _, rule := range group.Rules {
			if rule.Alert == "" {
				continue
			}
			if rule.Labels["severity"] == "" || rule.Annotations["summary"] == "" {
				t.Errorf("%s lacks a summary or a severity", rule.Alert)
			}
			if _, err := os.Stat(filepath.Join("../..", rule.Annotations["runbook"])); err != nil || rule.Annotations["runbook"] == "" {
				t.Errorf("%s has no runbook: %v", rule.Alert, err)
			}
		}
	}
}
