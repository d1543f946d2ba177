package pizza_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/yaml"

	"github.com/crdkit/crdkit/examples/pizza"
	"github.com/crdkit/crdkit/test/controlplane"
	"github.com/crdkit/crdkit/test/expect"
	"github.com/crdkit/crdkit/test/testobj"
)

// TestManifests_OnAPIServer applies what the command prints, strictly.
func TestManifests_OnAPIServer(t *testing.T) {
	t.Parallel()
	cp := controlplane.ForTest(t)
	chain, _, err := cert.GenerateSelfSignedCertKey("127.0.0.1", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	expect.NoError(t, err)
	caFile := filepath.Join(t.TempDir(), "ca.crt")
	expect.NoError(t, os.WriteFile(caFile, chain, 0o600))
	manifests, err := exec.CommandContext(t.Context(), build(t), "manifests", "--image=registry.example.com/pizza:v1", "--ca-file="+caFile).Output()
	expect.NoError(t, err)
	all := testobj.ParseAll(t, manifests)
	var names []string
	for _, o := range all {
		names = append(names, o.GetKind()+" "+o.GetName())
	}
	if diff := gocmp.Diff([]string{
		"Namespace pizza-system",
		"ClusterRole pizza-operator",
		"ServiceAccount pizza-operator",
		"ClusterRoleBinding pizza-operator",
		"Role pizza-operator",
		"RoleBinding pizza-operator",
		"Service pizza-operator",
		"Deployment pizza-operator",
		"PodDisruptionBudget pizza-operator",
		"CustomResourceDefinition pizzas.restaurant.programming-kubernetes.info",
		"CustomResourceDefinition toppings.restaurant.programming-kubernetes.info",
		"MutatingWebhookConfiguration pizza-operator",
		"ValidatingWebhookConfiguration pizza-operator",
		"ValidatingAdmissionPolicy pizza-operator-guard",
		"ValidatingAdmissionPolicyBinding pizza-operator-guard",
	}, names); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
	namespace, err := yaml.Marshal(all[0])
	expect.NoError(t, err)
	apply(t, cp, namespace) // a dry run leaves none behind, in which the others could be

	output := apply(t, cp, manifests, "--dry-run=server", "--validate=strict", "--warnings-as-errors")
	if strings.Contains(output, "Warning") || strings.Count(output, "(server dry run)") != len(all) {
		t.Errorf("kubectl says:\n%s", output)
	}
	unknown := strings.Replace(string(manifests), "  replicas: 2\n", "  replicas: 2\n  replica: 2\n", 1)
	if output, err := kubectl(t, cp, []byte(unknown), "apply", "--server-side", "-f", "-", "--dry-run=server", "--validate=strict"); err == nil || !strings.Contains(output, `.spec.replica`) {
		t.Errorf("an unknown field is accepted: %s", output)
	}

	deployment := deploymentOf(t, manifests)
	if image := deployment.Spec.Template.Spec.Containers[0].Image; image != "registry.example.com/pizza:v1" {
		t.Errorf("the image is %s", image)
	}
	create := func(change func(*corev1.PodSpec)) (string, error) {
		pod := &corev1.Pod{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
			ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: deployment.Namespace, Labels: deployment.Spec.Template.Labels},
			Spec:       *deployment.Spec.Template.Spec.DeepCopy(),
		}
		change(&pod.Spec)
		text, err := json.Marshal(pod)
		expect.NoError(t, err)
		return kubectl(t, cp, text, "create", "-f", "-", "--dry-run=server", "--validate=strict", "--warnings-as-errors")
	}
	if output, err := create(func(*corev1.PodSpec) {}); err != nil {
		t.Errorf("its pods are refused: %s", output)
	}
	// Each of these would be refused: so the namespace does look.
	for want, change := range map[string]func(*corev1.PodSpec){
		"runAsNonRoot":             func(s *corev1.PodSpec) { s.SecurityContext.RunAsNonRoot = nil },
		"seccompProfile":           func(s *corev1.PodSpec) { s.SecurityContext.SeccompProfile = nil },
		"allowPrivilegeEscalation": func(s *corev1.PodSpec) { s.Containers[0].SecurityContext.AllowPrivilegeEscalation = nil },
		"unrestricted capabilities": func(s *corev1.PodSpec) {
			s.Containers[0].SecurityContext.Capabilities = nil
		},
	} {
		if output, err := create(change); err == nil || !strings.Contains(output, `violates PodSecurity "restricted:latest"`) || !strings.Contains(output, want) {
			t.Errorf("without %s a pod is accepted, or refused for something else: %s", want, output)
		}
	}

	t.Run("kustomize makes the same", func(t *testing.T) {
		output, err := kubectl(t, cp, nil, "kustomize", "config/deploy")
		if err != nil {
			t.Fatal(output)
		}
		plain, err := pizza.Deployment("")
		expect.NoError(t, err)
		sorted := func(text []byte) []*unstructured.Unstructured {
			return slices.SortedFunc(slices.Values(testobj.ParseAll(t, text)), func(a, b *unstructured.Unstructured) int {
				return cmp.Compare(a.GetKind()+a.GetName(), b.GetKind()+b.GetName())
			})
		}
		if diff := gocmp.Diff(sorted(plain), sorted([]byte(output))); diff != "" {
			t.Errorf("(-manifests +kustomize):\n%s", diff)
		}
	})

	t.Run("the service account may do what the roles say, and no more", func(t *testing.T) {
		apply(t, cp, manifests)
		may := rulesOf(t, cp, serviceAccount)
		nobody := rulesOf(t, cp, "system:serviceaccount:"+pizza.Namespace+":default")
		got := slices.DeleteFunc(may, func(rule string) bool { return slices.Contains(nobody, rule) })
		var want []string
		for _, rule := range grantedRules(t) {
			want = append(want, sayRule(rule))
		}
		slices.Sort(want)
		if diff := gocmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// rulesOf returns what a service account may do in the namespace of the operator.
func rulesOf(t *testing.T, cp *controlplane.ControlPlane, name string) (all []string) {
	t.Helper()
	config, err := cp.User(name, "system:serviceaccounts", "system:serviceaccounts:"+pizza.Namespace)
	expect.NoError(t, err)
	review := &authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: pizza.Namespace}}
	review, err = clientset(t, config).AuthorizationV1().SelfSubjectRulesReviews().Create(t.Context(), review, metav1.CreateOptions{})
	expect.NoError(t, err)
	if review.Status.Incomplete {
		t.Fatal(review.Status.EvaluationError)
	}
	for _, r := range review.Status.ResourceRules {
		all = append(all, sayRule(rbacv1.PolicyRule{Verbs: r.Verbs, APIGroups: r.APIGroups, Resources: r.Resources, ResourceNames: r.ResourceNames}))
	}
	slices.Sort(all)
	return all
}

func sayRule(rule rbacv1.PolicyRule) string {
	return strings.Join(rule.Verbs, ",") + " " + strings.Join(rule.Resources, ",") + "." + strings.Join(rule.APIGroups, ",") + " " + strings.Join(rule.ResourceNames, ",")
}

func clientset(t *testing.T, config *rest.Config) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(config)
	expect.NoError(t, err)
	return client
}

