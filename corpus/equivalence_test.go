package corpus_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kubeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/crdkit/crdkit/schema"
	"github.com/crdkit/crdkit/schema/equivalence"
	"github.com/crdkit/crdkit/test/controlplane"
	"github.com/crdkit/crdkit/test/expect"
	"github.com/crdkit/crdkit/test/mdtest"
	"github.com/crdkit/crdkit/test/webhooktest"
)

// validated is a public project that validates some kinds both in Go and by the rules of its definitions.
type validated struct {
	rules   []*apiextensionsv1.CustomResourceDefinition
	handler http.Handler // the admission webhook that validates in Go
	options []equivalence.Option
	known   []difference
}

// difference is what the Go validation and the rules of a project are known to decide differently.
type difference struct {
	title  string
	report string // a regular expression that matches each denial of this kind
	denies decider
	object string // a small one, so that the search begins with it and finds the difference; empty if only an update shows that
	cause  string // in the code of the project
	client string // what it means to a user
}

// decider is what denies a request that the other allows.
type decider string

const (
	goDenies    decider = "the Go validation"
	rulesDenies decider = "the rules"
)

var validations = map[string]func(t *testing.T) *validated{
	"cluster-api": clusterAPIValidation,
	"gateway-api": gatewayAPI,
	"istio":       istio,
}

// Each difference between the Go validation of a project and its rules is known, each known one is still found, and a
// kube-apiserver decides the same.
func TestEquivalence(t *testing.T) {
	for name, load := range validations {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := load(t)
			before, after := v.releases(t)
			for _, k := range v.known {
				if sample := (unstructured.Unstructured{}); k.object != "" {
					expect.NoError(t, sample.UnmarshalJSON([]byte(k.object)))
					v.options = append(v.options, equivalence.Samples(sample.Object))
				}
			}
			report, err := equivalence.Compare(t.Context(), before, after, v.options...)
			expect.NoError(t, err)
			t.Log(report)
			found := make([]int, len(v.known))
			for _, d := range report.Differences {
				who, message := goDenies, d.Before.Message
				if d.Before.Allowed {
					who, message = rulesDenies, d.After.Message
				}
				i := slices.IndexFunc(v.known, func(k difference) bool {
					return k.denies == who && regexp.MustCompile(k.report).MatchString(message)
				})
				if i < 0 {
					t.Errorf("a difference is not known:\n%s", d)
					continue
				}
				found[i]++
			}
			for i, k := range v.known {
				if found[i] == 0 && k.object != "" {
					t.Errorf("%s is known, and no difference matches %q", k.title, k.report)
				}
				if k.title == "" || k.cause == "" || k.client == "" {
					t.Errorf("%q lacks its title, its cause, or what it means to a user", k.report)
				}
			}
			for _, d := range report.Decisions {
				if d.Undecided != "" && d.Taken() {
					t.Errorf("it is declared as undecided: %s", d)
				}
			}
			t.Run("server", func(t *testing.T) { v.confirm(t, report.Differences) })
		})
	}
}

// The table of the page counts the known differences.
func TestPage_CountsDifferences(t *testing.T) {
	page := mdtest.Read(t, "../docs/corpus.md")
	for name, load := range validations {
		v := load(t)
		counts := map[decider]int{}
		for _, k := range v.known {
			counts[k.denies]++
		}
		var kinds []string
		for _, crd := range v.rules {
			kinds = append(kinds, crd.Spec.Names.Kind)
		}
		slices.Sort(kinds)
		row := fmt.Sprintf(" | %s | %d | %d | [%d](", strings.Join(kinds, ", "), counts[goDenies], counts[rulesDenies], len(v.known))
		if !strings.Contains(page.Text, row) {
			t.Errorf("%s: the page has no row with %q", name, row)
		}
	}
}

// releases returns a release with the Go validation and without rules, and one with rules only.
func (v *validated) releases(t *testing.T) (before, after schema.Release) {
	t.Helper()
	hook, err := json.Marshal(v.webhook("https://example.com", nil))
	expect.NoError(t, err)
	before.Handler, before.Manifests = v.handler, map[string][]byte{"webhook.json": hook}
	for i, crd := range v.rules {
		with, errWith := schema.New(crd)
		without, errWithout := schema.New(v.withoutRules()[i])
		expect.NoError(t, errors.Join(errWith, errWithout))
		before.Definitions, after.Definitions = append(before.Definitions, without), append(after.Definitions, with)
	}
	return before, after
}

// withoutRules returns the definitions without rules.
func (v *validated) withoutRules() (all []*apiextensionsv1.CustomResourceDefinition) {
	var drop func(s *apiextensionsv1.JSONSchemaProps)
	drop = func(s *apiextensionsv1.JSONSchemaProps) {
		if s == nil {
			return
		}
		s.XValidations = nil
		for name, p := range s.Properties {
			drop(&p)
			s.Properties[name] = p
		}
		if s.Items != nil {
			drop(s.Items.Schema)
		}
		if s.AdditionalProperties != nil {
			drop(s.AdditionalProperties.Schema)
		}
	}
	for _, crd := range v.rules {
		crd = crd.DeepCopy()
		for i := range crd.Spec.Versions {
			drop(crd.Spec.Versions[i].Schema.OpenAPIV3Schema)
		}
		all = append(all, crd)
	}
	return all
}

