//lint:file-ignore SA1019 API servers before 1.34 look for Endpoints (apiserver/pkg/util/proxy/proxy.go, ResolveEndpoint).

package moving_test

import (
	"context"
	"encoding/pem"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/cert"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	v1 "github.com/crdkit/crdkit/interop/controllerruntime/moving/api/v1"
	"github.com/crdkit/crdkit/interop/controllerruntime/moving/api/v1beta1"
	"github.com/crdkit/crdkit/interop/controllerruntime/moving/step4"
	"github.com/crdkit/crdkit/schema"
	"github.com/crdkit/crdkit/test/controlplane"
	"github.com/crdkit/crdkit/test/expect"
	"github.com/crdkit/crdkit/webhook"
	"github.com/crdkit/crdkit/webhook/registration"
	"github.com/crdkit/crdkit/webhook/replica"
)

// TestManager_FirstReplica starts a manager with an informer of Backups, where
// one is stored in v1beta1, and only the replica itself converts.
func TestManager_FirstReplica(t *testing.T) {
	t.Parallel()
	cp := controlplane.ForTest(t, controlplane.APIServerArgs("--enable-aggregator-routing=true"))
	listener := listen(t, cp)
	storeOld(t, cp)

	mgr, err := ctrl.NewManager(cp.Config(), ctrl.Options{Scheme: newScheme(t), Metrics: server.Options{BindAddress: "0"}})
	expect.NoError(t, err)
	informer(t, mgr)
	read := make(chan v1.BackupList, 1)
	expect.NoError(t, mgr.Add(manager.RunnableFunc(func(ctx context.Context) error { // when the cache has synced
		var all v1.BackupList
		err := mgr.GetClient().List(ctx, &all)
		read <- all
		return err
	})))
	hooks, err := step4.Hooks(mgr.GetScheme(), definition(t))
	expect.NoError(t, err)
	register(t, cp, hooks)

	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	done := make(chan error, 1)
	go func() { done <- step4.Run(ctx, mgr, listener, hooks) }()
	select {
	case all := <-read:
		var got []v1.BackupSpec
		for _, b := range all.Items {
			got = append(got, b.Spec)
		}
		if diff := cmp.Diff([]v1.BackupSpec{{Bucket: "shop", Path: "db", Keep: 7}}, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	case err := <-done:
		t.Fatal(err)
	case <-time.After(5 * time.Minute):
		t.Fatal("the cache has not synced in five minutes") // and the manager will not end
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// trusted returns the number of CAs in the bundle of the definition.
func trusted(t *testing.T, cp *controlplane.ControlPlane) int {
	t.Helper()
	crd, err := apiextensions.NewForConfigOrDie(cp.Config()).ApiextensionsV1().CustomResourceDefinitions().Get(t.Context(), "backups.example.com", metav1.GetOptions{})
	expect.NoError(t, err)
	cas, err := cert.ParseCertsPEM(crd.Spec.Conversion.Webhook.ClientConfig.CABundle)
	expect.NoError(t, err)
	return len(cas)
}

// TestManifests_GrantRights reads the ClusterRole, and all that is registered.
func TestManifests_GrantRights(t *testing.T) {
	hooks, err := step4.Hooks(newScheme(t), definition(t))
	expect.NoError(t, err)
	text, err := step4.Manifests(hooks)
	expect.NoError(t, err)
	var kinds []string
	for _, document := range strings.Split(string(text), "---\n") {
		obj := &unstructured.Unstructured{}
		expect.NoError(t, yaml.Unmarshal([]byte(document), &obj.Object))
		kinds = append(kinds, obj.GetKind()+" "+obj.GetName())
	}
	if diff := cmp.Diff([]string{
		"ClusterRole backup-operator-webhooks",
		"CustomResourceDefinition backups.example.com",
		"MutatingWebhookConfiguration backup-operator",
		"ValidatingWebhookConfiguration backup-operator",
	}, kinds); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// managed is a manager whose Start is another.
type managed struct {
	ctrl.Manager
	start func() error
}

func (m managed) Start(context.Context) error { return m.start() }

// The webhooks or the manager: what fails ends the other.
func TestRun_OneFails(t *testing.T) {
	for name, test := range map[string]struct {
		start func() error // of the manager
		opts  []replica.Option
		says  string
	}{
		// It does not end before its caches have synced.
		"the webhooks": {start: func() error { select {} }, opts: []replica.Option{replica.Server(webhook.RunAlongside(func(context.Context) error { return errors.New("listener failed") }))}, says: "listener failed"},
		"the manager":  {start: func() error { return errors.New("no longer the leader") }, opts: []replica.Option{replica.Server(webhook.ShutdownDelay(0))}, says: "no longer the leader"},
	} {
		t.Run(name, func(t *testing.T) {
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			expect.NoError(t, err)
			hooks, err := step4.Hooks(newScheme(t), definition(t))
			expect.NoError(t, err)
			done := make(chan error, 1)
			go func() {
				done <- step4.Run(t.Context(), managed{newManager(t), test.start}, listener, hooks, test.opts...)
			}()
			select {
			case err := <-done:
				if err == nil || !strings.Contains(err.Error(), test.says) {
					t.Errorf("got %v, want %q", err, test.says)
				}
			case <-time.After(2 * time.Minute):
				t.Error("it goes on")
			}
		})
	}
}

// listen makes the Service of the operator, which leads to the listener. A control
// plane without nodes forwards no connections, so the API server looks for endpoints itself,
// which must not be loopback.
func listen(t *testing.T, cp *controlplane.ControlPlane) net.Listener {
	t.Helper()
	ip := controlplane.Address(t)
	listener, err := net.Listen("tcp", net.JoinHostPort(ip.String(), "0"))
	expect.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() }) // which Run has done, if the test got there
	family := discoveryv1.AddressTypeIPv4
	if ip.To4() == nil {
		family = discoveryv1.AddressTypeIPv6
	}
	client := kubernetes.NewForConfigOrDie(cp.Config())
	_, err = client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "backup-system"}}, metav1.CreateOptions{})
	expect.NoError(t, err)
	_, err = client.CoreV1().Services("backup-system").Create(t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "backup-operator"},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "https", Port: 443}}},
	}, metav1.CreateOptions{})
	expect.NoError(t, err)
	_, err = client.DiscoveryV1().EndpointSlices("backup-system").Create(t.Context(), &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: "backup-operator", Labels: map[string]string{discoveryv1.LabelServiceName: "backup-operator"}},
		AddressType: family,
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{ip.String()}, Conditions: discoveryv1.EndpointConditions{Ready: new(true)}}},
		Ports:       []discoveryv1.EndpointPort{{Name: new("https"), Port: new(int32(listener.Addr().(*net.TCPAddr).Port))}},
	}, metav1.CreateOptions{})
	expect.NoError(t, err)
	if cp.Minor() < 34 {
		_, err = client.CoreV1().Endpoints("backup-system").Create(t.Context(), &corev1.Endpoints{
			ObjectMeta: metav1.ObjectMeta{Name: "backup-operator"},
			Subsets: []corev1.EndpointSubset{{
				Addresses: []corev1.EndpointAddress{{IP: ip.String()}},
				Ports:     []corev1.EndpointPort{{Name: "https", Port: int32(listener.Addr().(*net.TCPAddr).Port)}},
			}},
		}, metav1.CreateOptions{})
		expect.NoError(t, err)
	}
	return listener
}

