package moving_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	v1 "github.com/crdkit/crdkit/interop/controllerruntime/moving/api/v1"
	"github.com/crdkit/crdkit/interop/controllerruntime/moving/api/v1beta1"
	"github.com/crdkit/crdkit/interop/controllerruntime/moving/step0"
	"github.com/crdkit/crdkit/interop/controllerruntime/moving/step3"
	"github.com/crdkit/crdkit/test/expect"
)

// TestManager_WithoutCluster runs a manager with leader election, a cache and a controller, with
// an API server in this process. The API server calls the handlers of the manager's webhook
// server, which are controller-runtime's in step 0, and crdkit's in step 3.
func TestManager_WithoutCluster(t *testing.T) {
	for name, setup := range map[string]func(ctrl.Manager) error{"step0": step0.Setup, "step3": step3.Setup} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			handlers := http.NewServeMux() // which the manager fills, when the API server runs
			config := start(t, handlers).Config()
			scheme := newScheme(t)
			expect.NoError(t, clientgoscheme.AddToScheme(scheme))
			mgr, err := ctrl.NewManager(config, ctrl.Options{
				Scheme:  scheme,
				Metrics: server.Options{BindAddress: "0"},
				// It does not listen.
				WebhookServer:  webhook.NewServer(webhook.Options{Port: -1, WebhookMux: handlers}),
				LeaderElection: true, LeaderElectionNamespace: "default", LeaderElectionID: "backup-operator",
				LeaderElectionReleaseOnCancel: true,
			})
			expect.NoError(t, err)
			expect.NoError(t, setup(mgr))
			expect.NoError(t, ctrl.NewControllerManagedBy(mgr).Named(name).For(&v1.Backup{}).Owns(&corev1.ConfigMap{}).Complete(describe(mgr.GetClient())))
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- mgr.Start(ctx) }()
			stop := sync.OnceValue(func() error { cancel(); return <-ended })
			t.Cleanup(func() { _ = stop() })

			user, err := client.New(config, client.Options{Scheme: scheme})
			expect.NoError(t, err)
			described := func(want map[string]string) (cm corev1.ConfigMap) {
				t.Helper()
				expect.Eventually(t, func() error {
					err := user.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "nightly"}, &cm)
					if diff := cmp.Diff(want, cm.Data); err == nil && diff != "" {
						err = fmt.Errorf("ConfigMap nightly: data (-want +got):\n%s", diff)
					}
					return err
				})
				return cm
			}
			meta := metav1.ObjectMeta{Namespace: "default", Name: "nightly"}
			backup := &v1beta1.Backup{ObjectMeta: meta, Spec: v1beta1.BackupSpec{Target: "shop/db"}}
			expect.NoError(t, user.Create(t.Context(), backup))
			described(map[string]string{"bucket": "shop", "path": "db", "keep": "7"})
			backup.Spec.Keep = 30
			expect.NoError(t, user.Update(t.Context(), backup))
			cm := described(map[string]string{"bucket": "shop", "path": "db", "keep": "30"})
			expect.NoError(t, user.Delete(t.Context(), &cm))
			if again := described(cm.Data); again.UID == cm.UID {
				t.Error("ConfigMap nightly: not deleted")
			}
			backup.Spec.Keep = 400
			if err := user.Update(t.Context(), backup); err == nil || !strings.Contains(err.Error(), `admission webhook "validate.backups.example.com" denied the request`) {
				t.Errorf("Backup nightly: got %v, want that 400 days are denied", err)
			}

			expect.NoError(t, stop())
			var lease coordinationv1.Lease
			expect.NoError(t, user.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "backup-operator"}, &lease))
			if holder := *lease.Spec.HolderIdentity; holder != "" {
				t.Errorf("Lease: held by %s after the manager has stopped", holder)
			}
		})
	}
}

// describe keeps a ConfigMap for each Backup.
func describe(c client.Client) reconcile.Func {
	return func(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
		var backup v1.Backup
		if err := c.Get(ctx, request.NamespacedName, &backup); err != nil {
			return reconcile.Result{}, client.IgnoreNotFound(err)
		}
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: backup.Namespace, Name: backup.Name}}
		_, err := controllerutil.CreateOrUpdate(ctx, c, cm, func() error {
			cm.Data = map[string]string{"bucket": backup.Spec.Bucket, "path": backup.Spec.Path, "keep": fmt.Sprint(backup.Spec.Keep)}
			return controllerutil.SetControllerReference(&backup, cm, c.Scheme())
		})
		return reconcile.Result{}, err
	}
}
