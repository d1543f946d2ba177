package reference_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/crdkit/crdkit/admission"
	"github.com/crdkit/crdkit/admission/reference"
	"github.com/crdkit/crdkit/scheme"
	"github.com/crdkit/crdkit/test/controlplane"
	"github.com/crdkit/crdkit/test/expect"
	"github.com/crdkit/crdkit/test/tier"
	"github.com/crdkit/crdkit/test/webhooktest"
)

var configMaps = schema.GroupResource{Resource: "configmaps"}

// network connects clients with the API server. It can be cut, so that connections are refused, or
// frozen, so that nothing arrives any more, without an error.
type network struct {
	mu          sync.Mutex
	cut         bool
	connections []*connection
}

type connection struct {
	net.Conn
	frozen chan struct{} // closed when the connection is frozen
}

func (n *network) dial(ctx context.Context, protocol, address string) (net.Conn, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.cut {
		return nil, &net.OpError{Op: "dial", Net: protocol, Err: syscall.ECONNREFUSED}
	}
	inner, err := (&net.Dialer{}).DialContext(ctx, protocol, address)
	if err != nil {
		return nil, err
	}
	c := &connection{inner, make(chan struct{})}
	n.connections = append(n.connections, c)
	return c, nil
}

// sever cuts the network, or restores it.
func (n *network) sever(cut bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.cut = cut
	for _, c := range n.connections {
		c.Close()
	}
	n.connections = nil
}

// freeze freezes the connections that exist.
func (n *network) freeze() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, c := range n.connections {
		close(c.frozen)
	}
	n.connections = nil
}

func (c *connection) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	select {
	case <-c.frozen:
		if err == nil {
			return c.Read(b) // what has arrived is lost
		}
	default:
	}
	return n, err
}

func (c *connection) Write(b []byte) (int, error) {
	select {
	case <-c.frozen:
		return len(b), nil
	default:
		return c.Conn.Write(b)
	}
}

// observed are the checks of one namespace, whose informers use a network.
type observed struct {
	network
	client     kubernetes.Interface // which does not use it
	namespace  string
	configMaps *reference.Referrers
	secrets    *reference.Target
}

// observe starts informers of ConfigMaps that name Secrets, and of Secrets. It creates a namespace
// if the name ends with a hyphen.
func observe(t *testing.T, cp *controlplane.ControlPlane, namespace string) *observed {
	t.Helper()
	o := &observed{client: kubernetes.NewForConfigOrDie(cp.Config()), namespace: namespace}
	if strings.HasSuffix(namespace, "-") {
		created, err := o.client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: namespace}}, metav1.CreateOptions{})
		expect.NoError(t, err)
		o.namespace = created.Name
	}
	config := cp.Config()
	config.Dial = o.dial
	client := kubernetes.NewForConfigOrDie(config)
	maps := informerOf(client, client.CoreV1().ConfigMaps(o.namespace), &corev1.ConfigMap{})
	secretInformer := informerOf(client, client.CoreV1().Secrets(o.namespace), &corev1.Secret{})
	o.configMaps = follow(t, configMaps, maps, reference.Namespaced(secrets), secretsOfConfigMap)
	var err error
	o.secrets, err = reference.NewTarget(reference.Namespaced(secrets), secretInformer,
		reference.Metadata(metadata.NewForConfigOrDie(cp.Config()), corev1.SchemeGroupVersion.WithResource("secrets")))
	expect.NoError(t, err)
	run(t, maps)
	run(t, secretInformer)
	o.recovers(t)
	return o
}

func (o *observed) recovers(t *testing.T) {
	t.Helper()
	expect.EventuallyTrue(t, "the watches work", func() bool {
		time.Sleep(time.Millisecond)
		return o.configMaps.Ready(nil) == nil && o.secrets.Ready(nil) == nil
	})
}

// secret creates a Secret.
func (o *observed) secret(t *testing.T, name string) {
	t.Helper()
	_, err := o.client.CoreV1().Secrets(o.namespace).Create(t.Context(), secret(o.namespace, name), metav1.CreateOptions{})
	expect.NoError(t, err)
}

