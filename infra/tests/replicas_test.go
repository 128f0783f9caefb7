package tests

import (
	"testing"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/scheme"
)

// The cluster that `lookup` in templates reads from.
type cluster struct{ client dynamic.Interface }

func (c cluster) GetClientFor(apiVersion, kind string) (dynamic.NamespaceableResourceInterface, bool, error) {
	resource := schema.FromAPIVersionAndKind(apiVersion, kind).GroupVersion().WithResource(map[string]string{
		"Namespace": "namespaces", "Deployment": "deployments",
	}[kind])
	return c.client.Resource(resource), kind == "Deployment", nil
}

// Returns the replicas of the api's Deployment as helm installs it into a cluster with these objects.
func replicasIn(t *testing.T, existing ...runtime.Object) *int32 {
	t.Helper()
	system := &core.Namespace{ObjectMeta: meta.ObjectMeta{Name: "kube-system"}}
	client := cluster{fake.NewSimpleDynamicClient(scheme.Scheme, append(existing, system)...)}
	rendered, err := renderRelease("daegi", chartutil.Values{}, func(chart *chart.Chart, values chartutil.Values) (map[string]string, error) {
		return engine.RenderWithClientProvider(chart, values, client)
	})
	must(t, err)
	for _, object := range objects(t, rendered) {
		if deployment, is := object.(*apps.Deployment); is && deployment.Name == "daegi-api" {
			return deployment.Spec.Replicas
		}
	}
	t.Fatal("the chart has no Deployment daegi-api")
	return nil
}

func TestAFirstInstallStartsMinReplicas(t *testing.T) {
	if found := replicasIn(t); found == nil || *found != 2 {
		t.Errorf("a first install starts %v pods", found)
	}
}

func TestAnUpgradeKeepsTheReplicasOfTheAutoscaler(t *testing.T) {
	seven := int32(7)
	running := &apps.Deployment{ObjectMeta: meta.ObjectMeta{Name: "daegi-api", Namespace: "default"}, Spec: apps.DeploymentSpec{Replicas: &seven}}
	if found := replicasIn(t, running); found == nil || *found != 7 {
		t.Errorf("an upgrade sets %v pods", found)
	}
}
