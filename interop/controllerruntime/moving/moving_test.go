package moving_test

import (
	_ "embed"
	"encoding/json"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/crdkit/crdkit/conversion"
	"github.com/crdkit/crdkit/interop/controllerruntime"
	v1 "github.com/crdkit/crdkit/interop/controllerruntime/moving/api/v1"
	"github.com/crdkit/crdkit/interop/controllerruntime/moving/api/v1beta1"
	"github.com/crdkit/crdkit/interop/controllerruntime/moving/leave"
	leavev1beta1 "github.com/crdkit/crdkit/interop/controllerruntime/moving/leave/v1beta1"
	"github.com/crdkit/crdkit/interop/controllerruntime/moving/step0"
	"github.com/crdkit/crdkit/interop/controllerruntime/moving/step1"
	"github.com/crdkit/crdkit/interop/controllerruntime/moving/step2"
	"github.com/crdkit/crdkit/interop/controllerruntime/moving/step3"
	"github.com/crdkit/crdkit/interop/controllerruntime/moving/step4"
	"github.com/crdkit/crdkit/roundtrip"
	"github.com/crdkit/crdkit/schema"
	"github.com/crdkit/crdkit/schema/apiservertest"
	"github.com/crdkit/crdkit/scheme"
	"github.com/crdkit/crdkit/test/expect"
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(klog.Background())
	m.Run()
}

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
	text, err := os.ReadFile("config/crd/bases/example.com_backups.yaml")
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

// registered is what the manifests of kubebuilder say of the webhooks.
//
//go:embed config/webhook/manifests.yaml
var registered string

// convertedDefinition returns the definition with the webhook that kubebuilder's kustomizations add.
func convertedDefinition(t *testing.T) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	parsed, err := schema.Parse(definition(t))
	expect.NoError(t, err)
	crd := parsed.CustomResourceDefinition()
	crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.WebhookConverter, Webhook: &apiextensionsv1.WebhookConversion{
		ConversionReviewVersions: []string{"v1"},
		ClientConfig:             &apiextensionsv1.WebhookClientConfig{Service: &apiextensionsv1.ServiceReference{Namespace: "backup-system", Name: "backup-operator", Path: new("/convert")}},
	}}
	return crd
}

// start starts an API server in this process, with the webhooks of a step.
func start(t *testing.T, webhooks http.Handler) *apiservertest.Server {
	t.Helper()
	return apiservertest.Start(t, apiservertest.Objects(convertedDefinition(t)), apiservertest.Manifests([]byte(registered)), apiservertest.Handler(webhooks))
}

