package offline_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/crdkit/crdkit/schema/offline"
)

// badHooks returns webhooks with the mistakes that New looks for: see compareRegistrations.
func badHooks() (mutating []admissionregistrationv1.MutatingWebhook, validating []admissionregistrationv1.ValidatingWebhook) {
	at := admissionregistrationv1.WebhookClientConfig{URL: new("https://127.0.0.1:1/")}
	service := func(name string) *admissionregistrationv1.ServiceReference {
		return &admissionregistrationv1.ServiceReference{Name: name, Namespace: "default"}
	}
	none := new(admissionregistrationv1.SideEffectClassNone)
	v1 := []string{"v1"}
	bad := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a b", Operator: "Like"}}}
	condition := func(name, text string) admissionregistrationv1.MatchCondition {
		return admissionregistrationv1.MatchCondition{Name: name, Expression: text}
	}
	const create, all = admissionregistrationv1.Create, admissionregistrationv1.OperationAll
	good := admissionregistrationv1.Rule{APIGroups: []string{"example.com"}, APIVersions: []string{"v1"}, Resources: []string{"gadgets"}}
	mutating = []admissionregistrationv1.MutatingWebhook{
		{Name: "", ClientConfig: at, SideEffects: none, AdmissionReviewVersions: v1},
		{Name: "short", ClientConfig: at, SideEffects: none, AdmissionReviewVersions: v1},
		{Name: "Not A Name", ClientConfig: at, SideEffects: none, AdmissionReviewVersions: v1},
		{Name: "twice.example.com", ClientConfig: at, SideEffects: none, AdmissionReviewVersions: v1},
		{Name: "twice.example.com", ClientConfig: at, SideEffects: none, AdmissionReviewVersions: v1},
		{
			Name: "policies.example.com", ClientConfig: at, TimeoutSeconds: new(int32(31)), SideEffects: new(admissionregistrationv1.SideEffectClassSome),
			FailurePolicy: new(admissionregistrationv1.FailurePolicyType("Never")), MatchPolicy: new(admissionregistrationv1.MatchPolicyType("Never")),
			ReinvocationPolicy: new(admissionregistrationv1.ReinvocationPolicyType("Always")), AdmissionReviewVersions: []string{"v3", "v3", "V!"},
			NamespaceSelector: bad, ObjectSelector: bad,
		},
		{Name: "both.example.com", ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: at.URL, Service: service("s")}, SideEffects: none, AdmissionReviewVersions: v1},
		{Name: "http.example.com", ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: new("http://user@127.0.0.1/?a#b")}, SideEffects: none, AdmissionReviewVersions: v1},
		{Name: "rules.example.com", ClientConfig: at, SideEffects: none, AdmissionReviewVersions: v1, Rules: []admissionregistrationv1.RuleWithOperations{
			{},
			{Rule: good},
			{Operations: []admissionregistrationv1.OperationType{all, create}, Rule: good},
			{Operations: []admissionregistrationv1.OperationType{"READ"}, Rule: admissionregistrationv1.Rule{
				APIGroups: []string{"*", "a"}, APIVersions: []string{"*", ""}, Resources: []string{""}, Scope: new(admissionregistrationv1.ScopeType("World")),
			}},
		}},
		{Name: "conditions.example.com", ClientConfig: at, SideEffects: none, AdmissionReviewVersions: v1, MatchConditions: []admissionregistrationv1.MatchCondition{
			condition("syntax", "object."), condition("type", "object.metadata.name + 'x'"), condition("unknown", "nobody == 1"),
			condition("", " "), condition("no name!", "true"), condition("twice", "true"), condition("twice", "true"),
		}},
	}
	validating = []admissionregistrationv1.ValidatingWebhook{
		{Name: "timeout.example.com", ClientConfig: at, SideEffects: none, AdmissionReviewVersions: v1, TimeoutSeconds: new(int32(0))},
		{Name: "service.example.com", ClientConfig: admissionregistrationv1.WebhookClientConfig{Service: service("")}, SideEffects: none, AdmissionReviewVersions: v1},
		{Name: "timeout.example.com", ClientConfig: at, SideEffects: new(admissionregistrationv1.SideEffectClassUnknown), AdmissionReviewVersions: v1},
	}
	return mutating, validating
}

// faults returns the field errors in an error.
func faults(err error) (all []string) {
	switch err := err.(type) {
	case *field.Error:
		return []string{err.Error()}
	case interface{ Unwrap() error }:
		return faults(err.Unwrap())
	case interface{ Unwrap() []error }:
		for _, err := range err.Unwrap() {
			all = append(all, faults(err)...)
		}
	}
	return all
}

func TestAMistakeInARegistrationNamesTheWebhookAndTheField(t *testing.T) {
	mutating, validating := badHooks()
	_, err := offline.New(define(t), offline.Mutate(gadgetHandler(), mutating...), offline.Validate(gadgetHandler(), validating...))
	if err == nil {
		t.Fatal("there is no error")
	}
	if n := len(faults(err)); n != 44 {
		t.Errorf("there are %d faults in\n%v", n, err)
	}
	for _, want := range []string{
		`mutating webhook "": webhooks[0].name: Required value`,
		`mutating webhook "twice.example.com": webhooks[4].name: Duplicate value: "twice.example.com"`,
		`mutating webhook "policies.example.com": webhooks[5].timeoutSeconds: Invalid value: 31: the timeout value must be between 1 and 30 seconds`,
		`mutating webhook "conditions.example.com": webhooks[9].matchConditions[0].expression: Invalid value: "object.": compilation failed: ERROR: <input>:1:8: Syntax error`,
		`validating webhook "timeout.example.com": webhooks[2].sideEffects: Unsupported value: "Unknown": supported values: "None", "NoneOnDryRun"`,
	} {
		if !strings.Contains(err.Error(), "\n"+want) && !strings.Contains(err.Error(), ": "+want) {
			t.Errorf("%s is not in\n%v", want, err)
		}
	}
}

func TestTwoConfigurationsMayHaveTheSameNames(t *testing.T) {
	h := gadgetHandler()
	if _, err := offline.New(define(t), offline.Mutate(h), offline.Mutate(h), offline.Validate(h)); err != nil {
		t.Error(err)
	}
}

func TestTheAuthorizerIsNotThere(t *testing.T) {
	_, err := offline.New(define(t), offline.Validate(gadgetHandler(), admissionregistrationv1.ValidatingWebhook{
		Name: "who.example.com", MatchConditions: []admissionregistrationv1.MatchCondition{{Name: "may", Expression: "authorizer.group('').resource('pods').check('get').allowed()"}},
	}))
	want := `offline: gadgets.example.com: validating webhook "who.example.com": webhooks[0].matchConditions[0].expression: Forbidden: the variable authorizer is not there offline`
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// A validating webhook is handled as a mutating one.
func TestAMutatingWebhookHasAllFieldsOfAValidatingOne(t *testing.T) {
	tags := func(of reflect.Type) map[string]string {
		all := map[string]string{}
		for i := range of.NumField() {
			all[of.Field(i).Tag.Get("json")] = of.Field(i).Type.String()
		}
		return all
	}
	mutating, validating := tags(reflect.TypeFor[admissionregistrationv1.MutatingWebhook]()), tags(reflect.TypeFor[admissionregistrationv1.ValidatingWebhook]())
	for name := range mutating {
		if _, ok := validating[name]; !ok {
			delete(mutating, name)
		}
	}
	if diff := cmp.Diff(validating, mutating); diff != "" {
		t.Errorf("(-validating +mutating):\n%s", diff)
	}
}
