package equivalence_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	kubeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/crdkit/crdkit/admission"
	"github.com/crdkit/crdkit/schema"
	"github.com/crdkit/crdkit/schema/equivalence"
	"github.com/crdkit/crdkit/test/expect"
	"github.com/crdkit/crdkit/test/tier"
)

// widgets returns the definition of a small kind, with more of the schema of its spec.
func widgets(t testing.TB, more string) []*schema.Definition {
	t.Helper()
	d, err := schema.Parse([]byte(`{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: widgets.example.com}, spec: {
group: example.com, scope: Namespaced, names: {kind: Widget, plural: widgets}, versions: [{name: v1, served: true, storage: true, subresources: {status: {}},
schema: {openAPIV3Schema: {type: object, required: [spec], properties: {
status: {type: object, properties: {phase: {type: string, maxLength: 20}}},
spec: {type: object, required: [size, class], ` + more + ` properties: {
size: {type: integer, minimum: 0, maximum: 1000}, limit: {type: integer, minimum: 0, maximum: 1000}, class: {type: string, enum: [small, large]},
hosts: {type: array, maxItems: 250, items: {type: string, maxLength: 63}}}}}}}}]}}`))
	expect.NoError(t, err)
	return []*schema.Definition{d}
}

var widget = kubeschema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}

// webhook returns a release with a webhook for a resource.
func webhook(defined []*schema.Definition, kind, group, resource, operations string, functions ...admission.Option) schema.Release {
	s := runtime.NewScheme()
	if group == "apps" {
		s.AddKnownTypes(appsv1.SchemeGroupVersion, &appsv1.Deployment{})
	}
	return schema.Release{
		Definitions: defined, Handler: admission.NewHandler(s, functions...),
		Manifests: map[string][]byte{"webhooks.yaml": fmt.Appendf(nil, `{apiVersion: admissionregistration.k8s.io/v1, kind: %sWebhookConfiguration, metadata: {name: webhook}, webhooks: [
{name: webhook.example.com, sideEffects: None, admissionReviewVersions: [v1], clientConfig: {url: "https://webhook.example.com/admit"},
rules: [{operations: [%s], apiGroups: [%s], apiVersions: [v1], resources: [%s]}]}]}`, kind, operations, group, resource)},
	}
}

// policy returns a release with a policy; more is in its specification.
func policy(defined []*schema.Definition, group, resource, operations, more string, expressions ...string) schema.Release {
	var validations []string
	for _, e := range expressions {
		validations = append(validations, fmt.Sprintf("{expression: %q}", e))
	}
	return schema.Release{Definitions: defined, Manifests: map[string][]byte{"policy.yaml": fmt.Appendf(nil, `{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicy, metadata: {name: policy}, spec: {%s
matchConstraints: {resourceRules: [{operations: [%s], apiGroups: [%s], apiVersions: [v1], resources: [%s]}]}, validations: [%s]}}
---
{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicyBinding, metadata: {name: binding}, spec: {policyName: policy, validationActions: [Deny]}}`,
		more, operations, group, resource, strings.Join(validations, ", "))}}
}

const both = "CREATE, UPDATE"

// limited refuses a size beyond the limit.
func limited(defined []*schema.Definition) schema.Release {
	return webhook(defined, "Validating", "example.com", "widgets", both, admission.Validate(func(_ context.Context, u *unstructured.Unstructured) (errs field.ErrorList, _ error) {
		size, _, _ := unstructured.NestedInt64(u.Object, "spec", "size")
		if limit, found, _ := unstructured.NestedInt64(u.Object, "spec", "limit"); found && size > limit {
			errs = append(errs, field.Invalid(field.NewPath("spec", "size"), size, "is beyond the limit"))
		}
		return errs, nil
	}, admission.ForKind(widget)))
}

// fixed refuses a change of the class.
func fixed(defined []*schema.Definition) schema.Release {
	return webhook(defined, "Validating", "example.com", "widgets", both, admission.ValidateUpdate(func(_ context.Context, u, old *unstructured.Unstructured) (errs field.ErrorList, _ error) {
		is, _, _ := unstructured.NestedString(u.Object, "spec", "class")
		if was, _, _ := unstructured.NestedString(old.Object, "spec", "class"); was != is {
			errs = append(errs, field.Forbidden(field.NewPath("spec", "class"), "must not change"))
		}
		return errs, nil
	}, admission.ForKind(widget)))
}

