package tests

import (
	"strings"
	"testing"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes/scheme"
)

// Returns every object of a rendering, decoded strictly as by an API server: unknown and repeated fields are errors.
func objects(t *testing.T, rendered string) []runtime.Object {
	t.Helper()
	must(t, monitoring.AddToScheme(scheme.Scheme))
	strict := serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()
	var all []runtime.Object
	for _, document := range strings.Split(rendered, "---\n")[1:] {
		object, _, err := strict.Decode([]byte(document), nil, nil)
		if err != nil {
			t.Errorf("%v in\n%s", err, document)
			continue
		}
		all = append(all, object)
	}
	return all
}

func TestEveryObjectDecodesStrictly(t *testing.T) {
	least := map[string]int{"minimal": 8, "default": 15, "full": 20}
	for name, values := range allValues(t) {
		rendered, err := render(values)
		must(t, err)
		if found := len(objects(t, rendered)); found < least[name] {
			t.Errorf("%s: only %d objects", name, found)
		}
	}
}

// Runs a check on every Deployment of every set of values.
func eachDeployment(t *testing.T, check func(t *testing.T, deployment *apps.Deployment)) {
	for name, values := range allValues(t) {
		rendered, err := render(values)
		must(t, err)
		for _, object := range objects(t, rendered) {
			if deployment, is := object.(*apps.Deployment); is {
				t.Run(name+"/"+deployment.Name, func(t *testing.T) { check(t, deployment) })
			}
		}
	}
}

func TestOnlyThePublicListenerIsExposed(t *testing.T) {
	rendered, err := render(allValues(t)["full"])
	must(t, err)
	for _, object := range objects(t, rendered) {
		switch object := object.(type) {
		case *networking.Ingress:
			for _, rule := range object.Spec.Rules {
				for _, path := range rule.HTTP.Paths {
					if backend := path.Backend.Service; backend.Name != "daegi-api" || backend.Port.Name != "public" {
						t.Errorf("the ingress routes to %v", backend)
					}
				}
			}
		case *networking.NetworkPolicy:
			for _, rule := range object.Spec.Ingress {
				if rule.Ports[0].Port.StrVal == "internal" && len(rule.From) == 0 {
					t.Errorf("%s opens the internal listener to all clients", object.Name)
				}
			}
		case *core.Service:
			for _, port := range object.Spec.Ports {
				internal := object.Labels["daegi/listener"] == "internal"
				if internal != (port.Name == "internal") || object.Spec.Type != "" {
					t.Errorf("%s mixes listeners or leaves the cluster", object.Name)
				}
			}
		}
	}
}
