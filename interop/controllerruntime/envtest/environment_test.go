package envtest_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	goruntime "runtime"
	"testing"
	"testing/synctest"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/crdkit/crdkit/interop/controllerruntime/envtest"
	v1 "github.com/crdkit/crdkit/interop/controllerruntime/moving/api/v1"
	"github.com/crdkit/crdkit/interop/controllerruntime/moving/api/v1beta1"
	"github.com/crdkit/crdkit/test/expect"
)

// TestMain removes the limit on logged errors, which sleeps by a clock of the process.
func TestMain(m *testing.M) {
	klog.SetSlogLogger(slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})))
	ctrl.SetLogger(klog.Background())
	utilruntime.ErrorHandlers = utilruntime.ErrorHandlers[:1]
	m.Run()
}

// newEnvironment returns the environment of the operator whose suite is in ../moving/step0.
func newEnvironment(t testing.TB) *envtest.Environment {
	t.Helper()
	s := runtime.NewScheme()
	expect.NoError(t, clientgoscheme.AddToScheme(s))
	expect.NoError(t, apiextensionsv1.AddToScheme(s))
	expect.NoError(t, v1.AddToScheme(s))
	expect.NoError(t, v1beta1.AddToScheme(s))
	return &envtest.Environment{
		Scheme:                s,
		CRDDirectoryPaths:     []string{"../moving/config/crd/bases"},
		ErrorIfCRDPathMissing: true,
		WebhookInstallOptions: envtest.WebhookInstallOptions{Paths: []string{"../moving/config/webhook"}},
	}
}

// start starts an environment, and stops it when the test ends.
func start(t testing.TB, env *envtest.Environment) client.Client {
	t.Helper()
	config, err := env.Start()
	expect.NoError(t, err)
	t.Cleanup(func() { expect.NoError(t, env.Stop()) })
	c, err := client.New(config, client.Options{Scheme: env.Scheme})
	expect.NoError(t, err)
	return c
}

func TestStart_Mistakes(t *testing.T) {
	t.Parallel()
	broken := filepath.Join(t.TempDir(), "broken.yaml")
	expect.NoError(t, os.WriteFile(broken, []byte("spec: ["), 0o600))
	invalid := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "things.example.com"}}
	for name, test := range map[string]struct {
		change func(*envtest.Environment)
		says   []string
	}{
		"no CRD path":      {func(e *envtest.Environment) { e.CRDDirectoryPaths = []string{"none/crds"} }, []string{"CRDs", "none/crds: no such file"}},
		"broken CRD":       {func(e *envtest.Environment) { e.CRDInstallOptions.Paths = []string{broken} }, []string{"CRDs", broken, "yaml"}},
		"invalid CRD":      {func(e *envtest.Environment) { e.CRDs = append(e.CRDs, invalid) }, []string{"CustomResourceDefinition things.example.com", "spec.group: Required"}},
		"no webhook path":  {func(e *envtest.Environment) { e.WebhookInstallOptions.Paths = []string{"none/webhooks"} }, []string{"webhooks", "none/webhooks: no such file"}},
		"existing cluster": {func(e *envtest.Environment) { e.UseExistingCluster = new(true) }, []string{"UseExistingCluster"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := newEnvironment(t)
			test.change(env)
			_, err := env.Start()
			expect.ErrorContains(t, err, test.says...)
			if dir := env.WebhookInstallOptions.LocalServingCertDir; dir != "" {
				if _, err := os.Stat(dir); !os.IsNotExist(err) {
					t.Errorf("%s is left: %v", dir, err)
				}
			}
			expect.NoError(t, env.Stop())
		})
	}
}

func TestStart_MissingPathIsNoError(t *testing.T) {
	t.Parallel()
	env := newEnvironment(t)
	env.CRDDirectoryPaths, env.ErrorIfCRDPathMissing = append(env.CRDDirectoryPaths, "none/crds"), false
	c := start(t, env)
	expect.NoError(t, c.List(t.Context(), &v1.BackupList{}))
	if len(env.CRDs) != 1 || env.CRDs[0].Name != "backups.example.com" {
		t.Errorf("CRDs: got %v", env.CRDs)
	}
}