// hosted refuses hosts that end in .local, or that occur twice.
func hosted(defined []*schema.Definition) schema.Release { return listed(defined, true) }

func listed(defined []*schema.Definition, distinct bool) schema.Release {
	return webhook(defined, "Validating", "example.com", "widgets", both, admission.Validate(func(_ context.Context, u *unstructured.Unstructured) (errs field.ErrorList, _ error) {
		hosts, _, _ := unstructured.NestedStringSlice(u.Object, "spec", "hosts")
		for i, host := range hosts {
			if strings.HasSuffix(host, ".local") {
				errs = append(errs, field.Invalid(field.NewPath("spec", "hosts").Index(i), host, "is local"))
			}
			if distinct && slices.Contains(hosts[:i], host) {
				errs = append(errs, field.Duplicate(field.NewPath("spec", "hosts").Index(i), host))
			}
		}
		return errs, nil
	}, admission.ForKind(widget)))
}

// secured refuses containers that may run as root, as the announcement of ValidatingAdmissionPolicy has it
// (https://kubernetes.io/blog/2022/12/20/validating-admission-policies-alpha/).
func secured() schema.Release {
	return webhook(nil, "Validating", "apps", "deployments", both, admission.Validate(func(_ context.Context, d *appsv1.Deployment) (errs field.ErrorList, _ error) {
		pod := d.Spec.Template.Spec
		for _, list := range []struct {
			name       string
			containers []corev1.Container
		}{{"containers", pod.Containers}, {"initContainers", pod.InitContainers}} {
			for i, c := range list.containers {
				at := field.NewPath("spec", "template", "spec", list.name).Index(i).Child("securityContext")
				is := func(value *bool, want bool) bool { return value != nil && *value == want }
				if c.SecurityContext == nil {
					errs = append(errs, field.Required(at, ""))
					continue
				}
				if !is(c.SecurityContext.RunAsNonRoot, true) {
					errs = append(errs, field.Required(at.Child("runAsNonRoot"), "must be true"))
				}
				if !is(c.SecurityContext.ReadOnlyRootFilesystem, true) {
					errs = append(errs, field.Required(at.Child("readOnlyRootFilesystem"), "must be true"))
				}
				if is(c.SecurityContext.AllowPrivilegeEscalation, true) {
					errs = append(errs, field.Forbidden(at.Child("allowPrivilegeEscalation"), "must not be true"))
				}
				if is(c.SecurityContext.Privileged, true) {
					errs = append(errs, field.Forbidden(at.Child("privileged"), "must not be true"))
				}
			}
		}
		return errs, nil
	}))
}

// securing are the expressions of a policy that decides as secured.
func securing() (all []string) {
	for _, container := range []string{
		"has(c.securityContext) && has(c.securityContext.runAsNonRoot) && c.securityContext.runAsNonRoot",
		"has(c.securityContext) && has(c.securityContext.readOnlyRootFilesystem) && c.securityContext.readOnlyRootFilesystem",
		"!has(c.securityContext) || !has(c.securityContext.allowPrivilegeEscalation) || !c.securityContext.allowPrivilegeEscalation",
		"!has(c.securityContext) || !has(c.securityContext.privileged) || !c.securityContext.privileged",
	} {
		all = append(all, "object.spec.template.spec.containers.all(c, "+container+")",
			"!has(object.spec.template.spec.initContainers) || object.spec.template.spec.initContainers.all(c, "+container+")")
	}
	return all
}

// deployments returns the options for Deployments. A cluster validates them before it calls webhooks and policies.
func deployments(t testing.TB) []equivalence.Option {
	t.Helper()
	var object map[string]any
	expect.NoError(t, yaml.Unmarshal([]byte(`{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {
containers: [&a {name: a, image: a, securityContext: {runAsNonRoot: true, readOnlyRootFilesystem: true, allowPrivilegeEscalation: false, privileged: false}}], initContainers: [*a]}}}}`), &object))
	return []equivalence.Option{equivalence.Samples(object), equivalence.Expect("a Deployment has containers in a cluster", func(d equivalence.Difference) bool {
		return strings.Contains(d.After.Message, "expected iterable type")
	})}
}