// storeOld creates the definition and a Backup that is stored in v1beta1, and then makes v1 the
// storage version, converted by a webhook whose CA is not registered yet.
func storeOld(t *testing.T, cp *controlplane.ControlPlane) {
	t.Helper()
	parsed, err := schema.Parse(definition(t))
	expect.NoError(t, err)
	crd := parsed.CustomResourceDefinition()
	versions := crd.Spec.Versions
	crd.Spec.Versions = slices.Clone(versions)
	for i := range crd.Spec.Versions {
		crd.Spec.Versions[i].Storage = crd.Spec.Versions[i].Name == "v1beta1"
	}
	all := apiextensions.NewForConfigOrDie(cp.Config()).ApiextensionsV1().CustomResourceDefinitions()
	created, err := all.Create(t.Context(), crd, metav1.CreateOptions{})
	expect.NoError(t, err)

	old := dynamic.NewForConfigOrDie(cp.Config()).Resource(v1beta1.GroupVersion.WithResource("backups")).Namespace("default")
	expect.Eventually(t, func() error {
		_, err := old.Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": v1beta1.GroupVersion.String(), "kind": "Backup", "metadata": map[string]any{"name": "old"},
			"spec": map[string]any{"target": "shop/db", "keep": int64(7)},
		}}, metav1.CreateOptions{})
		return err
	})
	path := "/convert"
	expect.Eventually(t, func() error {
		crd, err := all.Get(t.Context(), created.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		crd.Spec.Versions = versions
		crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.WebhookConverter, Webhook: &apiextensionsv1.WebhookConversion{
			ConversionReviewVersions: []string{"v1"},
			ClientConfig:             &apiextensionsv1.WebhookClientConfig{Service: &apiextensionsv1.ServiceReference{Namespace: "backup-system", Name: "backup-operator", Path: &path}},
		}}
		_, err = all.Update(t.Context(), crd, metav1.UpdateOptions{})
		return err
	})
	backups := dynamic.NewForConfigOrDie(cp.Config()).Resource(v1.GroupVersion.WithResource("backups")).Namespace("default")
	expect.Eventually(t, func() error {
		if _, err := backups.Get(t.Context(), "old", metav1.GetOptions{}); err == nil || !strings.Contains(err.Error(), "conversion webhook for ") {
			return errors.Join(errors.New("backup was converted"), err)
		}
		return nil
	})
}

// register applies the webhook configurations.
func register(t *testing.T, cp *controlplane.ControlPlane, hooks *registration.Webhooks) {
	t.Helper()
	text, err := hooks.Manifests(nil)
	expect.NoError(t, err)
	for _, document := range strings.Split(string(text), "---\n")[1:] {
		obj := &unstructured.Unstructured{}
		expect.NoError(t, yaml.Unmarshal([]byte(document), &obj.Object))
		if gvk := obj.GroupVersionKind(); gvk.Group == "admissionregistration.k8s.io" {
			resource := gvk.GroupVersion().WithResource(strings.ToLower(gvk.Kind) + "s")
			_, err := dynamic.NewForConfigOrDie(cp.Config()).Resource(resource).Create(t.Context(), obj, metav1.CreateOptions{})
			expect.NoError(t, err)
		}
	}
}

// certificate writes the files of the Secret of a Certificate, and returns their folder.
func certificate(t *testing.T) string {
	t.Helper()
	chain, key, err := cert.GenerateSelfSignedCertKey("backup-operator.backup-system.svc", nil, nil)
	expect.NoError(t, err)
	_, ca := pem.Decode(chain)
	folder := t.TempDir()
	for name, text := range map[string][]byte{"tls.crt": chain, "tls.key": key, "ca.crt": ca} {
		expect.NoError(t, os.WriteFile(filepath.Join(folder, name), text, 0o600))
	}
	return folder
}