// After another start, the objects of the first server are gone, and nothing is registered twice.
func TestStart_Again(t *testing.T) {
	t.Parallel()
	env := newEnvironment(t)
	expect.NoError(t, env.Stop()) // does nothing
	c := start(t, env)
	expect.NoError(t, c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "a"}}))
	_, err := env.Start()
	expect.ErrorContains(t, err, "call Stop first")
	expect.NoError(t, c.Get(t.Context(), client.ObjectKey{Name: "a"}, &corev1.Namespace{}))
	expect.NoError(t, env.Stop())
	expect.NoError(t, env.Stop())

	c = start(t, env)
	if err := c.Get(t.Context(), client.ObjectKey{Name: "a"}, &corev1.Namespace{}); client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("Namespace a: got %v, want that it does not exist", err)
	}
	var mutating admissionregistrationv1.MutatingWebhookConfigurationList
	var validating admissionregistrationv1.ValidatingWebhookConfigurationList
	expect.NoError(t, c.List(t.Context(), &mutating))
	expect.NoError(t, c.List(t.Context(), &validating))
	if len(mutating.Items) != 1 || len(validating.Items) != 1 {
		t.Fatalf("got %v, %v", mutating, validating)
	}
	// The CA is new, and the port is the same.
	got := mutating.Items[0].Webhooks[0].ClientConfig
	if want := localURL(env, "/mutate-example-com-v1-backup"); *got.URL != want || string(got.CABundle) != string(env.WebhookInstallOptions.LocalServingCAData) {
		t.Errorf("got %v, want %s", got, want)
	}
}

func localURL(env *envtest.Environment, path string) string {
	return fmt.Sprintf("https://%s:%d/%s", env.WebhookInstallOptions.LocalServingHost, env.WebhookInstallOptions.LocalServingPort, path)
}

// As upstream, kinds of the scheme with methods for the conversion get its webhook.
func TestStart_Conversion(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(*envtest.Environment)
		want   apiextensionsv1.ConversionStrategyType
	}{
		"methods":    {func(*envtest.Environment) {}, apiextensionsv1.WebhookConverter},
		"no methods": {func(e *envtest.Environment) { e.CRDInstallOptions.Scheme = runtime.NewScheme() }, apiextensionsv1.NoneConverter},
		"any kind": {func(e *envtest.Environment) {
			e.CRDInstallOptions.Scheme, e.WebhookInstallOptions.IgnoreSchemeConvertible = runtime.NewScheme(), true
		}, apiextensionsv1.WebhookConverter},
		"the CRD in both": {func(e *envtest.Environment) {
			e.CRDs = []*apiextensionsv1.CustomResourceDefinition{{ObjectMeta: metav1.ObjectMeta{Name: "backups.example.com"}}}
		}, apiextensionsv1.WebhookConverter},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := newEnvironment(t)
			test.change(env)
			var crd apiextensionsv1.CustomResourceDefinition
			expect.NoError(t, start(t, env).Get(t.Context(), client.ObjectKey{Name: "backups.example.com"}, &crd))
			if got := crd.Spec.Conversion; got.Strategy != test.want ||
				test.want == apiextensionsv1.WebhookConverter && (*got.Webhook.ClientConfig.URL != localURL(env, "convert") || len(got.Webhook.ClientConfig.CABundle) == 0) {
				t.Errorf("got %v, want %s", got, test.want)
			}
		})
	}
}

// TestStop_NoGoroutines does not run in parallel, because it counts.
func TestStop_NoGoroutines(t *testing.T) {
	before := goruntime.NumGoroutine()
	env := newEnvironment(t)
	config, err := env.Start()
	expect.NoError(t, err)
	c, err := client.NewWithWatch(config, client.Options{Scheme: env.Scheme})
	expect.NoError(t, err)
	w, err := c.Watch(t.Context(), &v1.BackupList{})
	expect.NoError(t, err)
	go func() {
		for range w.ResultChan() {
		}
	}()
	expect.NoError(t, env.Stop())
	for end := time.Now().Add(30 * time.Second); goruntime.NumGoroutine() > before; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			stacks := make([]byte, 1<<20)
			t.Fatalf("%d goroutines are left, of %d before:\n%s", goruntime.NumGoroutine(), before, stacks[:goruntime.Stack(stacks, true)])
		}
	}
}

// A controller requeues after ten minutes, by the clock of the bubble, which ends only if no goroutine is left.
func TestEnvironment_Synctest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env := newEnvironment(t)
		env.WebhookInstallOptions.Paths = nil
		env.CRDInstallOptions.Scheme = runtime.NewScheme() // no conversion webhook
		c := start(t, env)
		mgr, err := ctrl.NewManager(env.Config, ctrl.Options{Scheme: env.Scheme, Metrics: metricsserver.Options{BindAddress: "0"}})
		expect.NoError(t, err)
		var times []time.Time
		expect.NoError(t, ctrl.NewControllerManagedBy(mgr).For(&v1.Backup{}).Complete(reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) {
			times = append(times, time.Now())
			return reconcile.Result{RequeueAfter: 10 * time.Minute}, nil
		})))
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- mgr.Start(ctx) }()
		expect.NoError(t, c.Create(t.Context(), &v1.Backup{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "nightly"}}))
		time.Sleep(25 * time.Minute)
		cancel()
		expect.NoError(t, <-ended)
		if len(times) != 3 || times[2].Sub(times[0]) < 20*time.Minute {
			t.Errorf("got reconciliations at %v, want three", times)
		}
	})
}
