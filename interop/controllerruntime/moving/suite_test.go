package moving_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/yaml"

	v1 "github.com/crdkit/crdkit/interop/controllerruntime/moving/api/v1"
	"github.com/crdkit/crdkit/interop/controllerruntime/moving/api/v1beta1"
	"github.com/crdkit/crdkit/interop/controllerruntime/moving/step0"
	"github.com/crdkit/crdkit/schema/apiservertest"
)

// startSuite does what the BeforeSuite of kubebuilder's suite_test.go does, with schema/apiservertest in
// place of envtest. The suite ends with the context.
func startSuite(ctx context.Context, crds, configurations []byte) (client.Client, error) {
	webhooks := http.NewServeMux() // empty until the manager has been set up
	server, err := apiservertest.New(ctx, apiservertest.Manifests(crds, configurations), apiservertest.Handler(webhooks))
	if err != nil {
		return nil, err
	}
	mgr, err := ctrl.NewManager(server.Config(), ctrl.Options{
		Scheme:        scheme.Scheme,
		Metrics:       metricsserver.Options{BindAddress: "0"},
		WebhookServer: webhook.NewServer(webhook.Options{WebhookMux: webhooks, Port: -1}), // does not listen
	})
	if err != nil {
		return nil, err
	}
	if err := step0.Setup(mgr); err != nil {
		return nil, err
	}
	go func() {
		if err := mgr.Start(ctx); err != nil {
			panic(err)
		}
	}()
	return client.New(server.Config(), client.Options{Scheme: scheme.Scheme})
}

// TestMain adds the types of the operator to client-go's scheme, as kubebuilder's suite does.
func TestMain(m *testing.M) {
	ctrl.SetLogger(klog.Background())
	utilruntime.Must(v1.AddToScheme(scheme.Scheme))
	utilruntime.Must(v1beta1.AddToScheme(scheme.Scheme))
	m.Run()
}

func TestSuite_Kubebuilder(t *testing.T) {
	crds, err := yaml.Marshal(convertedDefinition(t))
	check(t, err)
	k8sClient, err := startSuite(t.Context(), crds, []byte(registered))
	check(t, err)

	meta := metav1.ObjectMeta{Namespace: "default", Name: "nightly"}
	beta := &v1beta1.Backup{ObjectMeta: meta, Spec: v1beta1.BackupSpec{Target: "shop/db"}}
	check(t, k8sClient.Create(t.Context(), beta))
	var backup v1.Backup
	check(t, k8sClient.Get(t.Context(), client.ObjectKeyFromObject(beta), &backup))
	if want := (v1.BackupSpec{Bucket: "shop", Path: "db", Keep: 7}); backup.Spec != want {
		t.Errorf("Backup nightly: got %+v, want %+v", backup.Spec, want)
	}
	backup.Spec.Keep = 400
	if err := k8sClient.Update(t.Context(), &backup); err == nil || !strings.Contains(err.Error(), "a year is enough") {
		t.Errorf("Backup nightly: got %v, want that 400 days are denied", err)
	}
	backup.Spec.Bucket = "a/b"
	if err := k8sClient.Update(t.Context(), &backup); err == nil || !strings.Contains(err.Error(), "spec.bucket in body should match") {
		t.Errorf("Backup nightly: got %v, want that the definition refuses the bucket", err)
	}
}
