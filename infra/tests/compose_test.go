package tests

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
)

// Returns the output of `docker compose config` with these profiles, or with those of .env.
func compose(t *testing.T, profiles ...string) *types.Project {
	t.Helper()
	return composeWith(t, nil, profiles...)
}

// Does the same with these variables, each `NAME=value`.
func composeWith(t *testing.T, variables []string, profiles ...string) *types.Project {
	t.Helper()
	options, err := cli.NewProjectOptions([]string{"../../docker-compose.yml"}, cli.WithWorkingDirectory("../.."),
		cli.WithEnvFiles(), cli.WithDotEnv, cli.WithEnv(variables), cli.WithDefaultProfiles(profiles...))
	must(t, err)
	project, err := options.LoadProject(context.Background())
	must(t, err)
	return project
}

func TestProfilesStartAllServicesOrOnlyDependencies(t *testing.T) {
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

// The secrets of compose are public, so nothing may be reachable from the network unless an operator sets an address.
func TestComposePublishesOnLoopbackByDefault(t *testing.T) {
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

// `redis:7.4-alpine` changes over time. Images of daegi are built here, and distroless has no version tags.
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
	workflows, err := filepath.Glob("../../.github/workflows/*.yml")
	must(t, err)
	pinned := regexp.MustCompile(`^[\w-]+/[\w-]+(/[\w-]+)?@[0-9a-f]{40} # v\d+\.\d+\.\d+$`)
	for _, workflow := range workflows {
		text, err := os.ReadFile(workflow)
		must(t, err)
		used := regexp.MustCompile(`(?m)uses: (.+)$`).FindAllStringSubmatch(string(text), -1)
		if len(used) == 0 {
			t.Errorf("%s uses no action", workflow)
		}
		for _, action := range used {
			if !pinned.MatchString(action[1]) {
				t.Errorf("%s: %s is not pinned by commit", workflow, action[1])
			}
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
				t.Errorf("%s: %s is not an option", name, variable)
			}
		}
		if strings.HasPrefix(service.Image, "daegi-") && (!service.ReadOnly || !slices.Contains(service.CapDrop, "ALL")) {
			t.Errorf("%s has privileges that it does not need", name)
		}
	}
}

// Two builds of one image name in one `docker compose build` conflict, and no registry has these images.
func TestEveryOwnImageIsBuiltOnceAndNeverPulled(t *testing.T) {
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
			t.Errorf("%s: no service builds %s", name, service.Image)
		}
		if service.PullPolicy != types.PullPolicyNever {
			t.Errorf("%s may try to pull %s", name, service.Image)
		}
	}
}

// The order service reaches the proxy by a name that only containers resolve. Browsers need a published address.
func TestBrowsersAreRedirectedToAReachablePage(t *testing.T) {
	services := compose(t).Services
	command := services["order-service"].Command
	pages := slices.Index(command, "--pages") + 1
	if pages == 0 {
		t.Fatalf("%v redirects browsers to a container address", command)
	}
	published := func(port types.ServicePortConfig) bool { return command[pages] == "http://localhost:"+port.Published }
	if !slices.ContainsFunc(services["proxy"].Ports, published) {
		t.Errorf("no service publishes %s", command[pages])
	}
}

