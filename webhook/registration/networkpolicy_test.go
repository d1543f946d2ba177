package registration_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"github.com/crdkit/crdkit/test/expect"
	"github.com/crdkit/crdkit/webhook/registration"
)

// prometheus is the peer that scrapes the operator.
var prometheus = networkingv1.NetworkPolicyPeer{
	NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: "monitoring"}},
	PodSelector:       &metav1.LabelSelector{MatchLabels: map[string]string{"app": "prometheus"}},
}

func TestNetworkPolicy_Mistakes(t *testing.T) {
	service, pods := registration.Service("pizza-system", "pizza-operator"), map[string]string{"app": "pizza"}
	cidrs := []string{"10.0.0.0/28", "fd00::/64"}
	for want, options := range map[string][]registration.Option{
		"NetworkPolicy: labels map[], expected valid ones of the operator's Pods":           {service, registration.NetworkPolicy(nil, 8443, cidrs)},
		"NetworkPolicy: labels map[app:a b], expected valid ones of the operator's Pods":    {service, registration.NetworkPolicy(map[string]string{"app": "a b"}, 8443, cidrs)},
		"NetworkPolicy: port 0, expected that of the container, from 1 to 65535":            {service, registration.NetworkPolicy(pods, 0, cidrs)},
		"NetworkPolicy: port 84430, expected that of the container":                         {service, registration.NetworkPolicy(pods, 84430, cidrs)},
		`NetworkPolicy: CIDR "10.0.0.7" of API servers, expected one such as 10.0.0.0/2`:    {service, registration.NetworkPolicy(pods, 8443, []string{"10.0.0.0/28", "10.0.0.7"})},
		`NetworkPolicy: CIDR "10.0.0.7/28" of API servers`:                                  {service, registration.NetworkPolicy(pods, 8443, []string{"10.0.0.7/28"})},
		`NetworkPolicy: CIDR "" of API servers`:                                             {service, registration.NetworkPolicy(pods, 8443, []string{""}, prometheus)},
		"NetworkPolicy: neither CIDRs nor peers, expected those of the API servers":         {service, registration.NetworkPolicy(pods, 8443, nil)},
		"NetworkPolicy is given twice":                                                      {service, registration.NetworkPolicy(pods, 8443, cidrs), registration.NetworkPolicy(pods, 8443, cidrs)},
		`namespace "" of the operator, expected a name, which Guard and NetworkPolicy need`: {registration.URL("https://127.0.0.1"), registration.NetworkPolicy(pods, 8443, cidrs)},
	} {
		if _, err := registration.New("p", options...); err == nil || !strings.Contains(err.Error(), "registration: "+want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// TestNetworkPolicy_RealControlPlane creates what the manifests contain, and lets Inject run beside it.
func TestNetworkPolicy_RealControlPlane(t *testing.T) {
	t.Parallel()
	c, s := newCluster(t), newShop(t, "networkpolicy.example.com")
	const namespace = "networkpolicy-system"
	option := registration.NetworkPolicy(map[string]string{"app": "pizza"}, 8443, []string{"10.0.0.0/28", "fd00::/64"}, prometheus)
	options := append(s.options(), registration.Service(namespace, "pizza-operator"), registration.Guard("cook", ""))
	hooks, err := registration.New("networkpolicy", append(options, option)...)
	expect.NoError(t, err)
	without, err := registration.New("networkpolicy", options...)
	expect.NoError(t, err)
	if diff := cmp.Diff(without.PolicyRules(), hooks.PolicyRules()); diff != "" {
		t.Errorf("the policy needs permissions (-without +with):\n%s", diff)
	}

	text, err := hooks.Manifests(nil)
	expect.NoError(t, err)
	client, err := kubernetes.NewForConfig(c.Config())
	expect.NoError(t, err)
	_, err = client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
	expect.NoError(t, err)
	found := 0
	for document := range strings.SplitSeq(string(text), "---\n") {
		if !strings.Contains(document, "kind: NetworkPolicy\n") {
			continue
		}
		found++
		var policy networkingv1.NetworkPolicy
		expect.NoError(t, yaml.UnmarshalStrict([]byte(document), &policy))
		block := func(cidr string) networkingv1.NetworkPolicyPeer {
			return networkingv1.NetworkPolicyPeer{IPBlock: &networkingv1.IPBlock{CIDR: cidr}}
		}
		want := networkingv1.NetworkPolicy{
			TypeMeta:   metav1.TypeMeta{APIVersion: "networking.k8s.io/v1", Kind: "NetworkPolicy"},
			ObjectMeta: metav1.ObjectMeta{Name: "networkpolicy", Namespace: namespace},
			Spec: networkingv1.NetworkPolicySpec{
				PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{"app": "pizza"}},
				PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
				Ingress: []networkingv1.NetworkPolicyIngressRule{{
					From:  []networkingv1.NetworkPolicyPeer{block("10.0.0.0/28"), block("fd00::/64"), prometheus},
					Ports: []networkingv1.NetworkPolicyPort{{Port: new(intstr.FromInt32(8443))}},
				}},
			},
		}
		if diff := cmp.Diff(want, policy); diff != "" {
			t.Errorf("(-want +printed):\n%s", diff)
		}
		created, err := client.NetworkingV1().NetworkPolicies(namespace).Create(t.Context(), &policy, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
		expect.NoError(t, err)
		want.Spec.Ingress[0].Ports[0].Protocol = new(corev1.ProtocolTCP) // the default
		if diff := cmp.Diff(want.Spec, created.Spec); diff != "" {
			t.Errorf("(-want +created):\n%s", diff)
		}
	}
	if found != 1 {
		t.Fatalf("%d NetworkPolicies, want 1, in:\n%s", found, text)
	}

	config, reads := c.Config(), make(chan string, 1000)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			reads <- r.URL.Path
			return next.RoundTrip(r)
		})
	})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- hooks.Inject(ctx, config, nil) }()
	expect.Eventually(t, func() error { // the other five objects are not in the cluster
		if n := len(hooks.Differences()); n != 5 {
			return fmt.Errorf("%d differences, want 5", n)
		}
		return nil
	})
	stop()
	expect.NoError(t, <-ended)
	close(reads)
	for path := range reads {
		if strings.Contains(path, "networkpolicies") {
			t.Errorf("Inject requests %s", path)
		}
	}
}

// roundTripper is a function that sends requests.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