// refer creates a ConfigMap that names a Secret.
func (o *observed) refer(t *testing.T, secret string) *corev1.ConfigMap {
	t.Helper()
	c := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "of-" + secret}, Data: map[string]string{"secrets": secret}}
	c, err := o.client.CoreV1().ConfigMaps(o.namespace).Create(t.Context(), c, metav1.CreateOptions{})
	expect.NoError(t, err)
	return c
}

// remove answers the deletion of a Secret.
func (o *observed) remove(t *testing.T, name string) error {
	t.Helper()
	errs, err := reference.NotReferenced[*corev1.Secret](o.configMaps)(t.Context(), secret(o.namespace, name))
	if len(errs) > 0 {
		t.Error(errs)
	}
	return err
}

// While the informers cannot reach the API server, which changes, no answer is wrong.
func TestChecks_ConnectionRefused(t *testing.T) {
	t.Parallel()
	o := observe(t, controlplane.Shared(t), "refused-")
	o.secret(t, "old")
	o.secret(t, "gone")
	expect.EventuallyTrue(t, "the secrets are known", func() bool {
		errs, err := reference.Exists(o.secrets, secretsOfConfigMap)(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: o.namespace}, Data: map[string]string{"secrets": "old gone"}})
		return errs == nil && err == nil
	})
	expect.NoError(t, o.remove(t, "old"))
	o.sever(true)
	begin := time.Now()
	menu := o.refer(t, "old")
	expect.NoError(t, o.client.CoreV1().Secrets(o.namespace).Delete(t.Context(), "gone", metav1.DeleteOptions{}))
	const broken = "the informer of configmaps has had no watch for "
	err := o.remove(t, "old")
	if !isRetry(err, http.StatusServiceUnavailable) || !strings.HasPrefix(err.Error(), broken) {
		t.Errorf("a target with a new user: got %v, want %s", err, broken)
	}
	menu.Data["secrets"] = "old gone"
	errs, err := reference.Exists(o.secrets, secretsOfConfigMap)(t.Context(), menu)
	if diff := cmp.Diff([]string{`data[secrets]: Not found: "gone"`}, messages(errs)); diff != "" || err != nil {
		t.Errorf("a target that was deleted: %v (-want +got):\n%s", err, diff)
	}
	// After a while, the API server is not asked to try again, so that the user reads the cause.
	expect.EventuallyTrue(t, "the answer is final", func() bool { return isFinal(o.remove(t, "old")) })
	if age := time.Since(begin); age < 2*time.Second {
		t.Errorf("the answer is final after %s", age)
	}
	for _, err := range []error{o.remove(t, "old"), o.configMaps.Ready(nil)} {
		if err == nil || !strings.HasPrefix(err.Error(), broken) || !strings.HasSuffix(err.Error(), "connection refused") {
			t.Errorf("got %v, want %s and the cause", err, broken)
		}
	}
	o.sever(false)
	begin = time.Now()
	o.recovers(t)
	t.Logf("recovered after %s", time.Since(begin))
	if err := o.remove(t, "old"); !apierrors.IsForbidden(err) {
		t.Errorf("after the recovery: got %v", err)
	}
}

// A connection that hangs without an error ends with the health check of HTTP/2.
func TestChecks_HangingConnection(t *testing.T) {
	t.Setenv("HTTP2_READ_IDLE_TIMEOUT_SECONDS", "1")
	t.Setenv("HTTP2_PING_TIMEOUT_SECONDS", "1")
	o := observe(t, controlplane.Shared(t), "hanging-")
	o.freeze()
	begin := time.Now()
	o.refer(t, "old")
	expect.EventuallyTrue(t, "the watch is known to be broken", func() bool { time.Sleep(time.Millisecond); return o.configMaps.Ready(nil) != nil })
	t.Logf("noticed after %s", time.Since(begin))
	expect.EventuallyTrue(t, "the deletion is denied", func() bool { time.Sleep(time.Millisecond); return apierrors.IsForbidden(o.remove(t, "old")) })
}

