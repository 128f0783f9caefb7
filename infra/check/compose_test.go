package check

import (
	"context"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
)

// What `docker compose config` makes of the file, with these profiles or those of .env.
func compose(t *testing.T, profiles ...string) *types.Project {
	t.Helper()
	return composeWith(t, nil, profiles...)
}

// The same with these variables, each `NAME=value`.
func composeWith(t *testing.T, variables []string, profiles ...string) *types.Project {
	t.Helper()
	options, err := cli.NewProjectOptions([]string{"../../docker-compose.yml"}, cli.WithWorkingDirectory("../.."),
		cli.WithEnvFiles(), cli.WithDotEnv, cli.WithEnv(variables), cli.WithDefaultProfiles(profiles...))
	must(t, err)
	project, err := options.LoadProject(context.Background())
	must(t, err)
	return project
}

func TestProfilesStartAllOrOnlyWhatEverybodyNeeds(t *testing.T) {
	all, deps := compose(t).ServiceNames(), compose(t, "deps").ServiceNames()
	if !slices.Equal(deps, []string{"kafka", "redis", "topics"}) {
		t.Errorf("--profile deps starts %v", deps)
	}
	for _, name := range append(deps, "api-1", "api-2", "scheduler-1", "scheduler-2", "consumer", "proxy",
		"product-service", "order-service", "prometheus", "grafana") {
		if !slices.Contains(all, name) {
			t.Errorf("compose up does not start %s", name)
		}
	}
}

// The secrets of compose are public, so nothing may be reachable from the network unless an operator asks for it.
func TestComposePublishesOnLoopbackUnlessAsked(t *testing.T) {
	for name, service := range compose(t).Services {
		for _, port := range service.Ports {
			if port.HostIP != "127.0.0.1" {
				t.Errorf("%s publishes %s on %q", name, port.Published, port.HostIP)
			}
		}
	}
	var open []string
	for _, service := range composeWith(t, []string{"DAEGI_PUBLISH_ADDR=0.0.0.0"}).Services {
		for _, port := range service.Ports {
			if port.HostIP == "0.0.0.0" {
				open = append(open, port.Published)
			}
		}
	}
	slices.Sort(open)
	if !slices.Equal(open, []string{"8080", "8090"}) {
		t.Errorf("DAEGI_PUBLISH_ADDR publishes %v", open)
	}
}

// `redis:7.4-alpine` is another image next month. Ours are built here, and distroless has no version tags.
func TestBaseImagesArePinnedByFullVersion(t *testing.T) {
	full := regexp.MustCompile(`:v?\d+\.\d+\.\d+(-[a-z0-9]+)*$|@sha256:[0-9a-f]{64}$`)
	for name, service := range compose(t).Services {
		if !strings.HasPrefix(service.Image, "daegi-") && !full.MatchString(service.Image) {
			t.Errorf("%s: %s names no full version", name, service.Image)
		}
	}
	text, err := os.ReadFile("../docker/Dockerfile")
	must(t, err)
	for _, from := range regexp.MustCompile(`(?m)^FROM (\S*[:/]\S*)`).FindAllStringSubmatch(string(text), -1) {
		if !full.MatchString(from[1]) && !strings.HasPrefix(from[1], "gcr.io/distroless/") {
			t.Errorf("Dockerfile: %s names no full version", from[1])
		}
	}
}

// A tag of an action can be moved to other code, a commit cannot.
func TestActionsArePinnedByCommit(t *testing.T) {
	text, err := os.ReadFile("../../.github/workflows/ci.yml")
	must(t, err)
	pinned := regexp.MustCompile(`^[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$`)
	used := regexp.MustCompile(`(?m)uses: (.+)$`).FindAllStringSubmatch(string(text), -1)
	if len(used) == 0 {
		t.Fatal("CI uses no action")
	}
	for _, action := range used {
		if !pinned.MatchString(action[1]) {
			t.Errorf("%s is not pinned by commit", action[1])
		}
	}
}