const atMost = "!has(object.spec.limit) || object.spec.size <= object.spec.limit"
const same = "oldObject == null || object.spec.class == oldObject.spec.class"
const hosts = "!has(object.spec.hosts) || object.spec.hosts.all(h, !h.endsWith('.local'))"
const distinct = "!has(object.spec.hosts) || object.spec.hosts.all(h, object.spec.hosts.exists_one(other, other == h))"

// pair is two releases to compare.
type pair struct {
	before, after schema.Release
	options       []equivalence.Option
}

func (p pair) compare(t *testing.T, seed uint64, requests int) *equivalence.Report {
	t.Helper()
	report, err := equivalence.Compare(t.Context(), p.before, p.after, append(p.options, equivalence.Seed(seed), equivalence.Requests(requests))...)
	expect.NoError(t, err)
	return report
}

const available = "!has(object.status) || !has(object.status.replicas) || object.status.replicas < 3"

var ready = map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "a"},
	"spec": map[string]any{"replicas": 1}, "status": map[string]any{"replicas": 1}}

// versions returns the definition of widgets with a second version.
func versions(t testing.TB, edit func(crd *apiextensionsv1.CustomResourceDefinition)) []*schema.Definition {
	t.Helper()
	crd := widgets(t, "")[0].CustomResourceDefinition()
	second := crd.Spec.Versions[0].DeepCopy()
	second.Name, second.Storage = "v2", false
	crd.Spec.Versions = append(crd.Spec.Versions, *second)
	edit(crd)
	d, err := schema.New(crd)
	expect.NoError(t, err)
	return []*schema.Definition{d}
}

// converting returns a release in which v2 lacks the hosts of v1, and conversion adds one.
func converting(t testing.TB, host string) schema.Release {
	t.Helper()
	at := "https://webhook.example.com/convert"
	return schema.Release{
		Definitions: versions(t, func(crd *apiextensionsv1.CustomResourceDefinition) {
			spec := crd.Spec.Versions[1].Schema.OpenAPIV3Schema.Properties["spec"]
			delete(spec.Properties, "hosts")
			crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.WebhookConverter, Webhook: &apiextensionsv1.WebhookConversion{
				ConversionReviewVersions: []string{"v1"}, ClientConfig: &apiextensionsv1.WebhookClientConfig{URL: &at},
			}}
		}),
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var review apiextensionsv1.ConversionReview
			_ = json.NewDecoder(r.Body).Decode(&review)
			review.Response = &apiextensionsv1.ConversionResponse{UID: review.Request.UID, Result: metav1.Status{Status: metav1.StatusSuccess}}
			for _, object := range review.Request.Objects {
				var u unstructured.Unstructured
				_ = u.UnmarshalJSON(object.Raw)
				unstructured.RemoveNestedField(u.Object, "spec", "hosts")
				if review.Request.DesiredAPIVersion == "example.com/v1" {
					_ = unstructured.SetNestedStringSlice(u.Object, []string{host}, "spec", "hosts")
				}
				u.SetAPIVersion(review.Request.DesiredAPIVersion)
				review.Response.ConvertedObjects = append(review.Response.ConvertedObjects, runtime.RawExtension{Object: &u})
			}
			_ = json.NewEncoder(w).Encode(review)
		}),
	}
}

// Objects in two versions do not have one name at the same time.
func TestCompare_FixedNameInVersions(t *testing.T) {
	t.Parallel()
	both := policy(versions(t, func(*apiextensionsv1.CustomResourceDefinition) {}), "example.com", "widgets", both, "", "object.metadata.name != 'special' || object.spec.size <= 700")
	if report := (pair{both, both, nil}).compare(t, 0, 1000); !report.Equivalent() {
		t.Errorf("got %s", report)
	}
}