// webhook returns the configuration of the webhook.
func (v *validated) webhook(url string, caBundle []byte) *admissionregistrationv1.ValidatingWebhookConfiguration {
	none, group := admissionregistrationv1.SideEffectClassNone, v.rules[0].Spec.Group
	hook := admissionregistrationv1.ValidatingWebhook{
		Name:                    "validate." + group,
		ClientConfig:            admissionregistrationv1.WebhookClientConfig{URL: &url, CABundle: caBundle},
		SideEffects:             &none,
		AdmissionReviewVersions: []string{"v1"},
	}
	for _, crd := range v.rules {
		hook.Rules = append(hook.Rules, admissionregistrationv1.RuleWithOperations{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
			Rule:       admissionregistrationv1.Rule{APIGroups: []string{crd.Spec.Group}, APIVersions: []string{"*"}, Resources: []string{crd.Spec.Names.Plural}},
		})
	}
	return &admissionregistrationv1.ValidatingWebhookConfiguration{
		TypeMeta:   metav1.TypeMeta{APIVersion: admissionregistrationv1.SchemeGroupVersion.String(), Kind: "ValidatingWebhookConfiguration"},
		ObjectMeta: metav1.ObjectMeta{Name: group},
		Webhooks:   []admissionregistrationv1.ValidatingWebhook{hook},
	}
}

// confirm sends the request of each difference to a kube-apiserver: first with the Go validation, then with the rules.
func (v *validated) confirm(t *testing.T, differences []*equivalence.Difference) {
	config := controlplane.Shared(t).Config()
	config.WarningHandler = rest.NoWarnings{}
	var calls atomic.Int64
	url, ca := webhooktest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		v.handler.ServeHTTP(w, r)
	}))
	c := &cluster{apiextensions.NewForConfigOrDie(config), dynamic.NewForConfigOrDie(config), nil, map[kubeschema.GroupKind]*apiextensionsv1.CustomResourceDefinition{}}
	install := func(name string, crds []*apiextensionsv1.CustomResourceDefinition) {
		for _, crd := range crds {
			crd = crd.DeepCopy()
			for i := range crd.Spec.Versions {
				crd.Spec.Versions[i].AdditionalPrinterColumns = []apiextensionsv1.CustomResourceColumnDefinition{{Name: name, Type: "string", JSONPath: ".kind"}}
			}
			c.apply(t, crd)
			c.crds[kubeschema.GroupKind{Group: crd.Spec.Group, Kind: crd.Spec.Names.Kind}] = crd
		}
	}
	// The server calls a new webhook, and no longer calls a deleted one, after a moment.
	awaitCalls := func(want bool) {
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
			n := calls.Load()
			_ = c.send(t, differences[0])
			if called := calls.Load() > n; called == want {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("the server does not learn of the webhook's configuration: want calls: %v", want)
			}
		}
	}
	check := func(name string, want func(*equivalence.Difference) equivalence.Response) {
		for _, d := range differences {
			err := c.send(t, d)
			message := ""
			if status := apierrors.APIStatus(nil); errors.As(err, &status) {
				message = status.Status().Message
			}
			if want := want(d); want.Allowed != (err == nil) || want.Message != message {
				t.Errorf("%s: the server answers %v to\n%s", name, err, d)
			}
		}
	}
	install("before", v.withoutRules())
	hook := v.webhook(url, ca)
	hooks := kubernetes.NewForConfigOrDie(config).AdmissionregistrationV1().ValidatingWebhookConfigurations()
	_, err := hooks.Create(t.Context(), hook, metav1.CreateOptions{})
	expect.NoError(t, err)
	awaitCalls(true)
	check("before", func(d *equivalence.Difference) equivalence.Response { return d.Before })
	expect.NoError(t, hooks.Delete(t.Context(), hook.Name, metav1.DeleteOptions{}))
	install("after", v.rules)
	awaitCalls(false)
	check("after", func(d *equivalence.Difference) equivalence.Response { return d.After })
}

// send sends the request of a difference, and returns the error of the server. No object remains.
func (c *cluster) send(t *testing.T, d *equivalence.Difference) error {
	t.Helper()
	object, old := &unstructured.Unstructured{}, &unstructured.Unstructured{}
	expect.NoError(t, object.UnmarshalJSON(d.Object))
	objects, dryRun := c.of(object, d.Kind.Version), []string{metav1.DryRunAll}
	if d.Operation == equivalence.Create {
		_, err := objects.Create(t.Context(), object, metav1.CreateOptions{DryRun: dryRun})
		return err
	}
	err := old.UnmarshalJSON(d.Old)
	if err == nil {
		old, err = objects.Create(t.Context(), old, metav1.CreateOptions{})
	}
	if err != nil {
		t.Fatalf("the old object: %v\n%s", err, d)
	}
	object.SetResourceVersion(old.GetResourceVersion())
	if d.Operation == equivalence.UpdateStatus {
		_, err = objects.UpdateStatus(t.Context(), object, metav1.UpdateOptions{DryRun: dryRun})
	} else {
		_, err = objects.Update(t.Context(), object, metav1.UpdateOptions{DryRun: dryRun})
	}
	expect.NoError(t, objects.Delete(t.Context(), old.GetName(), metav1.DeleteOptions{}))
	return err
}
