package tests

import (
	"slices"
	"testing"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// A pod that opens a connection: its labels and those of its namespace; nil for a client outside of the cluster.
type client struct {
	pod, namespace labels.Set
}

const ownNamespace = "shop"

// Evaluates a selector as the API server does. A nil selector selects nothing.
func selects(t *testing.T, selector *meta.LabelSelector, set labels.Set) bool {
	t.Helper()
	parsed, err := meta.LabelSelectorAsSelector(selector)
	must(t, err)
	return parsed.Matches(set)
}

// Returns whether one peer of a rule includes the client, which is in the namespace of the policy or in another one.
func includes(t *testing.T, peer networking.NetworkPolicyPeer, from client) bool {
	t.Helper()
	if from.pod == nil || peer.IPBlock != nil {
		return false
	}
	inNamespace := from.namespace["kubernetes.io/metadata.name"] == ownNamespace
	if peer.NamespaceSelector != nil {
		inNamespace = selects(t, peer.NamespaceSelector, from.namespace)
	}
	return inNamespace && (peer.PodSelector == nil || selects(t, peer.PodSelector, from.pod))
}

// Returns whether the policies let the client connect to this port of a pod. A pod that no policy selects accepts all connections.
func allows(t *testing.T, policies []*networking.NetworkPolicy, pod labels.Set, port string, from client) bool {
	t.Helper()
	isSelected := false
	for _, policy := range policies {
		if !selects(t, &policy.Spec.PodSelector, pod) {
			continue
		}
		isSelected = true
		for _, rule := range policy.Spec.Ingress {
			onPort := slices.ContainsFunc(rule.Ports, func(p networking.NetworkPolicyPort) bool { return p.Port.StrVal == port })
			fromPeer := slices.ContainsFunc(rule.From, func(peer networking.NetworkPolicyPeer) bool { return includes(t, peer, from) })
			if onPort && (len(rule.From) == 0 || fromPeer) {
				return true
			}
		}
	}
	return !isSelected
}

// No network plugin is at hand that enforces policies, so this evaluates which connections they allow.
func TestNetworkPoliciesAllowExactlyTheseConnections(t *testing.T) {
	namespace := func(name string) labels.Set { return labels.Set{"kubernetes.io/metadata.name": name} }
	clients := map[string]client{
		"outside":    {},
		"own":        {pod: labels.Set{"app": "orders"}, namespace: namespace(ownNamespace)},
		"other":      {pod: labels.Set{"app": "orders"}, namespace: namespace("other")},
		"monitoring": {pod: labels.Set{"app": "prometheus"}, namespace: namespace("monitoring")},
	}
	for _, with := range []struct {
		values           string
		public, internal []string
	}{
		{"{}", []string{"monitoring", "other", "outside", "own"}, []string{"own"}},
		{
			`networkPolicy: {
				publicFrom: [{ namespaceSelector: { matchLabels: { kubernetes.io/metadata.name: other } } }],
				internalFrom: [{ namespaceSelector: { matchLabels: { kubernetes.io/metadata.name: monitoring } } }] }`,
			[]string{"other"}, []string{"monitoring", "own"},
		},
	} {
		rendered, err := render(valuesFrom(t, with.values))
		must(t, err)
		var policies []*networking.NetworkPolicy
		var deployments []*apps.Deployment
		for _, object := range objects(t, rendered) {
			switch object := object.(type) {
			case *networking.NetworkPolicy:
				policies = append(policies, object)
			case *apps.Deployment:
				deployments = append(deployments, object)
			}
		}
		if len(deployments) != 3 {
			t.Fatalf("%d deployments", len(deployments))
		}
		for _, deployment := range deployments {
			pod := labels.Set(deployment.Spec.Template.Labels)
			for _, port := range containerPorts(deployment) {
				expected := with.internal
				if port == "public" {
					expected = with.public
				}
				var allowed []string
				for name, from := range clients {
					if allows(t, policies, pod, port, from) {
						allowed = append(allowed, name)
					}
				}
				slices.Sort(allowed)
				if !slices.Equal(allowed, expected) {
					t.Errorf("%s: port %s of %s accepts %v", with.values, port, deployment.Name, allowed)
				}
			}
		}
	}
}

func containerPorts(deployment *apps.Deployment) []string {
	var names []string
	for _, container := range deployment.Spec.Template.Spec.Containers {
		for _, port := range container.Ports {
			if port.Protocol == "" || port.Protocol == core.ProtocolTCP {
				names = append(names, port.Name)
			}
		}
	}
	return names
}
