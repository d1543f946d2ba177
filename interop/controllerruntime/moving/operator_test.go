package moving_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	ctrlwebhook "sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/yaml"

	v1 "github.com/crdkit/crdkit/interop/controllerruntime/moving/api/v1"
	"github.com/crdkit/crdkit/interop/controllerruntime/moving/api/v1beta1"
	"github.com/crdkit/crdkit/interop/controllerruntime/moving/step4"
	"github.com/crdkit/crdkit/test/balancer"
	"github.com/crdkit/crdkit/test/controlplane"
	"github.com/crdkit/crdkit/test/expect"
	"github.com/crdkit/crdkit/webhook"
	"github.com/crdkit/crdkit/webhook/authority"
	"github.com/crdkit/crdkit/webhook/registration"
	"github.com/crdkit/crdkit/webhook/replica"
)

// operator is the operator of Backups on a real API server: a Service, and a user with the rights of
// each release.
type operator struct {
	*controlplane.ControlPlane
	balancer      *balancer.Balancer
	folder        string       // of the certificates in files
	config        *rest.Config // of the operator
	current, beta dynamic.ResourceInterface
	stop          func() // the replica that serves
	// stopping is locked while a manager stops, until the API server has seen it. The webhook server of a
	// manager closes idle connections, and a request that is sent on one of them fails.
	stopping sync.RWMutex
	// newHooks returns the webhooks of releases with crdkit.
	newHooks func(*runtime.Scheme, []byte) (*registration.Webhooks, error)
}

func newOperator(t *testing.T) *operator {
	t.Helper()
	cp := controlplane.ForTest(t, controlplane.APIServerArgs("--enable-aggregator-routing=true"))
	b := balancer.New(listen(t, cp))
	t.Cleanup(b.Close)
	config, err := cp.User("backup-operator")
	expect.NoError(t, err)
	client := dynamic.NewForConfigOrDie(cp.Config())
	o := &operator{
		ControlPlane: cp, balancer: b, folder: certificate(t), config: config,
		current: client.Resource(v1.GroupVersion.WithResource("backups")).Namespace("default"),
		beta:    client.Resource(v1beta1.GroupVersion.WithResource("backups")).Namespace("default"),
		stop:    func() {}, newHooks: step4.Hooks,
	}
	t.Cleanup(func() { o.stop() })
	o.apply(t, &rbacv1.ClusterRole{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole"},
		ObjectMeta: metav1.ObjectMeta{Name: "backup-operator-manager"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{v1.GroupVersion.Group}, Resources: []string{"backups"}, Verbs: []string{"get", "list", "watch"}}},
	}, binding("ClusterRole", "", "backup-operator-manager"))
	return o
}

// apply applies objects, or the YAML of several.
func (o *operator) apply(t *testing.T, objects ...any) {
	t.Helper()
	var all strings.Builder
	for _, obj := range objects {
		text, ok := obj.([]byte)
		if !ok {
			var err error
			text, err = yaml.Marshal(obj)
			expect.NoError(t, err)
		}
		fmt.Fprintf(&all, "---\n%s\n", text)
	}
	path := filepath.Join(t.TempDir(), "manifests.yaml")
	expect.NoError(t, os.WriteFile(path, []byte(all.String()), 0o600))
	if out, err := o.run(t, "kubectl apply --server-side --force-conflicts -f "+path); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

func binding(kind, namespace, name string) any {
	return map[string]any{
		"apiVersion": rbacv1.SchemeGroupVersion.String(), "kind": kind + "Binding",
		"metadata": map[string]any{"name": name, "namespace": namespace},
		"roleRef":  map[string]any{"apiGroup": rbacv1.GroupName, "kind": kind, "name": name},
		"subjects": []any{map[string]any{"apiGroup": rbacv1.GroupName, "kind": "User", "name": "backup-operator"}},
	}
}

// hooks returns the webhooks for a definition.
func (o *operator) hooks(t *testing.T, definition []byte) *registration.Webhooks {
	t.Helper()
	hooks, err := o.newHooks(newScheme(t), definition)
	expect.NoError(t, err)
	return hooks
}

// install applies what step 4 prints, and the Role of the authority.
func (o *operator) install(t *testing.T, definition, caBundle []byte) {
	t.Helper()
	hooks := o.hooks(t, definition)
	manifests, err := hooks.Manifests(caBundle)
	expect.NoError(t, err)
	rights, err := step4.Manifests(hooks)
	expect.NoError(t, err)
	role, _, _ := strings.Cut(string(rights), "---\n")
	o.apply(t, []byte(role), binding("ClusterRole", "", "backup-operator-webhooks"), manifests, &rbacv1.Role{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "Role"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "backup-system", Name: "backup-operator-webhook"},
		Rules:      authority.PolicyRules("backup-operator-webhook"),
	}, binding("Role", "backup-system", "backup-operator-webhook"))
}

