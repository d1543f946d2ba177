package registration_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/crdkit/crdkit/admission"
	"github.com/crdkit/crdkit/test/expect"
	"github.com/crdkit/crdkit/test/testobj"
	"github.com/crdkit/crdkit/test/webhooktest"
	"github.com/crdkit/crdkit/webhook/registration"
)

// hider is a middleware.
type hider struct{ http.Handler }

func TestNew_JoinsAllMistakes(t *testing.T) {
	s, other := newShop(t, "example.com"), newShop(t, "other.example.com")
	service := registration.Service("pizza-system", "pizza-operator")
	mutate, validate := admit(s.mutate()), admit(s.validate())
	one := strings.Replace(string(s.definition()), "served: true", "served: false", 1)
	for name, c := range map[string]struct {
		name string
		opts []registration.Option
		want []string
	}{
		"nothing": {"", nil, []string{`name ""`, "endpoint: expected either Service or URL", "nothing to register"}},
		"names": {"Pizza", []registration.Option{registration.Service("A", "b.c")},
			[]string{`name "Pizza"`, `"A", expected a name`, `"b.c", expected a name`}},
		"a long name":                     {strings.Repeat("a", 129), []registration.Option{service}, []string{"at most 128 characters"}},
		"two places":                      {"p", []registration.Option{service, registration.URL("https://localhost")}, []string{"endpoint: expected either Service or URL"}},
		"a port without a Service":        {"p", []registration.Option{registration.URL("https://localhost"), registration.ServicePort(1)}, []string{"ServicePort without Service"}},
		"no https":                        {"p", []registration.Option{registration.URL("http://localhost")}, []string{`URL "http://localhost", expected https://host`}},
		"a URL with a path":               {"p", []registration.Option{registration.URL("https://localhost/x")}, []string{"expected https://host"}},
		"no URL":                          {"p", []registration.Option{registration.URL("https://a b")}, []string{"URL: parse"}},
		"a path twice":                    {"p", []registration.Option{service, s.definitions(), registration.Mutating("a.example.com", "/admit", mutate), registration.Validating("b.example.com", "/admit", validate)}, []string{`Validating b.example.com: path "/admit" is given twice`}},
		"a bad path":                      {"p", []registration.Option{service, s.definitions(), registration.Mutating("a.example.com", "admit", mutate)}, []string{`path "admit", expected one that begins with /`}},
		"a name twice":                    {"p", []registration.Option{service, s.definitions(), registration.Validating("a.example.com", "/a", validate), registration.Validating("a.example.com", "/b", validate)}, []string{"Validating a.example.com: name given twice"}},
		"a short name":                    {"p", []registration.Option{service, s.definitions(), registration.Validating("example.com", "/a", validate)}, []string{"three segments"}},
		"a mutating one that validates":   {"p", []registration.Option{service, s.definitions(), registration.Mutating("a.example.com", "/a", validate)}, []string{"handler without functions of Mutate: register it with Validating"}},
		"a validating one that mutates":   {"p", []registration.Option{service, s.definitions(), registration.Validating("a.example.com", "/a", mutate)}, []string{"the API server refuses a patch from a validating webhook"}},
		"a handler of somebody else":      {"p", []registration.Option{service, registration.Validating("a.example.com", "/a", hider{validate})}, []string{"handler without functions, expected one of admission.NewHandler: or set Rules"}},
		"a conversion that admits":        {"p", []registration.Option{service, s.definitions(), registration.Conversion("/c", validate)}, []string{"Conversion /c: handler without conversions"}},
		"an admission that converts":      {"p", []registration.Option{service, registration.Validating("a.example.com", "/a", convert(s), rules(anyRule))}, []string{"handler without functions"}},
		"a conversion of somebody else":   {"p", []registration.Option{service, registration.Conversion("/c", hider{convert(s)})}, []string{"expected one of conversion.NewHandler"}},
		"kinds without a definition":      {"p", []registration.Option{service, other.definitions(), s.conversion(), s.mutating()}, []string{"Conversion /convert: no CustomResourceDefinition of Pizza.example.com", "Mutating default.pizzas.example.com: function for Pizza.example.com: no CustomResourceDefinition"}},
		"a version that is not converted": {"p", []registration.Option{service, registration.CRDs([]byte(strings.ReplaceAll(string(s.definition()), "v1alpha1", "v1alpha2"))), s.conversion()}, []string{"CustomResourceDefinition pizzas.example.com: Conversion /convert does not convert version v1alpha2"}},
		"versions that nothing converts":  {"p", []registration.Option{service, s.definitions(), s.validating()}, []string{`CustomResourceDefinition pizzas.example.com: versions v1alpha1, v1 without a conversion: add Conversion, or NoConversion("pizzas.example.com")`}},
		"converted twice":                 {"p", []registration.Option{service, s.definitions(), s.conversion(), registration.Conversion("/c", convert(s))}, []string{"converted twice, by Conversion /convert and by Conversion /c"}},
		"preserveUnknownFields":           {"p", []registration.Option{service, registration.CRDs([]byte(strings.Replace(string(s.definition()), "scope:", "preserveUnknownFields: true\n  scope:", 1))), s.conversion()}, []string{"spec.preserveUnknownFields is true, expected false"}},
		"a version that is not served":    {"p", []registration.Option{service, registration.CRDs([]byte(one)), registration.Validating("a.example.com", "/a", admitV1alpha1(s))}, []string{"function for Pizza.example.com: version v1alpha1, expected one that CustomResourceDefinition pizzas.example.com serves"}},
		"no such subresource":             {"p", []registration.Option{service, registration.CRDs([]byte(strings.Replace(string(s.definition()), "{status: {}}", "{}", 1))), registration.Validating("a.example.com", "/a", admit(s.validate(admission.Subresource("status")))), registration.Validating("b.example.com", "/b", admit(s.validate(admission.Subresource("slices"))))}, []string{"function for Pizza.example.com: subresource status, which CustomResourceDefinition pizzas.example.com does not have", "subresource slices"}},
		"a CRD of a Kubernetes project":   {"p", []registration.Option{service, registration.Validating("a.example.com", "/a", admitKind("gateway.networking.k8s.io", "Gateway"))}, []string{"function for Gateway.gateway.networking.k8s.io: no CustomResourceDefinition"}},
		"the scale of what":               {"p", []registration.Option{service, registration.Validating("a.example.com", "/a", admitScale())}, []string{"function for Scale.autoscaling: subresource scale of an unknown resource: set Rules"}},
		"every kind":                      {"p", []registration.Option{service, registration.Validating("a.example.com", "/a", admitEverything())}, []string{"function of every kind: name the kind with ForKind"}},
		"definitions": {"p", []registration.Option{service, registration.CRDs(nil, []byte("a: [")), s.definitions(), s.definitions(), registration.CRDs(
			[]byte("kind: ConfigMap\napiVersion: v1"), []byte("\n---\napiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: x}"),
			[]byte(strings.Replace(one, "name: pizzas.", "name: pizza.", 1)),
			[]byte(strings.Replace(one, "Namespaced", "Everywhere", 1)),
			[]byte(strings.Replace(one, "kind: Custom", "kind: Custom\nkind: Custom", 1)),
			[]byte(strings.ReplaceAll(one, "pizzas", "pies")),
		), s.mutating()}, []string{"CRDs, text 1: no CustomResourceDefinition found", "text 2: the document of line 1", "CustomResourceDefinition pizzas.example.com and CustomResourceDefinition pizzas.example.com are both of kind Pizza.example.com", `kind "ConfigMap" of apiVersion "v1"`,
			`line 2: CustomResourceDefinition "x" has no spec.group`, `metadata.name must be "pizzas.example.com"`, `spec.scope "Everywhere"`, `key "kind" already set`, "CustomResourceDefinition pizzas.example.com and CustomResourceDefinition pies.example.com are both of kind Pizza.example.com"}},
	} {
		t.Run(name, func(t *testing.T) {
			hooks, err := registration.New(c.name, c.opts...)
			if err == nil || hooks != nil {
				t.Fatal("there is no error")
			}
			expect.ErrorContains(t, err, c.want...)
			for line := range strings.Lines(err.Error()) {
				if strings.HasPrefix(line, "registration: registration") {
					t.Error(line)
				}
			}
		})
	}
}