// TestSteps_DoTheSame asks the webhooks of each step the same, with an API server in
// process.
func TestSteps_DoTheSame(t *testing.T) {
	for name, h := range handlers(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := dynamic.NewForConfigOrDie(start(t, h).Config())
			current := client.Resource(v1.GroupVersion.WithResource("backups")).Namespace("default")
			beta := client.Resource(v1beta1.GroupVersion.WithResource("backups")).Namespace("default")
			var got []string
			note := func(u *unstructured.Unstructured, err error) {
				if err != nil {
					got = append(got, reason.ReplaceAllString(err.Error(), "$1"))
					return
				}
				spec, err := json.Marshal(u.Object["spec"])
				expect.NoError(t, err)
				got = append(got, string(spec))
			}
			create := func(version dynamic.ResourceInterface, text string) {
				u := &unstructured.Unstructured{}
				expect.NoError(t, u.UnmarshalJSON([]byte(text)))
				note(version.Create(t.Context(), u, metav1.CreateOptions{}))
			}
			create(beta, `{"apiVersion":"example.com/v1beta1","kind":"Backup","metadata":{"name":"old"},"spec":{"target":"shop/db"}}`)
			create(current, `{"apiVersion":"example.com/v1","kind":"Backup","metadata":{"name":"new"},"spec":{"bucket":"shop","path":"db","encrypt":true}}`)
			create(beta, `{"apiVersion":"example.com/v1beta1","kind":"Backup","metadata":{"name":"long"},"spec":{"target":"shop/db","keep":400}}`)
			// Reading and writing in the old version keeps what only the new one has.
			update := func(field string, value any) {
				u, err := beta.Get(t.Context(), "new", metav1.GetOptions{})
				note(u, err)
				expect.NoError(t, err)
				expect.NoError(t, unstructured.SetNestedField(u.Object, value, "spec", field))
				note(beta.Update(t.Context(), u, metav1.UpdateOptions{}))
				note(current.Get(t.Context(), "new", metav1.GetOptions{}))
			}
			update("keep", int64(30))
			update("target", "other/db")
			want := []string{
				`{"keep":7,"target":"shop/db"}`,
				`{"bucket":"shop","encrypt":true,"keep":7,"path":"db"}`,
				`spec.keep: `,
				`{"keep":7,"target":"shop/db"}`,
				`{"keep":30,"target":"shop/db"}`,
				`{"bucket":"shop","encrypt":true,"keep":30,"path":"db"}`,
				`{"keep":30,"target":"shop/db"}`,
				`spec.bucket: `,
				`{"bucket":"shop","encrypt":true,"keep":30,"path":"db"}`,
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

// TestConversion_Methods is the first thing to do: it needs no change to the operator.
func TestConversion_Methods(t *testing.T) {
	reg, err := step1.Registry(newScheme(t))
	if err != nil {
		t.Fatal(err)
	}
	roundtrip.Test(t, reg, roundtrip.CRD(definition(t)),
		roundtrip.SkipLaw(roundtrip.Annotations, "the methods refuse an annotation that is not JSON, as cluster-api's do"),
		roundtrip.Normalize("v1beta1 keeps the whole hub object in an annotation", func(b *v1beta1.Backup) {
			if delete(b.Annotations, "cluster.x-k8s.io/conversion-data"); len(b.Annotations) == 0 {
				b.Annotations = nil
			}
		}))
}

func TestConversion_Functions(t *testing.T) {
	reg, err := step3.Registry(newScheme(t))
	if err != nil {
		t.Fatal(err)
	}
	roundtrip.Test(t, reg, roundtrip.CRD(definition(t)))
}

// TestConversion_OldAnnotation converts an object that an earlier release has made.
func TestConversion_OldAnnotation(t *testing.T) {
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

// TestConversion_NewAnnotation is what the pages warn of: methods that do not read the annotation of
// Lossless lose a field, which those that call lossless.Restore keep.
func TestConversion_NewAnnotation(t *testing.T) {
	before, err := step1.Registry(newScheme(t))
	expect.NoError(t, err)
	after, err := step3.Registry(newScheme(t))
	expect.NoError(t, err)
	leaveScheme := runtime.NewScheme()
	expect.NoError(t, leave.AddToScheme(leaveScheme))
	left := conversion.NewRegistry(leaveScheme)
	expect.NoError(t, controllerruntime.AddSpoke[*leavev1beta1.Backup, *v1.Backup](left))
	const hub = `{"apiVersion":"example.com/v1","kind":"Backup","metadata":{"name":"new"},"spec":{"bucket":"shop","path":"db","encrypt":true}}`
	read, err := after.Convert(t.Context(), []byte(hub), v1beta1.GroupVersion)
	expect.NoError(t, err)
	for name, test := range map[string]struct {
		through *conversion.Registry
		keeps   bool
	}{"functions": {after, true}, "methods": {before, false}, "methods with Restore": {left, true}} {
		written, err := test.through.Convert(t.Context(), read, v1.GroupVersion)
		expect.NoError(t, err)
		if strings.Contains(string(written), `"encrypt":true`) != test.keeps {
			t.Errorf("through %s: %s", name, written)
		}
	}
}