func deploymentOf(t *testing.T, manifests []byte) *appsv1.Deployment {
	t.Helper()
	for _, o := range testobj.ParseAll(t, manifests) {
		if o.GetKind() == "Deployment" {
			text, err := o.MarshalJSON()
			expect.NoError(t, err)
			d := &appsv1.Deployment{}
			expect.NoError(t, json.Unmarshal(text, d))
			return d
		}
	}
	t.Fatal("there is no Deployment")
	return nil
}

// A stop leaves time for the drain.
func TestDeployment_TimeForDrain(t *testing.T) {
	manifests, err := pizza.Deployment("")
	expect.NoError(t, err)
	spec := deploymentOf(t, manifests).Spec.Template.Spec
	var need time.Duration
	for _, flag := range []string{"--shutdown-delay=", "--drain-timeout="} {
		i := slices.IndexFunc(spec.Containers[0].Args, func(arg string) bool { return strings.HasPrefix(arg, flag) })
		if i < 0 {
			t.Fatalf("%s is not among %q", flag, spec.Containers[0].Args)
		}
		d, err := time.ParseDuration(strings.TrimPrefix(spec.Containers[0].Args[i], flag))
		expect.NoError(t, err)
		need += d
	}
	if *spec.TerminationGracePeriodSeconds <= int64(need.Seconds()) {
		t.Errorf("the grace period is %d s, and a stop takes up to %s", *spec.TerminationGracePeriodSeconds, need)
	}
}

