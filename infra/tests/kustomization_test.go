package tests

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// Returns the output of `kubectl kustomize infra/k8s` after replacing texts in kustomization.yaml.
func kustomizeBuild(t *testing.T, changes ...string) []runtime.Object {
	t.Helper()
	files := filesys.MakeFsInMemory()
	for _, name := range []string{"daegi.yaml", "kustomization.yaml"} {
		text, err := os.ReadFile(filepath.Join(filepath.Dir(manifests), name))
		must(t, err)
		if name == "kustomization.yaml" {
			text = []byte(strings.NewReplacer(changes...).Replace(string(text)))
		}
		must(t, files.WriteFile("/k8s/"+name, text))
	}
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(files, "/k8s")
	must(t, err)
	text, err := built.AsYaml()
	must(t, err)
	return objects(t, "---\n"+string(text))
}

func TestTheKustomizationSetsImagesAddressesAndTheNamespace(t *testing.T) {
	all := kustomizeBuild(t, "registry.example.com", "registry.test", "0.1.0", "1.2.3",
		"redis://redis:6379", "redis+cluster://a:1,b:2", "kafka:9092", "broker:9")
	deployments := 0
	for _, object := range all {
		if named, is := object.(meta.Object); !is || named.GetNamespace() != "daegi" {
			t.Errorf("%T has no namespace", object)
		}
		switch object := object.(type) {
		case *core.ConfigMap:
			t.Errorf("%s would be applied", object.Name)
		case *apps.Deployment:
			deployments++
			container := object.Spec.Template.Spec.Containers[0]
			if container.Image != "registry.test/daegi-"+container.Name+":1.2.3" {
				t.Errorf("%s is pulled from %s", object.Name, container.Image)
			}
			values := environment(container)
			if values["DAEGI_STORE"] != "redis+cluster://a:1,b:2" || values["DAEGI_KAFKA"] != "broker:9" {
				t.Errorf("%s uses %s and %s", object.Name, values["DAEGI_STORE"], values["DAEGI_KAFKA"])
			}
		}
	}
	if deployments != 3 {
		t.Errorf("%d deployments", deployments)
	}
}

// Only registry and namespace change: the same objects, the same addresses, the version of the chart.
func TestTheKustomizationMatchesTheChart(t *testing.T) {
	rendered, err := render(nil)
	must(t, err)
	plain, own := objects(t, rendered), kustomizeBuild(t)
	if len(plain) != len(own) {
		t.Fatalf("%d objects of the chart, %d here", len(plain), len(own))
	}
	containers := map[string]core.Container{}
	for _, object := range plain {
		if deployment, is := object.(*apps.Deployment); is {
			containers[deployment.Name] = deployment.Spec.Template.Spec.Containers[0]
		}
	}
	for _, object := range own {
		deployment, is := object.(*apps.Deployment)
		if !is {
			continue
		}
		theirs, ours := containers[deployment.Name], deployment.Spec.Template.Spec.Containers[0]
		if ours.Image != "registry.example.com/"+theirs.Image {
			t.Errorf("%s is not the image of %s", ours.Image, theirs.Image)
		}
		for name, value := range environment(theirs) {
			if environment(ours)[name] != value {
				t.Errorf("%s: %s is %s, not %s", deployment.Name, name, environment(ours)[name], value)
			}
		}
	}
}
