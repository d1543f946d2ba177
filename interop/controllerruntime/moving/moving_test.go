package moving_test

import (
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/crdkit/crdkit/conversion"
	v1 "github.com/crdkit/crdkit/interop/controllerruntime/moving/api/v1"
	"github.com/crdkit/crdkit/interop/controllerruntime/moving/api/v1beta1"
	"github.com/crdkit/crdkit/interop/controllerruntime/moving/step0"
	"github.com/crdkit/crdkit/interop/controllerruntime/moving/step1"
	"github.com/crdkit/crdkit/interop/controllerruntime/moving/step2"
	"github.com/crdkit/crdkit/interop/controllerruntime/moving/step3"
	"github.com/crdkit/crdkit/interop/controllerruntime/moving/step4"
	"github.com/crdkit/crdkit/roundtrip"
	"github.com/crdkit/crdkit/schema"
	"github.com/crdkit/crdkit/schema/offline"
	"github.com/crdkit/crdkit/scheme"
)

func newScheme(t testing.TB) *runtime.Scheme {
	t.Helper()
	s, err := scheme.New(
		scheme.Version(v1.GroupVersion, &v1.Backup{}, &v1.BackupList{}),
		scheme.Version(v1beta1.GroupVersion, &v1beta1.Backup{}, &v1beta1.BackupList{}),
	)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func newManager(t testing.TB) ctrl.Manager {
	t.Helper()
	mgr, err := ctrl.NewManager(&rest.Config{Host: "http://localhost:0"}, ctrl.Options{
		Scheme:  newScheme(t),
		Metrics: server.Options{BindAddress: "0"},
		MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) {
			return meta.NewDefaultRESTMapper(nil), nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return mgr
}

func definition(t testing.TB) []byte {
	t.Helper()
	text, err := os.ReadFile("crd.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// handlers are the webhooks of each step.
func handlers(t *testing.T) map[string]http.Handler {
	all := map[string]http.Handler{}
	for name, setup := range map[string]func(ctrl.Manager) error{
		"step0": step0.Setup, "step1": step1.Setup, "step2": step2.Setup, "step3": step3.Setup,
	} {
		mgr := newManager(t)
		if err := setup(mgr); err != nil {
			t.Fatal(err)
		}
		all[name] = mgr.GetWebhookServer().WebhookMux()
	}
	hooks, err := step4.Hooks(newScheme(t), definition(t))
	if err != nil {
		t.Fatal(err)
	}
	all["step4"] = hooks
	return all
}

// TestEveryStepDoesTheSame asks the webhooks of each step the same, with an API server in
// process.
func TestEveryStepDoesTheSame(t *testing.T) {
	rules := []admissionregistrationv1.RuleWithOperations{{
		Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
		Rule:       admissionregistrationv1.Rule{APIGroups: []string{"example.com"}, APIVersions: []string{"v1"}, Resources: []string{"backups"}},
	}}
	at := func(path string) admissionregistrationv1.WebhookClientConfig {
		return admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{Namespace: "backup-system", Name: "backup-operator", Path: &path}}
	}
	none := admissionregistrationv1.SideEffectClassNone
	parsed, err := schema.Parse(definition(t))
	if err != nil {
		t.Fatal(err)
	}
	crd := parsed.CustomResourceDefinition()
	convert := "/convert"
	crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.WebhookConverter, Webhook: &apiextensionsv1.WebhookConversion{
		ConversionReviewVersions: []string{"v1"},
		ClientConfig:             &apiextensionsv1.WebhookClientConfig{Service: &apiextensionsv1.ServiceReference{Namespace: "backup-system", Name: "backup-operator", Path: &convert}},
	}}
	d, err := schema.New(crd)
	if err != nil {
		t.Fatal(err)
	}
	for name, h := range handlers(t) {
		t.Run(name, func(t *testing.T) {
			backups, err := offline.New(d, offline.Convert(h),
				offline.Mutate(h, admissionregistrationv1.MutatingWebhook{Name: "default.backups.example.com", ClientConfig: at("/mutate-example-com-v1-backup"),
					Rules: rules, SideEffects: &none, AdmissionReviewVersions: []string{"v1"}}),
				offline.Validate(h, admissionregistrationv1.ValidatingWebhook{Name: "validate.backups.example.com", ClientConfig: at("/validate-example-com-v1-backup"),
					Rules: rules, SideEffects: &none, AdmissionReviewVersions: []string{"v1"}}))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			note := func(out *schema.Result, err error) {
				if err != nil {
					got = append(got, reason.ReplaceAllString(err.Error(), "$1"))
					return
				}
				spec := regexp.MustCompile(`"spec":\{.*\}`).FindString(string(out.Object))
				got = append(got, strings.TrimSuffix(spec, "}"))
			}
			ctx := t.Context()
			note(backups.Create(ctx, "v1beta1", []byte(`{"apiVersion":"example.com/v1beta1","kind":"Backup","metadata":{"name":"old"},"spec":{"target":"shop/db"}}`)))
			note(backups.Create(ctx, "v1", []byte(`{"apiVersion":"example.com/v1","kind":"Backup","metadata":{"name":"new"},"spec":{"bucket":"shop","path":"db","encrypt":true}}`)))
			note(backups.Create(ctx, "v1beta1", []byte(`{"apiVersion":"example.com/v1beta1","kind":"Backup","metadata":{"name":"long"},"spec":{"target":"shop/db","keep":400}}`)))
			note(backups.Get(ctx, "v1beta1", "default", "new"))
			// Who reads and writes in the old version keeps what only the new one has.
			out, err := backups.Get(ctx, "v1beta1", "default", "new")
			if err != nil {
				t.Fatal(err)
			}
			note(backups.Update(ctx, "v1beta1", []byte(strings.Replace(string(out.Object), `"keep":7`, `"keep":30`, 1))))
			note(backups.Get(ctx, "v1", "default", "new"))
			if out, err = backups.Get(ctx, "v1beta1", "default", "new"); err != nil {
				t.Fatal(err)
			}
			note(backups.Update(ctx, "v1beta1", []byte(strings.Replace(string(out.Object), `shop/db`, `other/db`, 1))))
			want := []string{
				`"spec":{"keep":7,"target":"shop/db"}`,
				`"spec":{"bucket":"shop","encrypt":true,"keep":7,"path":"db"}`,
				`spec.keep: `,
				`"spec":{"keep":7,"target":"shop/db"}`,
				`"spec":{"keep":30,"target":"shop/db"}`,
				`"spec":{"bucket":"shop","encrypt":true,"keep":30,"path":"db"}`,
				`spec.bucket: `,
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// reason is the field of a denial: what the messages have in common that controller-runtime
// makes of an error, and the API server of field errors.
var reason = regexp.MustCompile(`(?s).*(spec\.\w+: ).*`)

// TestTheMethodsAreProven is the first thing to do: it needs no change to the operator.
func TestTheMethodsAreProven(t *testing.T) {
	reg, err := step1.Registry(newScheme(t))
	if err != nil {
		t.Fatal(err)
	}
	roundtrip.Test(t, reg, roundtrip.CRD(definition(t)),
		roundtrip.Without(roundtrip.Annotations, "the methods refuse an annotation that is no JSON, as cluster-api's do"),
		roundtrip.Normalize("v1beta1 keeps the whole hub object in an annotation", func(b *v1beta1.Backup) {
			if delete(b.Annotations, "cluster.x-k8s.io/conversion-data"); len(b.Annotations) == 0 {
				b.Annotations = nil
			}
		}))
}

func TestTheFunctionsAreProven(t *testing.T) {
	reg, err := step3.Registry(newScheme(t))
	if err != nil {
		t.Fatal(err)
	}
	roundtrip.Test(t, reg, roundtrip.CRD(definition(t)))
}

// TestTheOldAnnotationIsRead converts an object that an earlier release has made.
func TestTheOldAnnotationIsRead(t *testing.T) {
	before, err := step1.Registry(newScheme(t))
	if err != nil {
		t.Fatal(err)
	}
	after, err := step3.Registry(newScheme(t))
	if err != nil {
		t.Fatal(err)
	}
	const hub = `{"apiVersion":"example.com/v1","kind":"Backup","metadata":{"name":"new"},"spec":{"bucket":"shop","path":"db","encrypt":true}}`
	old, err := before.Convert(t.Context(), []byte(hub), v1beta1.GroupVersion)
	if err != nil {
		t.Fatal(err)
	}
	back, err := after.Convert(t.Context(), old, v1.GroupVersion)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(back), `"encrypt":true`) || strings.Contains(string(back), "conversion-data") {
		t.Errorf("got %s", back)
	}
}

// TestAReplicaOfBeforeDoesNotKnowTheNewAnnotation is what the page warns of.
func TestAReplicaOfBeforeDoesNotKnowTheNewAnnotation(t *testing.T) {
	before, err := step1.Registry(newScheme(t))
	check(t, err)
	after, err := step3.Registry(newScheme(t))
	check(t, err)
	const hub = `{"apiVersion":"example.com/v1","kind":"Backup","metadata":{"name":"new"},"spec":{"bucket":"shop","path":"db","encrypt":true}}`
	read, err := after.Convert(t.Context(), []byte(hub), v1beta1.GroupVersion)
	check(t, err)
	for name, test := range map[string]struct {
		through *conversion.Registry
		keeps   bool
	}{"a new replica": {after, true}, "an old replica": {before, false}} {
		written, err := test.through.Convert(t.Context(), read, v1.GroupVersion)
		check(t, err)
		if strings.Contains(string(written), `"encrypt":true`) != test.keeps {
			t.Errorf("through %s: %s", name, written)
		}
	}
}