// The API server reaches the webhooks by the Service that is in the manifests, and that
// leads to the pods of the Deployment.
func TestManifests_Service(t *testing.T) {
	manifests, err := pizza.Manifests("", pizza.InCluster(), nil)
	expect.NoError(t, err)
	all := testobj.ParseAll(t, manifests)
	var service corev1.Service
	for _, o := range all {
		if o.GetKind() == "Service" {
			text, err := o.MarshalJSON()
			expect.NoError(t, err)
			expect.NoError(t, json.Unmarshal(text, &service))
		}
	}
	template := deploymentOf(t, manifests).Spec.Template
	if diff := gocmp.Diff(template.Labels, service.Spec.Selector); diff != "" {
		t.Errorf("the selector (-pods +service):\n%s", diff)
	}
	port, container := service.Spec.Ports[0], template.Spec.Containers[0].Ports[0]
	if port.Port != 443 || port.TargetPort.StrVal != container.Name || container.ContainerPort != 8443 {
		t.Errorf("port %d leads to %s, which is %d", port.Port, port.TargetPort.String(), container.ContainerPort)
	}
	var paths []string
	for _, o := range all {
		for _, c := range clientConfigs(o.Object) {
			reference, _, err := unstructured.NestedMap(c, "service")
			expect.NoError(t, err)
			if reference["name"] != service.Name || reference["namespace"] != service.Namespace || fmt.Sprint(reference["port"]) != fmt.Sprint(port.Port) || c["url"] != nil {
				t.Errorf("%s: %v", o.GetName(), c)
			}
			paths = append(paths, fmt.Sprint(reference["path"]))
		}
	}
	if diff := gocmp.Diff([]string{"/v1/convert", "/v1/default/pizzas", "/v1/validate/pizzas", "/v1/validate/toppings"}, paths); diff != "" {
		t.Errorf("paths (-want +got):\n%s", diff)
	}
}

// The NetworkPolicy is for the port on which the Pods of the Deployment serve.
func TestManifests_NetworkPolicy(t *testing.T) {
	manifests, err := exec.CommandContext(t.Context(), build(t), "manifests", "--api-server-cidrs=10.0.0.0/28,10.0.1.0/28").Output()
	expect.NoError(t, err)
	var policy networkingv1.NetworkPolicy
	for _, o := range testobj.ParseAll(t, manifests) {
		if o.GetKind() == "NetworkPolicy" {
			text, err := o.MarshalJSON()
			expect.NoError(t, err)
			expect.NoError(t, json.Unmarshal(text, &policy))
		}
	}
	deployment := deploymentOf(t, manifests)
	if diff := gocmp.Diff(networkingv1.NetworkPolicySpec{
		PodSelector: metav1.LabelSelector{MatchLabels: deployment.Spec.Template.Labels},
		PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
		Ingress: []networkingv1.NetworkPolicyIngressRule{{
			From: []networkingv1.NetworkPolicyPeer{
				{IPBlock: &networkingv1.IPBlock{CIDR: "10.0.0.0/28"}},
				{IPBlock: &networkingv1.IPBlock{CIDR: "10.0.1.0/28"}},
				{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": "monitoring"}}},
			},
			Ports: []networkingv1.NetworkPolicyPort{{Port: new(intstr.FromInt32(deployment.Spec.Template.Spec.Containers[0].Ports[0].ContainerPort))}},
		}},
	}, policy.Spec); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if policy.Namespace != deployment.Namespace {
		t.Errorf("the namespace is %q, want %q", policy.Namespace, deployment.Namespace)
	}
}

// clientConfigs finds every clientConfig in an object.
func clientConfigs(v any) (all []map[string]any) {
	switch v := v.(type) {
	case map[string]any:
		if c, ok := v["clientConfig"].(map[string]any); ok {
			return []map[string]any{c}
		}
		for _, child := range v {
			all = append(all, clientConfigs(child)...)
		}
	case []any:
		for _, child := range v {
			all = append(all, clientConfigs(child)...)
		}
	}
	return all
}

func TestDeployment_QuotesImage(t *testing.T) {
	const odd = "a: b\n# \"c"
	manifests, err := pizza.Deployment(odd)
	expect.NoError(t, err)
	if image := deploymentOf(t, manifests).Spec.Template.Spec.Containers[0].Image; image != odd {
		t.Errorf("the image is %q", image)
	}
}

// The probes ask what the operator serves.
// TestReplicas_OneWritesEachServes asks for these paths.
func TestDeployment_Probes(t *testing.T) {
	manifests, err := pizza.Deployment("")
	expect.NoError(t, err)
	c := deploymentOf(t, manifests).Spec.Template.Spec.Containers[0]
	for _, p := range []struct {
		probe *corev1.Probe
		path  string
	}{{c.StartupProbe, "/healthz"}, {c.LivenessProbe, "/healthz"}, {c.ReadinessProbe, "/readyz"}} {
		want := &corev1.HTTPGetAction{Scheme: corev1.URISchemeHTTPS, Port: intstr.FromString(c.Ports[0].Name), Path: p.path}
		if diff := gocmp.Diff(want, p.probe.HTTPGet); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}