// Rules are made from the handler.
func TestManifests_RulesFromHandler(t *testing.T) {
	s := newShop(t, "example.com")
	const create, update, del, connect = admissionregistrationv1.Create, admissionregistrationv1.Update, admissionregistrationv1.Delete, admissionregistrationv1.Connect
	namespaced, cluster, all := admissionregistrationv1.NamespacedScope, admissionregistrationv1.ClusterScope, admissionregistrationv1.AllScopes
	rule := func(group string, versions, resources []string, scope admissionregistrationv1.ScopeType, operations ...admissionregistrationv1.OperationType) admissionregistrationv1.RuleWithOperations {
		return admissionregistrationv1.RuleWithOperations{Operations: operations, Rule: admissionregistrationv1.Rule{APIGroups: []string{group}, APIVersions: versions, Resources: resources, Scope: &scope}}
	}
	pizza := []string{"pizzas"}
	for name, c := range map[string]struct {
		handler http.Handler
		want    []admissionregistrationv1.RuleWithOperations
	}{
		"one version":                                        {admit(s.validate()), []admissionregistrationv1.RuleWithOperations{rule("example.com", []string{"v1"}, pizza, namespaced, create, update)}},
		"with ConvertWith, all versions":                     {admitConverted(s, s.validate()), []admissionregistrationv1.RuleWithOperations{rule("example.com", []string{"v1alpha1", "v1"}, pizza, namespaced, create, update)}},
		"another converter":                                  {admitAnyConverter(s.validate()), []admissionregistrationv1.RuleWithOperations{rule("example.com", []string{"v1alpha1", "v1"}, pizza, namespaced, create, update)}},
		"operations of one version":                          {admit(s.validateDelete(), s.validate(admission.On("CREATE"))), []admissionregistrationv1.RuleWithOperations{rule("example.com", []string{"v1"}, pizza, namespaced, create, del)}},
		"a subresource":                                      {admitConverted(s, s.validate(), s.validate(admission.Subresource("status"))), []admissionregistrationv1.RuleWithOperations{rule("example.com", []string{"v1alpha1", "v1"}, pizza, namespaced, create, update), rule("example.com", []string{"v1"}, []string{"pizzas/status"}, namespaced, create, update)}},
		"resources of one version":                           {admit(s.validate(), s.validate(admission.Subresource("status"))), []admissionregistrationv1.RuleWithOperations{rule("example.com", []string{"v1"}, pizza, namespaced, create, update), rule("example.com", []string{"v1"}, []string{"pizzas/status"}, namespaced, create, update)}},
		"operations that differ":                             {admitVersions(s), []admissionregistrationv1.RuleWithOperations{rule("example.com", []string{"v1alpha1"}, pizza, namespaced, del), rule("example.com", []string{"v1"}, pizza, namespaced, create, update)}},
		"metadata, in all versions":                          {admitMetadata(s.kind("v1")), []admissionregistrationv1.RuleWithOperations{rule("example.com", []string{"v1alpha1", "v1"}, pizza, namespaced, del)}},
		"metadata beside a typed function, in its version":   {admit(s.validate(), admission.Validate(fine[*metav1.PartialObjectMetadata], admission.ForKind(s.kind("v1alpha1")))), []admissionregistrationv1.RuleWithOperations{rule("example.com", []string{"v1"}, pizza, namespaced, create, update)}},
		"metadata beside typed functions, in their versions": {admit(admission.ValidateDelete(fine[*metav1.PartialObjectMetadata], admission.ForKind(s.kind("v1"))), s.validateDelete(), admission.ValidateDelete(fine[*unstructured.Unstructured], admission.ForKind(s.kind("v1alpha1")))), []admissionregistrationv1.RuleWithOperations{rule("example.com", []string{"v1alpha1", "v1"}, pizza, namespaced, del)}},
		"metadata beside a function for another operation":   {admit(s.validate(), admission.ValidateDelete(fine[*metav1.PartialObjectMetadata], admission.ForKind(s.kind("v1")))), []admissionregistrationv1.RuleWithOperations{rule("example.com", []string{"v1alpha1"}, pizza, namespaced, del), rule("example.com", []string{"v1"}, pizza, namespaced, create, update, del)}},
		"metadata beside a function for a subresource":       {admit(s.validate(admission.Subresource("status")), admission.Validate(fine[*metav1.PartialObjectMetadata], admission.ForKind(s.kind("v1")))), []admissionregistrationv1.RuleWithOperations{rule("example.com", []string{"v1alpha1", "v1"}, pizza, namespaced, create, update), rule("example.com", []string{"v1"}, []string{"pizzas/status"}, namespaced, create, update)}},
		"metadata beside a typed function, matched exactly":  {admit(s.validate(), admission.Validate(fine[*metav1.PartialObjectMetadata], admission.ForKind(s.kind("v1")))), []admissionregistrationv1.RuleWithOperations{rule("example.com", []string{"v1alpha1", "v1"}, pizza, namespaced, create, update)}},
		"built-in kinds":                                     {admitBuiltIn(), []admissionregistrationv1.RuleWithOperations{rule("", []string{"v1"}, []string{"pods"}, all, create, update), rule("", []string{"v1"}, []string{"pods/status"}, all, create, update), rule("networking.k8s.io", []string{"*"}, []string{"networkpolicies"}, all, del)}},
		"a cluster-scoped and another":                       {admitScopes(), []admissionregistrationv1.RuleWithOperations{rule("restaurant.programming-kubernetes.info", []string{"v1alpha1"}, []string{"pizzas"}, namespaced, del), rule("restaurant.programming-kubernetes.info", []string{"v1alpha1"}, []string{"toppings"}, cluster, del)}},
		"a cluster-scoped one alone":                         {admitMetadata(toppingKind), []admissionregistrationv1.RuleWithOperations{rule("restaurant.programming-kubernetes.info", []string{"v1alpha1"}, []string{"toppings"}, cluster, del)}},
		"a CONNECT, for which Rules are set":                 {admitEverything(), []admissionregistrationv1.RuleWithOperations{rule("", []string{"v1"}, []string{"pods/exec"}, all, connect)}},
	} {
		t.Run(name, func(t *testing.T) {
			var changes []func(*admissionregistrationv1.ValidatingWebhook)
			if strings.HasSuffix(name, "are set") {
				changes = append(changes, rules(admissionregistrationv1.RuleWithOperations{Operations: []admissionregistrationv1.OperationType{connect}, Rule: admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods/exec"}}}))
			}
			if strings.HasSuffix(name, "matched exactly") {
				changes = append(changes, func(w *admissionregistrationv1.ValidatingWebhook) { w.MatchPolicy = new(admissionregistrationv1.Exact) })
			}
			for range 10 { // maps have no order
				hooks := declare(t, "p", s.definitions(), registration.CRDs(restaurant(t)...), s.noConversion(), registration.NoConversion("pizzas.restaurant.programming-kubernetes.info"), registration.Validating("a.example.com", "/a", c.handler, changes...))
				got := configuration[admissionregistrationv1.ValidatingWebhookConfiguration](t, hooks)
				if diff := cmp.Diff(c.want, got.Webhooks[0].Rules); diff != "" {
					t.Fatalf("(-want +got):\n%s", diff)
				}
			}
		})
	}
}

func TestNew_KnowsBuiltInGroups(t *testing.T) {
	for _, gv := range clientgoscheme.Scheme.PrioritizedVersionsAllGroups() {
		handler := admitKind(gv.Group, "Pod")
		_, err := registration.New("p", registration.Service("a", "b"), registration.Validating("a.example.com", "/a", handler))
		if err != nil {
			t.Error(err)
		}
	}
}

// The defaults are those of the API, and cautious.
func TestManifests_Defaults(t *testing.T) {
	s := newShop(t, "example.com")
	notIn := func(namespaces ...string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "kubernetes.io/metadata.name", Operator: metav1.LabelSelectorOpNotIn, Values: namespaces}}}
	}
	for name, c := range map[string]struct {
		opts []registration.Option
		want *metav1.LabelSelector
	}{
		"a Service":               {[]registration.Option{registration.Service("pizza-system", "p"), s.validating()}, notIn("kube-system", "pizza-system")},
		"a Service in another":    {[]registration.Option{registration.Service("pizza-system", "p"), registration.OwnNamespace("own"), s.validating()}, notIn("kube-system", "own")},
		"a Service in the system": {[]registration.Option{registration.Service("kube-system", "p"), s.validating()}, notIn("kube-system")},
		"a URL":                   {[]registration.Option{registration.URL("https://localhost"), s.validating()}, notIn("kube-system")},
		"the author's":            {[]registration.Option{registration.URL("https://localhost"), s.validating(func(w *admissionregistrationv1.ValidatingWebhook) { w.NamespaceSelector = &metav1.LabelSelector{} })}, &metav1.LabelSelector{}},
		"cluster-scoped":          {[]registration.Option{registration.URL("https://localhost"), registration.CRDs(restaurant(t)...), registration.NoConversion("pizzas.restaurant.programming-kubernetes.info"), registration.Validating("a.example.com", "/a", admitMetadata(toppingKind))}, &metav1.LabelSelector{}},
	} {
		hooks, err := registration.New("p", append(c.opts, s.definitions(), s.noConversion())...)
		expect.NoError(t, err)
		got := configuration[admissionregistrationv1.ValidatingWebhookConfiguration](t, hooks).Webhooks[0]
		want := admissionregistrationv1.ValidatingWebhook{
			Name: got.Name, ClientConfig: got.ClientConfig, Rules: got.Rules,
			FailurePolicy:           new(admissionregistrationv1.Fail),
			MatchPolicy:             new(admissionregistrationv1.Equivalent),
			SideEffects:             new(admissionregistrationv1.SideEffectClassNone),
			TimeoutSeconds:          new(int32(10)),
			AdmissionReviewVersions: []string{"v1", "v1beta1"},
			NamespaceSelector:       c.want,
			ObjectSelector:          &metav1.LabelSelector{},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// The choices of the author are registered.
func TestManifests_AuthorsChoices(t *testing.T) {
	s := newShop(t, "example.com")
	selector := metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
	hooks, err := registration.New("p", registration.URL("https://[::1]:9443"), registration.ReviewVersions("v1beta1"), s.definitions(), s.conversion(), s.mutating(
		func(w *admissionregistrationv1.MutatingWebhook) {
			w.Name = "another"
			w.FailurePolicy, w.MatchPolicy = new(admissionregistrationv1.Ignore), new(admissionregistrationv1.Exact)
			w.SideEffects, w.TimeoutSeconds = new(admissionregistrationv1.SideEffectClassNoneOnDryRun), new(int32(5))
			w.ReinvocationPolicy, w.NamespaceSelector, w.ObjectSelector = new(admissionregistrationv1.IfNeededReinvocationPolicy), &selector, &selector
			w.MatchConditions, w.Rules = []admissionregistrationv1.MatchCondition{condition("a")}, []admissionregistrationv1.RuleWithOperations{anyRule}
		},
		func(w *admissionregistrationv1.MutatingWebhook) {
			w.MatchConditions = append(w.MatchConditions, condition("b"))
		},
	))
	expect.NoError(t, err)
	got := configuration[admissionregistrationv1.MutatingWebhookConfiguration](t, hooks)
	rule := anyRule
	rule.Scope = new(admissionregistrationv1.AllScopes)
	want := []admissionregistrationv1.MutatingWebhook{{
		Name:                    "default.pizzas.example.com",
		ClientConfig:            admissionregistrationv1.WebhookClientConfig{URL: new("https://[::1]:9443/admit")},
		Rules:                   []admissionregistrationv1.RuleWithOperations{rule},
		FailurePolicy:           new(admissionregistrationv1.Ignore),
		MatchPolicy:             new(admissionregistrationv1.Exact),
		SideEffects:             new(admissionregistrationv1.SideEffectClassNoneOnDryRun),
		TimeoutSeconds:          new(int32(5)),
		ReinvocationPolicy:      new(admissionregistrationv1.IfNeededReinvocationPolicy),
		AdmissionReviewVersions: []string{"v1beta1"},
		NamespaceSelector:       &selector,
		ObjectSelector:          &selector,
		MatchConditions:         []admissionregistrationv1.MatchCondition{condition("a"), condition("b")},
	}}
	if diff := cmp.Diff(want, got.Webhooks); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"::1"}, hooks.Hosts()); diff != "" {
		t.Errorf("the hosts (-want +got):\n%s", diff)
	}
}

func TestDefinitions_KeepWhatTheyHave(t *testing.T) {
	s := newShop(t, "example.com")
	single := strings.ReplaceAll(string(s.definition()), "example.com", "single.example.com")
	single = single[:strings.Index(single, "  - name: v1alpha1")] + "  - name: v1\n    served: true\n    storage: true\n    schema: {openAPIV3Schema: {type: object, properties: {n: {type: integer, maximum: 9223372036854775807, default: 1}}}}\n"
	text := "# two definitions\n--- # the first\n" + string(s.definition()) + "--- \n" + single + "...\n---\n# nothing\n"
	hooks := declare(t, "p", registration.CRDs([]byte(text)), s.conversion())
	got, err := hooks.Manifests(nil)
	expect.NoError(t, err)
	if strings.Contains(string(got), "caBundle") || strings.Contains(string(got), "null") {
		t.Errorf("there is noise in\n%s", got)
	}
	want := slices.Concat(testobj.ParseAll(t, s.definition()), testobj.ParseAll(t, []byte(single)))
	for _, u := range want {
		delete(u.Object, "status")
		delete(u.Object["metadata"].(map[string]any), "creationTimestamp")
	}
	want[0].Object["spec"].(map[string]any)["conversion"] = map[string]any{
		"strategy": "Webhook",
		"webhook": map[string]any{
			"clientConfig":             map[string]any{"service": map[string]any{"namespace": "pizza-system", "name": "pizza-operator", "path": "/convert", "port": int64(443)}},
			"conversionReviewVersions": []any{"v1", "v1beta1"},
		},
	}
	if diff := cmp.Diff(want, testobj.ParseAll(t, got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !strings.Contains(string(got), "maximum: 9223372036854775807\n") {
		t.Error("a large number has changed")
	}
}

// Manifests takes no other bundle than certificates.
func TestManifests_WrongBundle(t *testing.T) {
	s := newShop(t, "example.com")
	hooks := declare(t, "p", s.options()...)
	if text, err := hooks.Manifests([]byte("garbage")); err == nil || text != nil {
		t.Errorf("got %s", text)
	}
	ca, _, _ := webhooktest.SelfSigned(t, "localhost")
	text, err := hooks.Manifests(ca)
	expect.NoError(t, err)
	for _, u := range testobj.ParseAll(t, text) {
		expect.NoError(t, carry(t, ca, u))
	}
}

// Handlers are served on their paths.
func TestWebhooks_Paths(t *testing.T) {
	s := newShop(t, "example.com")
	var order []string
	note := func(who string) registration.Option {
		return registration.Wrap(func(path string, h http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				order = append(order, who+path)
				h.ServeHTTP(w, r)
			})
		})
	}
	hooks := declare(t, "p", append(s.options(), note("outer"), note("inner"))...)
	codes := map[string]int{}
	for _, path := range []string{"/convert", "/admit", "/validate", "/", "/convert/", "/other"} {
		w := httptest.NewRecorder()
		hooks.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path+"?timeout=10s", nil))
		codes[path] = w.Code
	}
	want := map[string]int{"/convert": 405, "/admit": 405, "/validate": 405, "/": 404, "/convert/": 404, "/other": 404}
	if diff := cmp.Diff(want, codes); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"outer/convert", "inner/convert", "outer/admit", "inner/admit", "outer/validate", "inner/validate"}, order); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"pizza-operator.pizza-system.svc"}, hooks.Hosts()); diff != "" {
		t.Errorf("the hosts (-want +got):\n%s", diff)
	}
}