// Webhooks at one path are counted one by one.
func TestCompare_CountsEachWebhook(t *testing.T) {
	t.Parallel()
	one := limited(widgets(t, ""))
	text := string(one.Manifests["webhooks.yaml"])
	_, first, _ := strings.Cut(text, "webhooks: [")
	misspelled := strings.NewReplacer("webhook.example.com, ", "misspelled.example.com, ", "resources: [widgets]", "resources: [widget]").Replace(strings.TrimSuffix(first, "]}"))
	two := one
	two.Manifests = map[string][]byte{"webhooks.yaml": []byte(strings.Replace(text, "webhooks: [", "webhooks: ["+misspelled+",", 1))}
	report := pair{one, two, nil}.compare(t, 0, 400)
	if report.Equivalent() || !strings.Contains(report.String(), "misspelled.example.com: allowed 0, denied 0: no request was decided") {
		t.Errorf("got %s", report)
	}
}

// A policy with one mistake is found to decide differently, whatever the seed.
func TestCompare_FindsMistakes(t *testing.T) {
	plain := widgets(t, "")
	ofWidgets := func(operations, more string, expressions ...string) schema.Release {
		return policy(plain, "example.com", "widgets", operations, more, expressions...)
	}
	capped := func(expression string) schema.Release {
		r := ofWidgets(both, "paramKind: {apiVersion: v1, kind: ConfigMap},", expression)
		r.Manifests["policy.yaml"] = []byte(strings.Replace(string(r.Manifests["policy.yaml"]), "validationActions", "paramRef: {name: cap, namespace: default, parameterNotFoundAction: Deny}, validationActions", 1))
		r.Manifests["cap.yaml"] = []byte("{apiVersion: v1, kind: ConfigMap, metadata: {name: cap, namespace: default}, data: {max: '700'}}")
		return r
	}
	const at700 = "object.spec.size <= 700"
	matching := func(more string) schema.Release {
		r := ofWidgets(both, "", at700)
		r.Manifests["policy.yaml"] = []byte(strings.Replace(string(r.Manifests["policy.yaml"]), "matchConstraints: {", "matchConstraints: {"+more+", ", 1))
		return r
	}
	unless := func(condition string) schema.Release {
		return ofWidgets(both, fmt.Sprintf("matchConditions: [{name: a, expression: %q}],", "!("+condition+")"), at700)
	}
	short := slices.DeleteFunc(securing(), func(e string) bool { return strings.Contains(e, "initContainers") })
	for name, p := range map[string]pair{
		"a forgotten has":                      {limited(plain), ofWidgets(both, "", "object.spec.size <= object.spec.limit"), nil},
		"less for at most":                     {limited(plain), ofWidgets(both, "", "!has(object.spec.limit) || object.spec.size < object.spec.limit"), nil},
		"less for at most a parameter":         {capped("object.spec.size <= int(params.data.max)"), capped("object.spec.size < int(params.data.max)"), nil},
		"no init containers":                   {secured(), policy(nil, "apps", "deployments", both, "", short...), deployments(t)},
		"no check of null":                     {fixed(plain), ofWidgets(both, "", "object.spec.class == oldObject.spec.class"), nil},
		"only creations":                       {limited(plain), ofWidgets("CREATE", "", atMost), nil},
		"another resource":                     {limited(plain), ofWidgets(both, "", atMost), nil},
		"an error is ignored":                  {limited(plain), ofWidgets(both, "failurePolicy: Ignore,", "size(object.spec.hosts) >= 0 ? "+atMost+" : true"), nil},
		"a cost limit":                         {listed(plain, false), ofWidgets(both, "", "!has(object.spec.hosts) || object.spec.hosts.all(h, !h.endsWith('.local') && object.spec.hosts.all(a, object.spec.hosts.all(b, a == b || a != b)))"), nil},
		"or for and":                           {hosted(plain), ofWidgets(both, "", "("+hosts+") || ("+distinct+")"), nil},
		"a match condition that excludes some": {limited(plain), ofWidgets(both, `matchConditions: [{name: a, expression: "object.spec.class != 'large'"}],`, atMost), nil},
		"a variable":                           {ofWidgets(both, "", at700), ofWidgets(both, "variables: [{name: a, expression: object.spec.size}, {name: b, expression: variables.a + 1}],", "variables.b < 701"), nil},
		"a namespace selector":                 {matching("namespaceSelector: {matchExpressions: [{key: kubernetes.io/metadata.name, operator: NotIn, values: [kube-system, other]}]}"), matching("namespaceSelector: {matchExpressions: [{key: kubernetes.io/metadata.name, operator: NotIn, values: [kube-system]}]}"), nil},
		"a label of namespaces":                {matching("namespaceSelector: {matchLabels: {a: b}, matchExpressions: [{key: skip, operator: DoesNotExist}]}"), matching("namespaceSelector: {matchLabels: {a: b}}"), nil},
		"an object selector":                   {matching("objectSelector: {matchExpressions: [{key: example.com/skip, operator: DoesNotExist}]}"), ofWidgets(both, "", at700), nil},
		"a namespace":                          {unless("request.namespace == 'kube-system'"), ofWidgets(both, "", at700), nil},
		"a prefix of names":                    {unless("object.metadata.name.startsWith('kube-')"), ofWidgets(both, "", at700), nil},
		"a name":                               {unless("request.name == 'special'"), ofWidgets(both, "", at700), nil},
		"a resource name":                      {matching("excludeResourceRules: [{operations: ['*'], apiGroups: [example.com], apiVersions: [v1], resources: [widgets], resourceNames: [special]}]"), ofWidgets(both, "", at700), nil},
		"a user":                               {unless("request.userInfo.username == 'bob'"), ofWidgets(both, "", at700), nil},
		"a group":                              {unless("'admins' in request.userInfo.groups"), ofWidgets(both, "", at700), nil},
		"another version":                      {converting(t, "a"), converting(t, "b"), nil},
		"the status of a built-in kind":        {policy(nil, "apps", "deployments, deployments/status", both, "", available), policy(nil, "apps", "deployments", both, "", available), []equivalence.Option{equivalence.Samples(ready)}},
	} {
		if name == "another resource" {
			p.after.Manifests["policy.yaml"] = []byte(strings.Replace(string(p.after.Manifests["policy.yaml"]), "resources: [widgets]", "resources: [widget]", 1))
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(tier.Pick(1, 3)) {
				report := p.compare(t, seed, 400)
				if len(report.Differences) == 0 {
					t.Errorf("seed %d: no difference is found\n%s", seed, report)
				} else if seed == 0 {
					t.Log(report)
				}
			}
		})
	}
}