// The user reads why an informer does not sync.
func TestCheck_SaysWhyNotSynced(t *testing.T) {
	t.Parallel()
	cp := controlplane.Shared(t)
	nobody, err := cp.User("nobody")
	expect.NoError(t, err)
	refused := cp.Config()
	refused.Dial = (&network{cut: true}).dial
	for want, c := range map[string]struct {
		config   *rest.Config
		resource string
	}{
		`configmaps is forbidden: User "nobody" cannot list resource "configmaps" in API group "" at the cluster scope`: {nobody, "configmaps"},
		"the server could not find the requested resource":                                                              {cp.Config(), "toppings"},
		"has not synced yet: dial tcp: connection refused":                                                              {refused, "configmaps"},
	} {
		t.Run(c.resource+" "+want[:10], func(t *testing.T) {
			t.Parallel()
			client := dynamic.NewForConfigOrDie(c.config)
			resource := corev1.SchemeGroupVersion.WithResource(c.resource)
			informer := informerOf(client, client.Resource(resource), &unstructured.Unstructured{})
			r := follow(t, resource.GroupResource(), informer, reference.Namespaced(secrets), func(*unstructured.Unstructured) []reference.Ref { return nil })
			run(t, informer)
			unused := reference.NotReferenced[*corev1.Secret](r)
			expect.EventuallyTrue(t, "the answer is final", func() bool {
				time.Sleep(time.Millisecond)
				_, err := unused(t.Context(), secret("default", "oven"))
				return isFinal(err)
			})
			_, err := unused(t.Context(), secret("default", "oven"))
			if got := err.Error(); !strings.HasPrefix(got, "the informer of "+c.resource+" has not synced yet: ") || !strings.HasSuffix(got, want) {
				t.Errorf("got %s, want %s", got, want)
			}
		})
	}
}

// TestNotReferenced_APIServerRestart deletes targets as soon as the API server is back, just after
// the objects that name them were created.
func TestNotReferenced_APIServerRestart(t *testing.T) {
	t.Parallel()
	cp := controlplane.ForTest(t)
	o := observe(t, cp, "default")
	s, err := scheme.New(scheme.Functions(corev1.AddToScheme))
	expect.NoError(t, err)
	mux := http.NewServeMux()
	mux.Handle("/exists", admission.NewHandler(s, admission.Validate(reference.Exists(o.secrets, secretsOfConfigMap))))
	mux.Handle("/unused", admission.NewHandler(s, admission.ValidateDelete(reference.NotReferenced[*corev1.Secret](o.configMaps))))
	url, ca := webhooktest.Serve(t, mux)
	registerReferences(t, cp.Config(), url, ca)
	const count = 200
	name := func(i int) string { return fmt.Sprintf("secret-%d", i) }
	for i := range count {
		o.secret(t, name(i))
	}
	expect.NoError(t, cp.StopAPIServer())
	time.Sleep(tier.Pick(2*time.Second, 14*time.Second)) // the longer, the longer does a reflector wait
	if err := o.configMaps.Ready(nil); err == nil {
		t.Error("while the API server is down, Ready returns nil")
	}
	expect.NoError(t, cp.StartAPIServer(t.Context()))
	up := time.Now()
	for i := range count {
		o.refer(t, name(i))
	}
	answers := map[string]int{}
	for i := range count {
		err := o.client.CoreV1().Secrets("default").Delete(t.Context(), name(i), metav1.DeleteOptions{})
		switch {
		case err == nil:
			answers["deleted"]++
		case apierrors.IsForbidden(err):
			answers["referenced"]++
		default:
			t.Log(err)
			answers["undecided"]++
		}
	}
	t.Logf("%v in %s", answers, time.Since(up))
	if answers["deleted"] > 0 {
		t.Errorf("%d of %d targets were deleted although an object names them", answers["deleted"], count)
	}
	o.recovers(t)
}
