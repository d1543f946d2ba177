package apiservertest_test

import (
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/crdkit/crdkit/schema/apiservertest"
	"github.com/crdkit/crdkit/test/controlplane"
	"github.com/crdkit/crdkit/test/expect"
	"github.com/crdkit/crdkit/test/testobj"
)

func TestServer_Registrations(t *testing.T) {
	t.Parallel()
	registrations(t, apiservertest.Start(t).Config())
}

func TestServer_RegistrationsInACluster(t *testing.T) {
	cp := controlplane.Shared(t)
	cp.SkipIfOlder(t, "lacks MutatingAdmissionPolicies")
	registrations(t, cp.Config())
}

// registrations has mistakes made in objects that a cluster accepts. The cluster refuses each mistake.
func registrations(t *testing.T, config *rest.Config) {
	const (
		hook      = `webhooks: [{name: a.example.com, failurePolicy: Fail, matchPolicy: Exact, clientConfig: {url: "https://a.example.com"}, rules: [{apiGroups: [a], apiVersions: [v1], operations: [CREATE], resources: [b], scope: Cluster}], sideEffects: None, admissionReviewVersions: [v1]}]`
		match     = `failurePolicy: Fail, matchConstraints: {matchPolicy: Exact, objectSelector: {matchLabels: {a: b}}, resourceRules: [{apiGroups: [a], apiVersions: [v1], operations: [CREATE], resources: [b], scope: Cluster}]}`
		validate  = `spec: {validations: [{expression: "true", reason: Invalid}], ` + match + `}`
		mutate    = `spec: {reinvocationPolicy: Never, mutations: [{patchType: JSONPatch, jsonPatch: {expression: "[JSONPatch{op: 'remove', path: '/a'}]"}}], ` + match + `}`
		reference = `policyName: a, paramRef: {name: a, parameterNotFoundAction: Allow}, matchResources: {excludeResourceRules: [{apiGroups: [a], apiVersions: [v1], operations: [CREATE], resources: [b]}]}`
	)
	ofMatch := []string{"Fail", "Never", "Exact", "Foo", "a: b", `"a b": c`, "[CREATE]", "[Create]", "[CREATE]", "[]", "[CREATE]", `["*", CREATE]`, "Cluster", "cluster", "[v1]", "[]"}
	ofReference := []string{"policyName: a, ", "", "name: a, p", "p", "name: a, ", "name: a, selector: {}, ", ", parameterNotFoundAction: Allow", "", "Allow", "Ignore", "[CREATE]", "[Create]"}
	for kind, test := range map[string]struct {
		fields   string
		mistakes []string // pairs of what is right and what is wrong
	}{
		"validatingwebhookconfigurations": {hook, append(ofMatch[:4:4], ofMatch[6:14]...)},
		"mutatingwebhookconfigurations":   {hook, []string{"failurePolicy: Fail", "reinvocationPolicy: Always", "webhooks: [", "webhooks: [" + hook[len("webhooks: ["):len(hook)-1] + ", "}},
		"validatingadmissionpolicies":     {validate, append(ofMatch, "reason: Invalid", "reason: Unauthorized", `{expression: "true", reason: Invalid}`, "", `{apiGroups: [a], apiVersions: [v1], operations: [CREATE], resources: [b], scope: Cluster}`, "")},
		"mutatingadmissionpolicies":       {mutate, append(ofMatch, "reinvocationPolicy: Never, ", "", "[CREATE]", "[CREATE, DELETE]", `{patchType: JSONPatch, jsonPatch: {expression: "[JSONPatch{op: 'remove', path: '/a'}]"}}`, "")},
		"validatingadmissionpolicybindings": {`spec: {validationActions: [Deny, Audit], ` + reference + `}`, append(ofReference,
			"validationActions: [Deny, Audit], ", "", "[Deny, Audit]", "[Deny, Warn]", "[Deny, Audit]", "[Refuse]")},
		"mutatingadmissionpolicybindings": {`spec: {` + reference + `}`, ofReference},
	} {
		t.Run(kind, func(t *testing.T) {
			client := dynamic.NewForConfigOrDie(config).Resource(admissionregistrationv1.SchemeGroupVersion.WithResource(kind))
			mapping, err := mapperOf(t, config).KindFor(admissionregistrationv1.SchemeGroupVersion.WithResource(kind))
			expect.NoError(t, err)
			create := func(fields string) error {
				u := &unstructured.Unstructured{Object: *testobj.As[map[string]any](t, "{"+fields+"}")}
				u.SetGroupVersionKind(mapping)
				u.SetName("registered")
				_, err := client.Create(t.Context(), u, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
				return err
			}
			expect.NoError(t, create(test.fields))
			for i := 0; i < len(test.mistakes); i += 2 {
				right, wrong := test.mistakes[i], test.mistakes[i+1]
				if !strings.Contains(test.fields, right) {
					t.Errorf("there is no %q", right)
				}
				if err := create(strings.Replace(test.fields, right, wrong, 1)); !apierrors.IsInvalid(err) {
					t.Errorf("%q for %q: got %v, want that it is invalid", wrong, right, err)
				}
			}
		})
	}
}