// Labels get the keys that expressions mention.
func TestCompare_KeysOfMaps(t *testing.T) {
	t.Parallel()
	plain := widgets(t, "")
	large := "object.spec.size <= 10 || has(object.metadata.labels) && 'big' in object.metadata.labels"
	p := pair{policy(plain, "example.com", "widgets", both, "", large+" && object.metadata.labels['big'] == 'yes'"), policy(plain, "example.com", "widgets", both, "", large), nil}
	for seed := range uint64(tier.Pick(1, 3)) {
		if report := p.compare(t, seed, 2000); len(report.Differences) == 0 {
			t.Errorf("seed %d: no difference is found\n%s", seed, report)
		}
	}
}

// An object may need the name that a rule mentions.
func TestCompare_FixedName(t *testing.T) {
	t.Parallel()
	named := func(rule string) schema.Release {
		definitions := widgets(t, "")
		text, err := yaml.Marshal(definitions[0].CustomResourceDefinition())
		expect.NoError(t, err)
		d, err := schema.Parse([]byte(strings.Replace(string(text), "      openAPIV3Schema:\n", "      openAPIV3Schema:\n        x-kubernetes-validations: [{rule: \""+rule+"\"}]\n", 1)))
		expect.NoError(t, err)
		return schema.Release{Definitions: []*schema.Definition{d}}
	}
	one := named("self.metadata.name == 'cluster'")
	if report := (pair{one, policy(widgets(t, ""), "example.com", "widgets", both, "", "object.metadata.name == 'cluster'"), nil}).compare(t, 0, 400); !report.Equivalent() {
		t.Errorf("equal: got %s", report)
	}
	report := pair{one, named("self.metadata.name in ['cluster', 'default']"), nil}.compare(t, 0, 400)
	if len(report.Differences) != 1 || !strings.Contains(string(report.Differences[0].Object), `"name":"default"`) {
		t.Errorf("one more name: got %s", report)
	}
}