// release starts a replica, which runs until the context is done.
type release func(t *testing.T, o *operator) (addr string, run func(context.Context) error)

// informer adds the informer of Backups. The API server lists the versions of a new definition some time
// after it has accepted the definition, and until then a manager does not find them.
func informer(t *testing.T, mgr ctrl.Manager) {
	t.Helper()
	expect.Eventually(t, func() error {
		_, err := mgr.GetCache().GetInformer(t.Context(), &v1.Backup{})
		return err
	})
}

// withManager is a release whose manager serves the webhooks, with certificates in files.
func withManager(s func(*runtime.Scheme) error, setup func(ctrl.Manager) error) release {
	return func(t *testing.T, o *operator) (string, func(context.Context) error) {
		t.Helper()
		port, err := controlplane.FreePort()
		expect.NoError(t, err)
		scheme := runtime.NewScheme()
		expect.NoError(t, s(scheme))
		mgr, err := ctrl.NewManager(o.config, ctrl.Options{
			Scheme: scheme, Metrics: server.Options{BindAddress: "0"},
			WebhookServer: ctrlwebhook.NewServer(ctrlwebhook.Options{Host: "127.0.0.1", Port: port, CertDir: o.folder}),
		})
		expect.NoError(t, err)
		expect.NoError(t, setup(mgr))
		mgr.GetWebhookServer().Register("/readyz", webhook.Checks{})
		informer(t, mgr)
		addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		return addr, func(ctx context.Context) error {
			running, stop := context.WithCancel(context.WithoutCancel(ctx))
			go func() {
				<-ctx.Done()
				o.stopping.Lock()
				stop()
			}()
			err := mgr.Start(running)
			if ctx.Err() == nil {
				return err
			}
			defer o.stopping.Unlock()
			for deadline := time.Now().Add(2 * time.Minute); o.balancer.Connections(addr) > 0; time.Sleep(time.Millisecond) {
				if time.Now().After(deadline) {
					return errors.Join(err, errors.New("the API server has not closed its connections"))
				}
			}
			return err
		}
	}
}

// withReplica is a release that runs a replica beside the manager: step 4.
func withReplica(opts func(*webhook.FileCertificates, registration.Bundle) []replica.Option) release {
	return func(t *testing.T, o *operator) (string, func(context.Context) error) {
		t.Helper()
		l, err := net.Listen("tcp", "127.0.0.1:0")
		expect.NoError(t, err)
		certs, bundle, err := step4.Files(o.folder)
		expect.NoError(t, err)
		mgr, err := ctrl.NewManager(o.config, ctrl.Options{Scheme: newScheme(t), Metrics: server.Options{BindAddress: "0"}})
		expect.NoError(t, err)
		informer(t, mgr)
		hooks := o.hooks(t, definition(t))
		return l.Addr().String(), func(ctx context.Context) error {
			return step4.Run(ctx, mgr, l, hooks, append(opts(certs, bundle), replica.Server(webhook.ShutdownDelay(time.Second)))...)
		}
	}
}

