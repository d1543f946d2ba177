package admission_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/crdkit/crdkit/admission"
	"github.com/crdkit/crdkit/scheme"
	"github.com/crdkit/crdkit/test/controlplane"
	"github.com/crdkit/crdkit/test/expect"
	"github.com/crdkit/crdkit/test/webhooktest"
)

// judge answers for ConfigMaps, by their names, and counts how often it is asked.
type judge struct {
	mu    sync.Mutex
	asked map[string]int
}

func (j *judge) validate(ctx context.Context, cm *corev1.ConfigMap) (field.ErrorList, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.asked[cm.Name]++
	unavailable := apierrors.NewServiceUnavailable("the oven is cold")
	unavailable.ErrStatus.Details = &metav1.StatusDetails{RetryAfterSeconds: 1}
	switch name, _, _ := strings.Cut(cm.Name, "."); name {
	case "warned":
		admission.Warn(ctx, "mind the crust")
	case "denied":
		return field.ErrorList{field.Required(field.NewPath("data", "topping"), "a pizza needs one")}, nil
	case "forbidden":
		return nil, apierrors.NewForbidden(corev1.Resource("configmaps"), cm.Name, errors.New("restaurant is closed"))
	case "broken":
		return nil, errors.New("out of flour")
	case "panicking":
		panic("dough everywhere")
	case "cold":
		if j.asked[cm.Name] < 3 {
			return nil, unavailable
		}
	}
	return nil, nil
}

// warnings collects what the API server warns of.
type warnings struct {
	mu   sync.Mutex
	text []string
}

func (w *warnings) HandleWarningHeader(_ int, _, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.text = append(w.text, text)
}

// TestHandler_OnAnAPIServer checks on a real one what the package documentation says of it. The
// API server tells denials from failures.
func TestHandler_OnAnAPIServer(t *testing.T) {
	t.Parallel()
	cp := controlplane.ForTest(t)
	j := &judge{asked: map[string]int{}}
	s, err := scheme.New(scheme.Functions(corev1.AddToScheme))
	expect.NoError(t, err)
	url, ca := webhooktest.Serve(t, admission.NewHandler(s, admission.Validate(j.validate)))
	config := cp.Config()
	warned := &warnings{}
	config.WarningHandler = warned
	client, err := kubernetes.NewForConfig(config)
	expect.NoError(t, err)
	register(t, config, client, url, ca)

	create := func(name string) error {
		_, err := client.CoreV1().ConfigMaps("default").Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		return err
	}
	// The names end in the failure policy that holds for them.
	for name, want := range map[string]string{
		"fine.fail":        "",
		"warned.fail":      "",
		"denied.fail":      `ConfigMap "denied.fail" is invalid: data.topping: Required value: a pizza needs one`,
		"denied.ignore":    `ConfigMap "denied.ignore" is invalid: data.topping: Required value: a pizza needs one`,
		"forbidden.ignore": `configmaps "forbidden.ignore" is forbidden: restaurant is closed`,
		"broken.fail":      `failed calling webhook "fail.example.com": failed to call webhook: ConfigMap default/broken.fail: out of flour`,
		"broken.ignore":    "",
		"panicking.fail":   `failed to call webhook: ConfigMap default/panicking.fail: the admission function panicked: dough everywhere`,
		"panicking.ignore": "",
		"cold.fail":        "", // it is asked until it has warmed up
	} {
		switch err := create(name); {
		case want == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: got %v, want %s", name, err, want)
		case strings.HasPrefix(name, "denied") && (!apierrors.IsInvalid(err) || !apierrors.HasStatusCause(err, metav1.CauseTypeFieldValueRequired)):
			t.Errorf("%s: the error is not Invalid with its cause: %#v", name, err)
		case strings.HasPrefix(name, "forbidden") && !apierrors.IsForbidden(err):
			t.Errorf("%s: the error is not Forbidden: %#v", name, err)
		}
	}
	if n := j.asked["cold.fail"]; n != 3 {
		t.Errorf("the cold one was asked %d times", n)
	}
	if !slices.Contains(warned.text, "mind the crust") {
		t.Errorf("the warnings are %q", warned.text)
	}
}

// register registers the webhook twice, with either failure policy, and waits until
// it is asked.
func register(t *testing.T, config *rest.Config, client kubernetes.Interface, url string, ca []byte) {
	t.Helper()
	webhooktest.Register(t, config, url, ca, `
kind: ValidatingWebhookConfiguration
metadata: {name: judge}
webhooks:
- name: fail.example.com
  rules: &rules [{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [configmaps]}]
  matchConditions: [{name: policy, expression: "object.metadata.name.endsWith('.fail')"}]
- name: ignore.example.com
  rules: *rules
  matchConditions: [{name: policy, expression: "object.metadata.name.endsWith('.ignore')"}]
  failurePolicy: Ignore
`)
	probe := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "denied.fail"}}
	expect.EventuallyTrue(t, "the webhook is called", func() bool {
		_, err := client.CoreV1().ConfigMaps("default").Create(t.Context(), probe, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return apierrors.IsInvalid(err)
	})
}