// Objects get statuses before their specifications change.
func TestCompare_Status(t *testing.T) {
	t.Parallel()
	plain := widgets(t, "")
	frozen := func(expression string) schema.Release {
		return policy(plain, "example.com", "widgets", "UPDATE", "", "!has(object.status) || !has(object.status.phase) || object.status.phase != 'done' || "+expression)
	}
	p := pair{frozen("object.spec.size == oldObject.spec.size"), frozen("object.spec.size >= oldObject.spec.size"), nil}
	for seed := range uint64(tier.Pick(1, 3)) {
		if report := p.compare(t, seed, 4000); len(report.Differences) == 0 {
			t.Errorf("seed %d: no difference is found\n%s", seed, report)
		}
	}
}

// A policy, a rule or a mutation that decides as the webhook is found to be equivalent, whatever the seed.
func TestCompare_AcceptsEquals(t *testing.T) {
	plain := widgets(t, "")
	label := webhook(plain, "Mutating", "example.com", "widgets", "CREATE", admission.Mutate(func(_ context.Context, u *unstructured.Unstructured) error {
		if class, _, _ := unstructured.NestedString(u.Object, "spec", "class"); class == "large" {
			labels := u.GetLabels()
			if labels == nil {
				labels = map[string]string{}
			}
			labels["size"] = "large"
			u.SetLabels(labels)
		}
		return nil
	}, admission.ForKind(widget)))
	labels := schema.Release{Definitions: plain, Manifests: map[string][]byte{"policy.yaml": []byte(`{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingAdmissionPolicy, metadata: {name: label}, spec: {reinvocationPolicy: Never,
matchConstraints: {resourceRules: [{operations: [CREATE], apiGroups: [example.com], apiVersions: [v1], resources: [widgets]}]}, matchConditions: [{name: large, expression: "object.spec.class == 'large'"}],
mutations: [{patchType: ApplyConfiguration, applyConfiguration: {expression: "Object{metadata: Object.metadata{labels: {'size': 'large'}}}"}}]}}
---
{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingAdmissionPolicyBinding, metadata: {name: label}, spec: {policyName: label}}`)}}
	for name, p := range map[string]pair{
		"a validation":          {limited(plain), policy(plain, "example.com", "widgets", both, "", atMost), nil},
		"a comparison with old": {fixed(plain), policy(plain, "example.com", "widgets", both, "", same), nil},
		"a rule":                {fixed(plain), schema.Release{Definitions: widgets(t, `x-kubernetes-validations: [{rule: "self.class == oldSelf.class"}],`)}, nil},
		"all of a webhook":      {secured(), policy(nil, "apps", "deployments", both, "", securing()...), deployments(t)},
		"a mutation":            {label, labels, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(tier.Pick(1, 3)) {
				if report := p.compare(t, seed, 1000); !report.Equivalent() {
					t.Errorf("seed %d: %s", seed, report)
				}
			}
		})
	}
}

// The fixed seed gives the same report.
func TestCompare_Repeats(t *testing.T) {
	t.Parallel()
	plain := widgets(t, "")
	p := pair{limited(plain), policy(plain, "example.com", "widgets", both, "", "object.spec.size <= object.spec.limit"), nil}
	if a, b := p.compare(t, 1, 300).String(), p.compare(t, 1, 300).String(); a != b {
		t.Errorf("the first report:\n%s\nthe second one:\n%s", a, b)
	}
}