func TestPolicyRules_LimitedToObjects(t *testing.T) {
	s, other := newShop(t, "a.example.com"), newShop(t, "b.example.com")
	hooks := declare(t, "p", s.definitions(), other.definitions(), s.conversion(), other.noConversion(), s.mutating())
	want := []rbacv1.PolicyRule{
		{APIGroups: []string{"apiextensions.k8s.io"}, Resources: []string{"customresourcedefinitions"}, ResourceNames: []string{"pizzas.a.example.com", "pizzas.b.example.com"}, Verbs: []string{"get", "watch", "update"}},
		{APIGroups: []string{"admissionregistration.k8s.io"}, Resources: []string{"mutatingwebhookconfigurations", "validatingwebhookconfigurations"}, ResourceNames: []string{"p"}, Verbs: []string{"get", "watch", "update"}},
		{APIGroups: []string{""}, Resources: []string{"events"}, Verbs: []string{"create"}},
	}
	if diff := cmp.Diff(want, hooks.PolicyRules()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Inject reports a config that is of no use.
func TestInject_UselessConfig(t *testing.T) {
	s := newShop(t, "example.com")
	hooks := declare(t, "p", s.options()...)
	ca, _, _ := webhooktest.SelfSigned(t, "localhost")
	if err := hooks.Inject(t.Context(), &rest.Config{Host: "http://a b"}, newBundle(ca)); err == nil || !strings.HasPrefix(err.Error(), "registration: ") {
		t.Errorf("got %v", err)
	}
	for name, f := range map[string]func() error{
		"Check":                          ready(hooks),
		"CheckBundle":                    func() error { return hooks.CheckBundle(ca) },
		"CheckBundle of no certificates": func() error { return hooks.CheckBundle([]byte("x")) },
	} {
		if err := f(); err == nil {
			t.Errorf("%s returns nil before Inject runs", name)
		}
	}
}
