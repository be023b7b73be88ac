// check-network compares what network policies allow, as cyclonus evaluates them, with what the tests of the operator expect.
//
// Its arguments are a file of pairs (JSON) and files of NetworkPolicies (YAML). It prints each difference, and fails if there is one.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sort"

	"github.com/mattfenwick/cyclonus/pkg/matcher"
	"github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"sigs.k8s.io/yaml"
)

// An end of a connection: a pod, or a host outside of the pods.
type end struct {
	// Empty for a host outside of the pods.
	Namespace string            `json:"namespace"`
	Labels    map[string]string `json:"labels"`
	Address   string            `json:"address"`
	// The ports that are tried.
	Ports []int `json:"ports"`
	// The names of ports.
	Names map[string]int `json:"names"`
}

type pairs struct {
	Ends map[string]end `json:"ends"`
	// The ends whose connections, in both directions, are compared.
	Restricted []string `json:"restricted"`
	// The expected connections, such as "worker -> DNS:53".
	Allowed []string `json:"allowed"`
	// The namespaces that have the same policies.
	Namespaces []string `json:"namespaces"`
}

func main() {
	logrus.SetOutput(io.Discard)
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "check-network:", err)
		os.Exit(1)
	}
}

func run(files []string, out io.Writer) error {
	if len(files) < 2 {
		return fmt.Errorf("needs a file of pairs and files of policies")
	}
	var pairs pairs
	text, err := os.ReadFile(files[0])
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, &pairs); err != nil {
		return fmt.Errorf("%s: %w", files[0], err)
	}
	policies, err := read(files[1:], pairs.Namespaces)
	if err != nil {
		return err
	}
	found, tried := pairs.evaluate(matcher.BuildNetworkPolicies(true, policies))
	expected := map[string]bool{}
	for _, pair := range pairs.Allowed {
		expected[pair] = true
	}
	differences := 0
	for _, pair := range tried {
		if found[pair] != expected[pair] {
			differences++
			fmt.Fprintf(out, "%s: cyclonus says %t, the tests say %t\n", pair, found[pair], expected[pair])
		}
		delete(expected, pair)
	}
	for pair := range expected {
		differences++
		fmt.Fprintf(out, "%s: is expected, and was not tried\n", pair)
	}
	if differences > 0 {
		return fmt.Errorf("%d differences", differences)
	}
	fmt.Fprintf(out, "cyclonus agrees on %d pairs, of which %d are allowed\n", len(tried), len(found))
	return nil
}

// read reads the policies. Those of the first namespace exist in all namespaces.
func read(files []string, namespaces []string) ([]*networkingv1.NetworkPolicy, error) {
	var policies []*networkingv1.NetworkPolicy
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		policy := &networkingv1.NetworkPolicy{}
		if err := yaml.UnmarshalStrict(text, policy); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		policies = append(policies, policy)
		if len(namespaces) == 0 || policy.Namespace != namespaces[0] {
			continue
		}
		for _, namespace := range namespaces[1:] {
			other := policy.DeepCopy()
			other.Namespace = namespace
			policies = append(policies, other)
		}
	}
	return policies, nil
}

// evaluate returns the pairs that are allowed, and all pairs that were tried.
func (pairs *pairs) evaluate(policy *matcher.Policy) (map[string]bool, []string) {
	restricted := map[string]bool{}
	for _, name := range pairs.Restricted {
		restricted[name] = true
	}
	allowed, tried := map[string]bool{}, []string{}
	for fromName, from := range pairs.Ends {
		for toName, to := range pairs.Ends {
			if fromName == toName || !restricted[fromName] && !restricted[toName] {
				continue
			}
			for _, port := range to.Ports {
				pair := fmt.Sprintf("%s -> %s:%d", fromName, toName, port)
				tried = append(tried, pair)
				traffic := &matcher.Traffic{
					Source: from.peer(), Destination: to.peer(), ResolvedPort: port, ResolvedPortName: to.nameOf(port), Protocol: corev1.ProtocolTCP,
				}
				if policy.IsTrafficAllowed(traffic).IsAllowed() {
					allowed[pair] = true
				}
			}
		}
	}
	sort.Strings(tried)
	return allowed, tried
}

func (e end) peer() *matcher.TrafficPeer {
	peer := &matcher.TrafficPeer{IP: e.Address}
	if e.Namespace != "" {
		labels := map[string]string{"kubernetes.io/metadata.name": e.Namespace}
		peer.Internal = &matcher.InternalPeer{PodLabels: e.Labels, NamespaceLabels: labels, Namespace: e.Namespace}
	}
	return peer
}

func (e end) nameOf(port int) string {
	for name, number := range e.Names {
		if number == port {
			return name
		}
	}
	return ""
}