// Intended differences are declared, and decisions that no request leads to are reported.
func TestCompare_Declared(t *testing.T) {
	t.Parallel()
	plain := widgets(t, "")
	never := "object.spec.class != 'huge'"
	p := pair{limited(plain), policy(plain, "example.com", "widgets", both, "", "object.spec.size <= object.spec.limit", never), []equivalence.Option{
		equivalence.Users(rest.ImpersonationConfig{UserName: "alice", Groups: []string{"system:masters"}}),
		equivalence.Expect("a widget needs a limit now", func(d equivalence.Difference) bool { return strings.Contains(d.After.Message, "no such key: limit") }),
	}}
	report := p.compare(t, 0, 1000)
	if len(report.Differences) > 0 || report.Expected["a widget needs a limit now"] == 0 || report.Equivalent() {
		t.Errorf("got %s", report)
	}
	name := "ValidatingAdmissionPolicy policy: spec.validations[1]: " + never
	if !strings.Contains(report.String(), name+": allowed ") || !strings.Contains(report.String(), "never denied or changed a request") {
		t.Errorf("got %s", report)
	}
	p.options = append(p.options, equivalence.Undecided("the class is an enum", name))
	if report := p.compare(t, 0, 1000); !report.Equivalent() || !strings.Contains(report.String(), "(the class is an enum)") {
		t.Errorf("got %s", report)
	}
}

// What is stored already shows what no new object does: a policy decides about a value that an update leaves as it is, a rule of
// a schema does not, and a default appears when an object is read.
func TestCompare_Stored(t *testing.T) {
	t.Parallel()
	plain := widgets(t, "")
	crd := plain[0].CustomResourceDefinition()
	spec := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
	limit := spec.Properties["limit"]
	limit.Default = &apiextensionsv1.JSON{Raw: []byte("1000")}
	spec.Properties["limit"] = limit
	defaulted, err := schema.New(crd)
	expect.NoError(t, err)
	medium := []byte(`{apiVersion: example.com/v1, kind: Widget, metadata: {name: old, finalizers: [example.com/keep]}, spec: {size: 1, class: medium}}`)
	for name, c := range map[string]struct {
		after schema.Release
		want  string // a difference
		fresh bool   // which new objects show, too
	}{
		"nothing":   {schema.Release{Definitions: plain}, "", false},
		"a policy":  {policy(plain, "example.com", "widgets", "UPDATE", "", "object.spec.class in ['small', 'large']"), "update of old: denied", false},
		"a default": {schema.Release{Definitions: []*schema.Definition{defaulted}}, "read of old: changed [spec.limit]", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			differences := func(opts ...equivalence.Option) (all []string) {
				report, err := equivalence.Compare(t.Context(), schema.Release{Definitions: plain}, c.after, append(opts, equivalence.Requests(100))...)
				expect.NoError(t, err)
				for _, d := range report.Differences {
					var old unstructured.Unstructured
					if d.Old != nil {
						expect.NoError(t, old.UnmarshalJSON(d.Old))
					}
					how := "denied"
					if d.After.Allowed {
						how = fmt.Sprint("changed ", d.Changed)
					}
					all = append(all, fmt.Sprintf("%s of %s: %s", d.Operation, old.GetName(), how))
				}
				return all
			}
			if found := differences(); len(found) > 0 != c.fresh {
				t.Errorf("new objects show %q", found)
			}
			if found := differences(equivalence.Stored(medium)); !slices.Contains(found, c.want) && (c.want != "" || len(found) > 0) {
				t.Errorf("got %q, want %q", found, c.want)
			}
		})
	}
}