func TestMountedFilesExist(t *testing.T) {
	for name, service := range compose(t).Services {
		for _, volume := range service.Volumes {
			if _, err := os.Stat(volume.Source); volume.Type == types.VolumeTypeBind && err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// Names in the files of the proxy and of Prometheus must be services, or names that several services share, and none may be missing.
func TestProxyAndPrometheusNameTheWholeFleet(t *testing.T) {
	for file, want := range map[string]struct {
		pattern string
		members []string
	}{
		"../docker/nginx.conf":         {`set \$pods ([a-z0-9-]+):\d+;`, []string{"api", "scheduler"}},
		"../prometheus/prometheus.yml": {`([a-z0-9-]+):8081`, []string{"api-1", "api-2", "scheduler-1", "scheduler-2"}},
	} {
		text, err := os.ReadFile(file)
		must(t, err)
		var named []string
		for _, found := range regexp.MustCompile(want.pattern).FindAllStringSubmatch(string(text), -1) {
			named = append(named, found[1])
			if len(membersOf(t, found[1])) == 0 {
				t.Errorf("%s: no service is called %s", file, found[1])
			}
		}
		for _, member := range want.members {
			if !slices.Contains(named, member) {
				t.Errorf("%s does not name %s", file, member)
			}
		}
	}
}

// Returns the services that a name on compose's network resolves to.
func membersOf(t *testing.T, name string) []string {
	t.Helper()
	var members []string
	for service, its := range compose(t).Services {
		network := its.Networks["default"]
		if service == name || network != nil && slices.Contains(network.Aliases, name) {
			members = append(members, service)
		}
	}
	slices.Sort(members)
	return members
}

// nginx resolves the name of an upstream block once. A replaced container gets another address, and the proxy would answer
// 502 until it is restarted.
func TestTheProxyResolvesNamesWhenARequestNeedsThem(t *testing.T) {
	text, err := os.ReadFile("../docker/nginx.conf")
	must(t, err)
	if regexp.MustCompile(`(?m)^\s*upstream `).Match(text) {
		t.Error("nginx.conf has an upstream block")
	}
	for _, passed := range regexp.MustCompile(`proxy_pass (\S+);`).FindAllStringSubmatch(string(text), -1) {
		if passed[1] != "http://$pods" {
			t.Errorf("%s is resolved only at start", passed[1])
		}
	}
	for role, members := range map[string][]string{"api": {"api-1", "api-2"}, "scheduler": {"scheduler-1", "scheduler-2"}} {
		if found := membersOf(t, role); !slices.Equal(found, members) {
			t.Errorf("%s resolves to %v", role, found)
		}
	}
}

// Only one-shot services may stay down.
func TestKilledServicesRestart(t *testing.T) {
	for name, service := range compose(t).Services {
		if name != "topics" && service.Restart != types.RestartPolicyUnlessStopped {
			t.Errorf("%s: restart is %q", name, service.Restart)
		}
	}
}

// Docker kills a container 10 s after the stop signal by default. A service of the fleet drains for 10 s, with 1 s before and 2 s after.
func TestAStopIsLongEnoughForADrain(t *testing.T) {
	for name, service := range compose(t).Services {
		drains := strings.HasPrefix(service.Image, "daegi-")
		if drains && (service.StopGracePeriod == nil || time.Duration(*service.StopGracePeriod) < 15*time.Second) {
			t.Errorf("%s: stop_grace_period is %v", name, service.StopGracePeriod)
		}
	}
}

// Services that others depend on, or that users call, need a cheap health check. Every script of Kafka starts a JVM.
func TestHealthChecksExistAndAreCheap(t *testing.T) {
	services := compose(t).Services
	for _, name := range []string{"redis", "kafka", "order-service"} {
		if services[name].HealthCheck == nil {
			t.Errorf("%s has no health check", name)
		}
	}
	for name, service := range services {
		if service.HealthCheck != nil && strings.Contains(strings.Join(service.HealthCheck.Test, " "), "kafka/bin/") {
			t.Errorf("%s: the health check starts a JVM", name)
		}
	}
}

// The public port belongs to the api and to the all-in-one.
func TestImagesExposeWhatTheyServe(t *testing.T) {
	for name, service := range compose(t).Services {
		if service.Build == nil {
			continue
		}
		target := map[bool]string{true: "example", false: "worker"}[strings.HasSuffix(service.Image, "-service")]
		if service.Image == "daegi-api" {
			target = "service"
		}
		if service.Build.Target != target {
			t.Errorf("%s is built as %s, not as %s", name, service.Build.Target, target)
		}
	}
}

// A `# syntax=` line makes BuildKit pull a frontend that is not needed. The images of the fleet do not link the all-in-one.
func TestTheDockerfileBuildsOnlyWhatItShips(t *testing.T) {
	text, err := os.ReadFile("../docker/Dockerfile")
	must(t, err)
	if strings.Contains(string(text), "syntax=") {
		t.Error("the Dockerfile pulls a frontend")
	}
	fleet, allInOne, found := strings.Cut(string(text), "AS build-all-in-one")
	if !found || !strings.Contains(allInOne, "build.sh /out daegi") || strings.Contains(fleet, "build.sh /out daegi") {
		t.Error("the all-in-one is not linked for its own image only")
	}
}

// The script for a local broker and the one for a container must create the same topics.
func TestTopicsAreTheSameEverywhere(t *testing.T) {
	list := regexp.MustCompile(`item\.changed:compact [a-z.: ]+`)
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