func TestVariablesOfComposeAreOptions(t *testing.T) {
	for name, service := range compose(t).Services {
		for variable := range service.Environment {
			if !strings.HasPrefix(variable, "DAEGI_") {
				continue
			}
			if _, known := optionsOf(t, service.Image)[variable]; !known {
				t.Errorf("%s: there is no %s", name, variable)
			}
		}
		if strings.HasPrefix(service.Image, "daegi-") && (!service.ReadOnly || !slices.Contains(service.CapDrop, "ALL")) {
			t.Errorf("%s may do more than it needs", name)
		}
	}
}

// Two builds of one name in one `docker compose build` get in each other's way, and nobody has these images to pull.
func TestEveryImageOfOursIsBuiltOnceAndNeverPulled(t *testing.T) {
	services := compose(t).Services
	builders := map[string]string{}
	for name, service := range services {
		if service.Build == nil {
			continue
		}
		if other, built := builders[service.Image]; built {
			t.Errorf("%s and %s both build %s", name, other, service.Image)
		}
		builders[service.Image] = name
	}
	for name, service := range services {
		if !strings.HasPrefix(service.Image, "daegi-") || service.Build != nil {
			continue
		}
		if builders[service.Image] == "" {
			t.Errorf("%s: nobody builds %s", name, service.Image)
		}
		if service.PullPolicy != types.PullPolicyNever {
			t.Errorf("%s may try to pull %s", name, service.Image)
		}
	}
}

// The order service reaches the proxy by a name that only containers know. People are told one that they can open.
func TestPeopleAreSentToAPageTheyCanReach(t *testing.T) {
	services := compose(t).Services
	command := services["order-service"].Command
	pages := slices.Index(command, "--pages") + 1
	if pages == 0 {
		t.Fatalf("%v sends people to an address of containers", command)
	}
	published := func(port types.ServicePortConfig) bool { return command[pages] == "http://localhost:"+port.Published }
	if !slices.ContainsFunc(services["proxy"].Ports, published) {
		t.Errorf("nobody listens at %s", command[pages])
	}
}

func TestWhatComposeMountsIsThere(t *testing.T) {
	for name, service := range compose(t).Services {
		for _, volume := range service.Volumes {
			if _, err := os.Stat(volume.Source); volume.Type == types.VolumeTypeBind && err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// Services that are named in the proxy's and Prometheus's files exist, and all that should be are.
func TestProxyAndPrometheusKnowTheFleet(t *testing.T) {
	services := compose(t).Services
	for file, pattern := range map[string]string{
		"../docker/nginx.conf":         `server ([a-z0-9-]+):(\d+)`,
		"../prometheus/prometheus.yml": `([a-z0-9-]+):(8081)`,
	} {
		text, err := os.ReadFile(file)
		must(t, err)
		var named []string
		for _, found := range regexp.MustCompile(pattern).FindAllStringSubmatch(string(text), -1) {
			named = append(named, found[1])
			if _, exists := services[found[1]]; !exists {
				t.Errorf("%s: there is no %s", file, found[1])
			}
		}
		for _, needed := range []string{"api-1", "api-2", "scheduler-1", "scheduler-2"} {
			if !slices.Contains(named, needed) {
				t.Errorf("%s does not know %s", file, needed)
			}
		}
	}
}

// One list of topics for a broker on this machine, and the same for one in a container.
func TestTopicsAreTheSameEverywhere(t *testing.T) {
	list := regexp.MustCompile(`item\.changed:compact [a-z. ]+`)
	var lists []string
	for _, file := range []string{"../kafka/broker.sh", "../docker/topics.sh"} {
		text, err := os.ReadFile(file)
		must(t, err)
		lists = append(lists, strings.TrimSpace(list.FindString(string(text))))
	}
	if lists[0] == "" || lists[0] != lists[1] {
		t.Errorf("%q and %q", lists[0], lists[1])
	}
}