// A release that cannot be installed is an error that names the release, the file, the object and the field.
func TestCompare_BadInput(t *testing.T) {
	plain := widgets(t, "")
	good := schema.Release{Definitions: plain}
	edited := func(old, now string) schema.Release {
		r := policy(plain, "example.com", "widgets", both, "", atMost)
		text := strings.Replace(string(r.Manifests["policy.yaml"]), old, now, 1)
		if text == string(r.Manifests["policy.yaml"]) {
			t.Fatalf("%s does not occur", old)
		}
		r.Manifests["policy.yaml"] = []byte(text)
		return r
	}
	nonsense := limited(plain)
	nonsense.Handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("hello")) })
	silent := limited(plain)
	silent.Handler = nil
	twice := schema.Release{Definitions: append(slices.Clone(plain), plain...)}
	for name, c := range map[string]struct {
		after schema.Release
		opts  []equivalence.Option
		want  []string
	}{
		"an expression that does not compile": {edited("object.spec.size", "object.spec.size +"), nil, []string{"after: policy.yaml", "ValidatingAdmissionPolicy", "policy", "spec.validations[0].expression", "Syntax error"}},
		"a field of another type":             {edited("spec: {", "spec: {failurePolicy: true, "), nil, []string{"after: policy.yaml: apiservertest: ValidatingAdmissionPolicy policy: json: cannot unmarshal bool", "spec.failurePolicy"}},
		"a binding without its policy":        {edited("policyName: policy", "policyName: polcy"), nil, []string{`after: policy.yaml: ValidatingAdmissionPolicyBinding binding: spec.policyName: there is no ValidatingAdmissionPolicy "polcy"`}},
		"a binding without parameters": {edited("spec: {", "spec: {paramKind: {apiVersion: v1, kind: ConfigMap}, "), nil,
			[]string{"after: policy.yaml: ValidatingAdmissionPolicyBinding binding: spec.paramRef: expected a reference, because policy.yaml: ValidatingAdmissionPolicy policy has spec.paramKind"}},
		"parameters that do not exist": {schema.Release{Definitions: plain, Manifests: map[string][]byte{"policy.yaml": []byte(strings.NewReplacer("spec: {\n", "spec: {paramKind: {apiVersion: v1, kind: ConfigMap},\n",
			"validationActions", "paramRef: {name: limits, namespace: default, parameterNotFoundAction: Deny}, validationActions").Replace(string(policy(plain, "example.com", "widgets", both, "", atMost).Manifests["policy.yaml"])))}}, nil,
			[]string{`after: policy.yaml: ValidatingAdmissionPolicyBinding binding: spec.paramRef: there is no ConfigMap "limits"`}},
		"text that is not YAML":            {schema.Release{Definitions: plain, Manifests: map[string][]byte{"a.yaml": []byte("a: [")}}, nil, []string{"after: a.yaml: document 1:"}},
		"an object without a name":         {schema.Release{Definitions: plain, Manifests: map[string][]byte{"a.yaml": []byte("kind: A")}}, nil, []string{`after: a.yaml: document 1: expected apiVersion, kind and metadata.name, got "", "A" and ""`}},
		"a handler that answers nonsense":  {nonsense, nil, []string{"after: ValidatingWebhookConfiguration webhook: webhook.example.com at /admit: expected an AdmissionReview with a response, got hello"}},
		"a webhook without a handler":      {silent, nil, []string{"after: webhooks.yaml: ValidatingWebhookConfiguration webhook: the release has no Handler"}},
		"a release without the definition": {schema.Release{}, nil, []string{"after: there is no definition of Widget.example.com, which release before has"}},
		"a definition twice":               {twice, nil, []string{"after: Widget.example.com is defined twice"}},
		"a decision that does not exist":   {good, []equivalence.Option{equivalence.Undecided("why", "what")}, []string{`Undecided: there is no decision "what"`}},
		"a stored object of no kind":       {good, []equivalence.Option{equivalence.Stored([]byte("{apiVersion: v1, kind: Pod, metadata: {name: a}}"))}, []string{"before: apiservertest: stored Pod a: no definition has it"}},
		"a stored object without a name":   {good, []equivalence.Option{equivalence.Stored([]byte("{apiVersion: example.com/v1, kind: Widget, metadata: {name: a}}"), []byte("{apiVersion: example.com/v1, kind: Widget}"))}, []string{`stored object 1: an object needs apiVersion, kind and metadata.name, got "example.com/v1", "Widget" and ""`}},
		"a stored object that is not YAML": {good, []equivalence.Option{equivalence.Stored([]byte("a: ["))}, []string{"Stored: object 0: "}},
		"options":                          {good, []equivalence.Option{equivalence.Requests(0), equivalence.Users(), equivalence.Users(rest.ImpersonationConfig{Groups: []string{"admins"}}), equivalence.Expect("", nil), equivalence.Undecided("")}, []string{"Requests(0): expected at least 1", "Users: expected at least one", "Users: user 0 with groups [admins] has no UserName", "Expect: the reason is empty", "Undecided: the reason is empty"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := equivalence.Compare(t.Context(), good, c.after, c.opts...)
			expect.ErrorContains(t, err, append(c.want, "equivalence: ")...)
		})
	}
}