// The four releases between certificates in files and the CA of the operator.
var (
	filesOnly = withReplica(func(certs *webhook.FileCertificates, bundle registration.Bundle) []replica.Option {
		return []replica.Option{replica.Certificates(certs, bundle)}
	})
	filesAndAuthority = withReplica(func(certs *webhook.FileCertificates, bundle registration.Bundle) []replica.Option {
		return []replica.Option{replica.Certificates(certs, bundle), replica.TrustAuthority()}
	})
	authorityAndFiles = withReplica(func(_ *webhook.FileCertificates, bundle registration.Bundle) []replica.Option {
		return []replica.Option{replica.Trust(bundle)}
	})
	authorityOnly = withReplica(func(*webhook.FileCertificates, registration.Bundle) []replica.Option { return nil })
)

// pace is how long clients read and write in each part of a rollout, at least.
const pace = 300 * time.Millisecond

// rollOut replaces the replica by one of another release. For a while, both serve.
func (o *operator) rollOut(t *testing.T, start release) {
	t.Helper()
	addr, run := start(t, o)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	o.balancer.Add(addr)
	expect.Eventually(t, func() error {
		select {
		case err := <-ended:
			t.Fatalf("the replica has ended: %v", err)
		default:
		}
		if !o.balancer.IsReady(addr) {
			return errors.New("the replica is not ready")
		}
		return nil
	})
	time.Sleep(pace) // both serve
	o.stop()
	o.stop = sync.OnceFunc(func() {
		o.balancer.Remove(addr)
		time.Sleep(pace) // no new connections
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("a replica ended with %v", err)
		}
	})
	time.Sleep(pace) // it serves alone
}

// run runs a command with the kubectl of the control plane.
func (o *operator) run(t *testing.T, command string) (string, error) {
	t.Helper()
	kubeconfig, err := o.Kubeconfig(o.Config())
	expect.NoError(t, err)
	return shell(t, command, "KUBECONFIG="+kubeconfig, "HOME="+t.TempDir(), "PATH="+filepath.Dir(o.Kubectl())+string(os.PathListSeparator)+os.Getenv("PATH"))
}

func backup(version, name string, annotations, spec map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1.GroupVersion.Group + "/" + version, "kind": "Backup",
		"metadata": map[string]any{"name": name}, "spec": spec,
	}}
	if annotations != nil {
		u.Object["metadata"].(map[string]any)["annotations"] = annotations
	}
	return u
}

// store creates Backups in v1, whose spec.encrypt v1beta1 cannot express.
func (o *operator) store(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		expect.Eventually(t, func() error { // until the API server knows the webhooks
			_, err := o.current.Create(t.Context(), backup("v1", name, nil, map[string]any{"bucket": "shop", "path": name, "encrypt": true}), metav1.CreateOptions{})
			if apierrors.IsAlreadyExists(err) {
				return nil
			}
			return err
		})
	}
}

// edit edits an object, which was read in v1beta1, and sets keep.
func (o *operator) edit(ctx context.Context, read *unstructured.Unstructured, keep int64) error {
	edited := read.DeepCopy()
	if err := unstructured.SetNestedField(edited.Object, keep, "spec", "keep"); err != nil {
		return err
	}
	if _, err := o.beta.Update(ctx, edited, metav1.UpdateOptions{}); err != nil {
		return err
	}
	return o.whole(ctx, read.GetName(), keep)
}

// whole returns an error unless a Backup has all of its fields.
func (o *operator) whole(ctx context.Context, name string, keep int64) error {
	got, err := o.current.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	want := fmt.Sprint(map[string]any{"bucket": "shop", "path": name, "encrypt": true, "keep": keep})
	if spec := fmt.Sprint(got.Object["spec"]); spec != want || len(got.GetAnnotations()) > 0 {
		return fmt.Errorf("backup %s: spec %s, annotations %v, expected %s", name, spec, got.GetAnnotations(), want)
	}
	return nil
}

