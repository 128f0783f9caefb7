package tests

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
)

func environment(container core.Container) map[string]string {
	values := map[string]string{}
	for _, variable := range container.Env {
		values[variable.Name] = variable.Value
	}
	return values
}

// A replica count in the chart would override the autoscaler at every upgrade.
func TestReplicasAreLeftToTheAutoscaler(t *testing.T) {
	counted := func(text string) map[string]bool {
		rendered, err := render(valuesFrom(t, text))
		must(t, err)
		all := map[string]bool{}
		for _, object := range objects(t, rendered) {
			if deployment, is := object.(*apps.Deployment); is {
				all[deployment.Name] = deployment.Spec.Replicas != nil
			}
		}
		return all
	}
	for text, expected := range map[string]map[string]bool{
		"{}":                           {"daegi-api": false, "daegi-scheduler": true, "daegi-consumer": true},
		"consumer: { replicas: null }": {"daegi-api": false, "daegi-scheduler": true, "daegi-consumer": false},
		"consumer: { autoscaling: { enabled: true } }": {"daegi-api": false, "daegi-scheduler": true, "daegi-consumer": false},
		"api: { autoscaling: { enabled: false } }":     {"daegi-api": true, "daegi-scheduler": true, "daegi-consumer": true},
	} {
		if found := counted(text); !maps.Equal(found, expected) {
			t.Errorf("%s: the chart sets %v", text, found)
		}
	}
}

func TestADrainFitsIntoTheGracePeriod(t *testing.T) {
	lead, settle := constant(t, "process.rs", "MAX_READINESS_DELAY"), constant(t, "process.rs", "CLEANUP_TIMEOUT")
	eachDeployment(t, func(t *testing.T, deployment *apps.Deployment) {
		pod := deployment.Spec.Template.Spec
		drain, err := strconv.Atoi(environment(pod.Containers[0])["DAEGI_DRAIN_MS"])
		must(t, err)
		needed := pod.Containers[0].Lifecycle.PreStop.Sleep.Seconds + int64(drain/1000+lead+settle)
		if *pod.TerminationGracePeriodSeconds <= needed {
			t.Errorf("killed after %d s, may need %d s", *pod.TerminationGracePeriodSeconds, needed)
		}
	})
}

func TestPortsAndProbesAreThoseOfTheBinary(t *testing.T) {
	routes := source(t, "health.rs")
	eachDeployment(t, func(t *testing.T, deployment *apps.Deployment) {
		container := deployment.Spec.Template.Spec.Containers[0]
		options := optionsOf(t, "daegi-"+container.Name)
		for _, port := range container.Ports {
			address := options["DAEGI_"+strings.ToUpper(port.Name)+"_ADDR"]
			if !strings.HasSuffix(address, ":"+strconv.Itoa(int(port.ContainerPort))) {
				t.Errorf("%s is %d, the binary listens on %s", port.Name, port.ContainerPort, address)
			}
		}
		live, ready := container.LivenessProbe.HTTPGet, container.ReadinessProbe.HTTPGet
		if live.Path != "/livez" || ready.Path != "/readyz" {
			t.Errorf("probes call %s and %s", live.Path, ready.Path)
		}
		for _, probe := range []*core.HTTPGetAction{live, ready} {
			if !strings.Contains(routes, `.route("`+probe.Path+`"`) || probe.Port.StrVal != "internal" {
				t.Errorf("the binary does not serve %s on %s", probe.Path, probe.Port.StrVal)
			}
		}
	})
}

func TestEveryVariableIsAnOptionOfTheBinary(t *testing.T) {
	eachDeployment(t, func(t *testing.T, deployment *apps.Deployment) {
		container := deployment.Spec.Template.Spec.Containers[0]
		options := optionsOf(t, "daegi-"+container.Name)
		for name := range environment(container) {
			if _, known := options[name]; !known {
				t.Errorf("%s is not an option", name)
			}
		}
	})
}

// Only the full values name a collector, and the consumer creates no spans.
func TestTracesAreOffUnlessACollectorIsNamed(t *testing.T) {
	eachDeployment(t, func(t *testing.T, deployment *apps.Deployment) {
		container := deployment.Spec.Template.Spec.Containers[0]
		values := environment(container)
		endpoint, ratio := values["DAEGI_OTLP_ENDPOINT"], values["DAEGI_TRACE_RATIO"]
		traced := strings.Contains(t.Name(), "/full") && container.Name != "consumer"
		if traced && (endpoint != "http://otel-collector.monitoring:4318" || ratio != "0.001") {
			t.Errorf("traces go to %q, ratio %q", endpoint, ratio)
		}
		if !traced && endpoint+ratio != "" {
			t.Errorf("unexpected traces to %q, ratio %q", endpoint, ratio)
		}
	})
}

// Certificates and passwords. The whole directory is mounted, because single files would not change with the Secret.
func TestFilesOfVariablesAreMounted(t *testing.T) {
	eachDeployment(t, func(t *testing.T, deployment *apps.Deployment) {
		pod := deployment.Spec.Template.Spec
		mounted := false
		for _, volume := range pod.Volumes {
			for _, mount := range pod.Containers[0].VolumeMounts {
				mounted = mounted || volume.Secret.SecretName == "daegi-files" && volume.Name == mount.Name &&
					mount.MountPath == "/etc/daegi" && mount.SubPath == "" && mount.ReadOnly
			}
		}
		named := strings.HasPrefix(environment(pod.Containers[0])["DAEGI_REDIS_PASSWORD_FILE"], "/etc/daegi/")
		if mounted != strings.Contains(t.Name(), "/full") || named != mounted {
			t.Errorf("mounted: %t, named by a variable: %t", mounted, named)
		}
	})
}

func TestPodsHaveMinimalPrivileges(t *testing.T) {
	eachDeployment(t, func(t *testing.T, deployment *apps.Deployment) {
		pod := deployment.Spec.Template.Spec
		context := pod.Containers[0].SecurityContext
		if !*pod.SecurityContext.RunAsNonRoot || *context.AllowPrivilegeEscalation || !*context.ReadOnlyRootFilesystem ||
			!slices.Contains(context.Capabilities.Drop, "ALL") || *pod.AutomountServiceAccountToken {
			t.Error("a pod has privileges that it does not need")
		}
		if pod.Containers[0].Resources.Requests.Cpu().IsZero() || pod.Containers[0].Resources.Limits.Memory().IsZero() {
			t.Error("a pod has no resource requests")
		}
	})
}