// busy reads, edits and lists Backups all the time, until the returned function is called, and fails
// the test at the first error.
func (o *operator) busy(t *testing.T, name string) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	rounds := 0
	go func() {
		defer close(done)
		for ; ctx.Err() == nil; rounds++ {
			time.Sleep(20 * time.Millisecond)
			if err := o.round(ctx, name, int64(1+rounds%300)); err != nil && ctx.Err() == nil && !apierrors.IsConflict(err) {
				t.Errorf("round %d of the clients: %v", rounds, err)
				return
			}
		}
	}()
	return sync.OnceFunc(func() {
		cancel()
		<-done
		t.Logf("%d rounds of reads and writes", rounds)
		if rounds < 20 {
			t.Error("expected 20 at least")
		}
	})
}

func (o *operator) round(ctx context.Context, name string, keep int64) error {
	o.stopping.RLock()
	defer o.stopping.RUnlock()
	read, err := o.beta.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("get: %w", err)
	}
	if err := o.edit(ctx, read, keep); err != nil {
		return fmt.Errorf("update: %w", err)
	}
	for _, version := range []dynamic.ResourceInterface{o.beta, o.current} {
		if _, err := version.List(ctx, metav1.ListOptions{}); err != nil {
			return fmt.Errorf("list: %w", err)
		}
	}
	// Too long, which the validating webhook denies.
	denied := backup("v1", "long", nil, map[string]any{"keep": int64(400)})
	if _, err := o.current.Create(ctx, denied, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); err == nil || !strings.Contains(err.Error(), "a year is enough") {
		return fmt.Errorf("create: got %w, expected that 400 days are denied", err)
	}
	return nil
}

// trusts returns an error unless the API server trusts so many CAs.
func (o *operator) trusts(t *testing.T, cas int) {
	t.Helper()
	expect.Eventually(t, func() error {
		if got := trusted(t, o.ControlPlane); got != cas {
			return fmt.Errorf("the API server trusts %d CAs, expected %d", got, cas)
		}
		return nil
	})
}

// kubebuilder applies what kubebuilder's kustomizations and cert-manager make of the definition and of
// the webhook configurations.
func (o *operator) kubebuilder(t *testing.T) {
	t.Helper()
	ca, err := os.ReadFile(filepath.Join(o.folder, "ca.crt"))
	expect.NoError(t, err)
	crd := convertedDefinition(t)
	crd.APIVersion, crd.Kind = "apiextensions.k8s.io/v1", "CustomResourceDefinition"
	crd.Spec.Conversion.Webhook.ClientConfig.CABundle = ca
	objects := []any{crd}
	for _, document := range strings.Split(registered, "---\n") {
		obj := &unstructured.Unstructured{}
		expect.NoError(t, yaml.Unmarshal([]byte(document), &obj.Object))
		obj.SetName("backup-operator-" + strings.ToLower(strings.TrimSuffix(obj.GetKind(), "WebhookConfiguration")) + "-webhook-configuration")
		for _, w := range obj.Object["webhooks"].([]any) {
			expect.NoError(t, unstructured.SetNestedField(w.(map[string]any), base64Of(ca), "clientConfig", "caBundle"))
		}
		objects = append(objects, obj.Object)
	}
	o.apply(t, objects...)
}

// secrets returns the names of all Secrets.
func (o *operator) secrets(t *testing.T) (names []string) {
	t.Helper()
	all, err := kubernetes.NewForConfigOrDie(o.Config()).CoreV1().Secrets("").List(t.Context(), metav1.ListOptions{})
	expect.NoError(t, err)
	for _, s := range all.Items {
		names = append(names, s.Namespace+"/"+s.Name)
	}
	return names
}
