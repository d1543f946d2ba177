package replica_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/crdkit/crdkit/admission"
	"github.com/crdkit/crdkit/conversion"
	"github.com/crdkit/crdkit/test/balancer"
	"github.com/crdkit/crdkit/test/controlplane"
	"github.com/crdkit/crdkit/test/expect"
	"github.com/crdkit/crdkit/test/rbac"
	"github.com/crdkit/crdkit/test/testobj"
	"github.com/crdkit/crdkit/test/tier"
	"github.com/crdkit/crdkit/test/webhooktest"
	"github.com/crdkit/crdkit/webhook"
	"github.com/crdkit/crdkit/webhook/authority"
	"github.com/crdkit/crdkit/webhook/metrics"
	"github.com/crdkit/crdkit/webhook/registration"
	"github.com/crdkit/crdkit/webhook/replica"
)

// definition returns the definition of pizzas in a group.
func definition(group string) []byte {
	return fmt.Appendf(nil, `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: pizzas.%[1]s
spec:
  group: %[1]s
  names: {kind: Pizza, plural: pizzas, singular: pizza, listKind: PizzaList}
  scope: Namespaced
  versions:
  - name: v1alpha1
    served: true
    storage: false
    schema: &any {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
  - name: v1
    served: true
    storage: true
    schema: *any
`, group)
}

// converted returns the definition of pizzas in a group, and its conversion.
func converted(t *testing.T, group string) (*conversion.Registry, []registration.Option) {
	t.Helper()
	registry := conversion.NewRegistry(runtime.NewScheme())
	spoke := schema.GroupVersionKind{Group: group, Version: "v1alpha1", Kind: "Pizza"}
	expect.NoError(t, conversion.AddFields(registry, spoke, "v1", conversion.Rename("spec.topping", "spec.toppings")))
	return registry, []registration.Option{registration.CRDs(definition(group)), registration.Conversion("/convert", conversion.NewHandler(registry))}
}

// town is a group with a Service in front of the replicas of a test.
type town struct {
	*controlplane.ControlPlane
	group     string
	operator  string
	system    string       // its namespace
	config    *rest.Config // of the operator
	namespace string       // that it looks at; empty for all
	client    dynamic.Interface
	balancer  *balancer.Balancer
	hooks     func(extra ...registration.Option) *registration.Webhooks
}

// towns is how many there are.
var towns atomic.Int64

// open opens a town of its own, and lets t run beside the other tests.
func open(t *testing.T) *town {
	t.Helper()
	t.Parallel()
	return openOn(t, controlplane.Shared(t))
}

// openOn opens a town on a control plane.
func openOn(t *testing.T, cp *controlplane.ControlPlane) *town {
	t.Helper()
	n := towns.Add(1)
	group, system, operator := fmt.Sprintf("town%d.example.com", n), fmt.Sprintf("pizza-system-%d", n), fmt.Sprintf("pizza-operator-%d", n)
	client, err := dynamic.NewForConfig(cp.Config())
	expect.NoError(t, err)
	typed, err := kubernetes.NewForConfig(cp.Config())
	expect.NoError(t, err)
	_, err = typed.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: system}}, metav1.CreateOptions{})
	expect.NoError(t, err)
	// The API server resolves such a Service to localhost, and the port of the webhook's
	// client configuration (apiserver/pkg/util/proxy, ResolveCluster).
	_, err = typed.CoreV1().Services(system).Create(t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "pizza-operator"},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "localhost"},
	}, metav1.CreateOptions{})
	expect.NoError(t, err)
	_, err = client.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}).Create(t.Context(), testobj.Parse(t, string(definition(group))), metav1.CreateOptions{})
	expect.NoError(t, err)

	l, err := net.Listen("tcp", "127.0.0.1:0")
	expect.NoError(t, err)
	b := balancer.New(l)
	t.Cleanup(b.Close)
	c := &town{ControlPlane: cp, group: group, operator: operator, system: system, config: cp.Config(), client: client, balancer: b}
	c.hooks = func(extra ...registration.Option) *registration.Webhooks {
		registry, options := converted(t, group)
		validate := admission.Validate(func(_ context.Context, u *unstructured.Unstructured) (field.ErrorList, error) {
			if toppings, _, _ := unstructured.NestedString(u.Object, "spec", "toppings"); toppings == "pineapple" {
				return field.ErrorList{field.Invalid(field.NewPath("spec", "toppings"), toppings, "not in this house")}, nil
			}
			return nil, nil
		}, admission.ForKind(c.kind("v1")))
		options = append(options,
			registration.Service(system, "pizza-operator"),
			registration.ServicePort(int32(b.Addr().(*net.TCPAddr).Port)),
			registration.Validating("validate.pizzas.example.com", "/validate", admission.NewHandler(runtime.NewScheme(), admission.ConvertWith(registry), validate)))
		hooks, err := registration.New(operator, append(options, extra...)...)
		expect.NoError(t, err)
		return hooks
	}
	return c
}

func (c *town) kind(version string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: c.group, Version: version, Kind: "Pizza"}
}

// pizzas is the resource of a version, in a namespace that all towns share.
func (c *town) pizzas(version string) dynamic.ResourceInterface {
	return c.client.Resource(c.kind(version).GroupVersion().WithResource("pizzas")).Namespace("default")
}

// order creates pizzas of v1.
func (c *town) order(t *testing.T, n int) {
	t.Helper()
	for i := range n {
		expect.Eventually(t, func() error {
			_, err := c.pizzas("v1").Create(t.Context(), c.pizza("v1", "p"+strconv.Itoa(i), "salami"), metav1.CreateOptions{})
			return err
		})
	}
}

// informer lists the pizzas in a version.
func (c *town) informer(version string) cache.SharedIndexInformer {
	resource := c.client.Resource(c.kind(version).GroupVersion().WithResource("pizzas")).Namespace(c.namespace)
	return cache.NewSharedIndexInformer(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
			return resource.List(ctx, opts)
		},
		WatchFuncWithContext: resource.Watch,
	}, &unstructured.Unstructured{}, 0, nil)
}

// apply applies the manifests of a release.
func (c *town) apply(t *testing.T, hooks *registration.Webhooks) {
	t.Helper()
	text, err := hooks.Manifests(nil)
	expect.NoError(t, err)
	for _, obj := range testobj.ParseAll(t, text) {
		resource, _ := meta.UnsafeGuessKindToResource(obj.GroupVersionKind())
		_, err := c.client.Resource(resource).Apply(t.Context(), obj.GetName(), obj, metav1.ApplyOptions{FieldManager: "deployer", Force: true})
		expect.NoError(t, err)
	}
}

// awaitReady waits until the Service sends requests to a replica.
func (c *town) awaitReady(t *testing.T, addr string) {
	t.Helper()
	expect.Eventually(t, func() error {
		if !c.balancer.IsReady(addr) {
			return errors.New(readyz(addr))
		}
		return nil
	})
}

// awaitOrder waits until a pizza can be created, because the API server has heard of the CA.
func (c *town) awaitOrder(t *testing.T) {
	t.Helper()
	expect.Eventually(t, func() error {
		_, err := c.pizzas("v1alpha1").Create(t.Context(), c.pizza("v1alpha1", "first", "salami"), metav1.CreateOptions{})
		return err
	})
}

// keepOrdering creates pizzas of v1alpha1 until it is stopped or the test ends, and none may fail.
func (c *town) keepOrdering(t *testing.T) (stop func()) {
	ordered, cancel := context.WithCancel(context.Background())
	var orders sync.WaitGroup
	orders.Go(func() {
		n := 0
		for ; ordered.Err() == nil; time.Sleep(20 * time.Millisecond) {
			if _, err := c.pizzas("v1alpha1").Create(context.Background(), c.pizza("v1alpha1", "p"+strconv.Itoa(n), "salami"), metav1.CreateOptions{}); err != nil {
				t.Errorf("order %d: %v", n, err)
				return
			}
			n++
		}
		if n == 0 {
			t.Error("no pizzas were ordered")
		}
	})
	return func() { cancel(); orders.Wait() }
}

// readyzHas returns a function that returns an error unless /readyz has all these texts.
func readyzHas(addr string, lines ...string) func() error {
	return func() error {
		got := readyz(addr)
		for _, line := range lines {
			if !strings.Contains(got, line) {
				return errors.New(got)
			}
		}
		return nil
	}
}

// install applies the manifests, and starts a replica.
func (c *town) install(t *testing.T, hooks *registration.Webhooks, opts ...replica.Option) (addr string, stop func() error) {
	t.Helper()
	c.apply(t, hooks)
	return c.start(t, hooks, opts...)
}

// start starts a replica behind the Service, until the test ends or it is stopped.
func (c *town) start(t *testing.T, hooks *registration.Webhooks, opts ...replica.Option) (addr string, stop func() error) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	expect.NoError(t, err)
	addr = l.Addr().String()
	c.balancer.Add(addr)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	var result error
	go func() {
		defer close(ended)
		result = replica.Run(ctx, c.config, l, hooks, append([]replica.Option{
			replica.Server(webhook.ShutdownDelay(300 * time.Millisecond)),
			replica.Authority(authority.PropagationDelay(time.Second)),
		}, opts...)...)
	}()
	stop = func() error { cancel(); <-ended; return result }
	t.Cleanup(func() {
		expect.NoError(t, stop())
	})
	return addr, stop
}

func (c *town) pizza(version, name, topping string) *unstructured.Unstructured {
	spec := map[string]any{"toppings": topping}
	if version == "v1alpha1" {
		spec = map[string]any{"topping": topping}
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": c.group + "/" + version, "kind": "Pizza",
		"metadata": map[string]any{"name": name},
		"spec":     spec,
	}}
}

// The first replica does not wait for itself. The test starts a replica whose informer lists
// objects that only it can convert, behind a Service that sends requests to replicas that are
// ready.
func TestRun_FirstReplica(t *testing.T) {
	c := open(t)
	c.order(t, 3)
	informer := c.informer("v1alpha1")
	working := make(chan struct{})
	begin := time.Now()
	registry := prometheus.NewRegistry()
	addr, stop := c.install(t, c.hooks(),
		replica.Informer("pizzas", informer),
		replica.Metrics(func(status webhook.Status) error { return metrics.Prometheus(registry, status) }),
		replica.Controller(func(ctx context.Context) error {
			if !informer.HasSynced() {
				return errors.New("the informer has not synced")
			}
			close(working)
			<-ctx.Done()
			return nil
		}))
	var answers []string
	for done := false; !done; {
		select {
		case <-working:
			done = true
		case <-time.After(20 * time.Millisecond):
			if answer := readyz(addr); len(answers) == 0 || answers[len(answers)-1] != answer {
				answers = append(answers, answer)
			}
			if time.Since(begin) > 2*time.Minute {
				t.Fatalf("not at work after two minutes: %q", answers)
			}
		}
	}
	t.Logf("at work after %s: %q", time.Since(begin), answers)
	const cas = "# HELP crdkit_webhook_ca_certificates CA certificates that the API server is told to trust.\n# TYPE crdkit_webhook_ca_certificates gauge\ncrdkit_webhook_ca_certificates 1\n"
	expect.NoError(t, testutil.GatherAndCompare(registry, strings.NewReader(cas), "crdkit_webhook_ca_certificates"))
	families, err := registry.Gather()
	expect.NoError(t, err)
	changes := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == "crdkit_webhook_changes_total" && m.GetCounter().GetValue() > 0 {
				changes[m.GetLabel()[0].GetValue()+" "+m.GetLabel()[2].GetValue()] += m.GetCounter().GetValue()
			}
		}
	}
	if diff := cmp.Diff(map[string]float64{"Secret CACreated": 1, "CustomResourceDefinition CABundleInjected": 1, "ValidatingWebhookConfiguration CABundleInjected": 1}, changes); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
	for _, obj := range informer.GetStore().List() {
		if topping, _, _ := unstructured.NestedString(obj.(*unstructured.Unstructured).Object, "spec", "topping"); topping != "salami" {
			t.Errorf("the informer has %v", obj)
		}
	}
	if got := len(informer.GetStore().List()); got != 3 {
		t.Errorf("the informer has %d pizzas", got)
	}
	_, err = c.pizzas("v1alpha1").Create(t.Context(), c.pizza("v1alpha1", "hawaii", "pineapple"), metav1.CreateOptions{})
	expect.ErrorContains(t, err, "not in this house")
	expect.NoError(t, stop())
}

func readyz(addr string) string {
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: insecure, DisableKeepAlives: true}}
	resp, err := client.Get("https://" + addr + "/readyz?verbose")
	if err != nil {
		return fmt.Sprint(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return fmt.Sprint(err)
	}
	return string(body)
}

// TestRun_StopsInOrder stops a replica with a request in flight.
func TestRun_StopsInOrder(t *testing.T) {
	c := open(t)
	informer := c.informer("v1")
	var mu sync.Mutex
	var order []string
	note := func(what string) {
		mu.Lock()
		defer mu.Unlock()
		order = append(order, what)
	}
	arrived, answer := make(chan struct{}), make(chan struct{})
	ready, stops := make(chan struct{}), make(chan struct{})
	addr, stop := c.install(t, c.hooks(),
		replica.Informer("pizzas", informer),
		replica.Handle("/slow", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			close(arrived)
			<-answer
			if informer.IsStopped() {
				note("the informer has stopped before the answer")
			}
			note("the request is answered")
		})),
		replica.Controller(func(ctx context.Context) error {
			close(ready)
			<-ctx.Done()
			note("the controller stops")
			close(stops)
			return nil
		}),
		replica.Ready("kitchen", func(*http.Request) error { return nil }),
		replica.Server(webhook.ShutdownDelay(time.Second)))
	<-ready
	expect.Eventually(t, func() error {
		if got := readyz(addr); strings.Contains(got, "[-]") {
			return errors.New(got)
		}
		return readyzHas(addr, "[+]kitchen ok")()
	})
	done := make(chan error, 1)
	go func() {
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: insecure, DisableKeepAlives: true}}
		resp, err := client.Get("https://" + addr + "/slow")
		if err == nil {
			_ = resp.Body.Close()
		}
		done <- err
	}()
	<-arrived
	stopped := make(chan error, 1)
	go func() { stopped <- stop() }()
	<-stops // at the same time as /readyz
	expect.Eventually(t, readyzHas(addr, "[-]shutdown failed"))
	note("/readyz says that it is leaving")
	expect.Eventually(t, func() error {
		if conn, err := net.Dial("tcp", addr); err == nil {
			_ = conn.Close()
			return errors.New("the listener is open")
		}
		return nil
	})
	note("the listener is closed")
	close(answer)
	expect.NoError(t, <-done)
	expect.NoError(t, <-stopped)
	if !informer.IsStopped() {
		t.Error("the informer has not stopped")
	}
	want := []string{"the controller stops", "/readyz says that it is leaving", "the listener is closed", "the request is answered"}
	if diff := cmp.Diff(want, order); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}

// A controller that fails stops the replica.
func TestController_Fails(t *testing.T) {
	c := open(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	expect.NoError(t, err)
	hooks := c.hooks()
	c.apply(t, hooks)
	err = replica.Run(t.Context(), c.Config(), l, hooks,
		replica.Server(webhook.ShutdownDelay(0)),
		replica.Controller(func(context.Context) error { return errors.New("out of flour") }),
		replica.Controller(func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }))
	if err == nil || !strings.Contains(err.Error(), "replica: a controller stopped: out of flour") || strings.Contains(err.Error(), "canceled") {
		t.Errorf("got %v", err)
	}
}

// An informer that may not list keeps the replica from being ready. An informer without permission
// differs from one whose kind is not converted: a rollout must stop there, although the conversion
// is wanting too.
func TestInformer_MayNotList(t *testing.T) {
	c := open(t)
	c.order(t, 1)
	nobody, err := c.User("nobody")
	expect.NoError(t, err)
	client, err := dynamic.NewForConfig(nobody)
	expect.NoError(t, err)
	mayNot := *c
	mayNot.client = client
	addr, _ := c.install(t, c.hooks(), replica.Informer("pizzas", c.informer("v1alpha1")), replica.Informer("others", mayNot.informer("v1")))
	expect.Eventually(t, readyzHas(addr, "[+]informer-pizzas ok"))
	for begin := time.Now(); time.Since(begin) < 3*time.Second; time.Sleep(50 * time.Millisecond) {
		got := readyz(addr)
		_, why, _ := strings.Cut(got, "[-]informer-others failed: not synced")
		if why, _, _ = strings.Cut(why, "\n"); !strings.Contains(why, "forbidden") {
			t.Fatal(got)
		}
	}
}

// The first replica of a namespaced operator does not wait for itself. An operator with rights in
// one namespace may not ask about all objects.
func TestRun_NamespacedOperator(t *testing.T) {
	c := open(t)
	c.order(t, 3)
	user, err := c.User("cook")
	expect.NoError(t, err)
	// All that the registration and the authority need, and pizzas in one namespace.
	hooks := c.hooks()
	rules := append(hooks.PolicyRules(), rbacv1.PolicyRule{Verbs: []string{"create", "get", "update", "watch"}, APIGroups: []string{""}, Resources: []string{"secrets"}})
	rbac.Grant(t, c.Config(), "", "cook", rules...)
	rbac.Grant(t, c.Config(), "default", "cook", rbacv1.PolicyRule{Verbs: []string{"list", "watch"}, APIGroups: []string{c.group}, Resources: []string{"pizzas"}})
	cook := *c
	cook.config = user
	cook.client, err = dynamic.NewForConfig(user)
	expect.NoError(t, err)
	cook.namespace = "default"
	informer := cook.informer("v1alpha1")
	begin := time.Now()
	c.apply(t, hooks)
	cook.start(t, hooks, replica.Informer("pizzas", informer))
	expect.Eventually(t, func() error {
		if !informer.HasSynced() {
			return errors.New("the informer has not synced")
		}
		return nil
	})
	t.Logf("after %s", time.Since(begin))
}

// TestRollingUpdate_ManifestsFirst applies the manifests of the next release, which add a webhook,
// while a replica of this one serves. It serves on, and so does one that starts then.
func TestRollingUpdate_ManifestsFirst(t *testing.T) {
	c := open(t)
	registry := prometheus.NewRegistry()
	inTime := replica.Server(webhook.ShutdownDelay(3 * time.Second)) // for a busy machine to notice
	first, stop := c.install(t, c.hooks(), inTime, replica.Metrics(func(status webhook.Status) error { return metrics.Prometheus(registry, status) }))
	c.awaitReady(t, first)
	c.awaitOrder(t)
	second := registration.Validating("second.pizzas.example.com", "/second", admission.NewHandler(runtime.NewScheme(),
		admission.Validate(func(context.Context, *unstructured.Unstructured) (field.ErrorList, error) { return nil, nil }, admission.ForKind(c.kind("v1")))),
		func(w *admissionregistrationv1.ValidatingWebhook) {
			w.FailurePolicy = new(admissionregistrationv1.Ignore)
		})
	next := c.hooks(second)
	defer c.keepOrdering(t)()
	c.apply(t, next)
	want := fmt.Sprintf("# HELP crdkit_webhook_registration_difference 1 for each field of a webhook configuration, definition or guard that is not as it is declared.\n# TYPE crdkit_webhook_registration_difference gauge\n"+
		"crdkit_webhook_registration_difference{field=\"webhooks[second.pizzas.example.com]\",kind=\"ValidatingWebhookConfiguration\",name=%q} 1\n", c.operator)
	expect.Eventually(t, func() error {
		return testutil.GatherAndCompare(registry, strings.NewReader(want), "crdkit_webhook_registration_difference")
	})
	restarted, stopRestarted := c.start(t, c.hooks(), inTime)
	c.awaitReady(t, restarted)
	expect.NoError(t, stop())
	updated, _ := c.start(t, next)
	c.awaitReady(t, updated)
	expect.NoError(t, stopRestarted())
}

// An operator outside of the cluster has no namespace, and keeps its CA in the namespace default.
func TestRun_URLWithoutNamespace(t *testing.T) {
	c := open(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	expect.NoError(t, err)
	url := "https://" + l.Addr().String()
	_, options := converted(t, c.group)
	hooks, err := registration.New(c.operator, append(options, registration.URL(url))...)
	expect.NoError(t, err)
	c.apply(t, hooks)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- replica.Run(ctx, c.Config(), l, hooks, replica.Server(webhook.ShutdownDelay(0))) }()
	c.order(t, 1)
	expect.Eventually(t, func() error {
		_, err := c.pizzas("v1alpha1").Get(t.Context(), "p0", metav1.GetOptions{})
		return err
	})
	_, err = c.client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "secrets"}).Namespace("default").Get(t.Context(), c.operator+"-webhook", metav1.GetOptions{})
	expect.NoError(t, err)
	stop()
	expect.NoError(t, <-ended)
}

// The certificates may come from files.
func TestCertificates_FromFiles(t *testing.T) {
	c := open(t)
	certs, bundle := c.files(t)
	addr, _ := c.install(t, c.hooks(), replica.Certificates(certs, bundle))
	expect.Eventually(t, func() error {
		if got := readyz(addr); strings.Contains(got, "[-]") {
			return errors.New(got)
		}
		return readyzHas(addr, "[+]certificate ok", "[+]ca-bundle ok")()
	})
	expect.Eventually(t, func() error {
		_, err := c.pizzas("v1alpha1").Create(t.Context(), c.pizza("v1alpha1", "hawaii", "pineapple"), metav1.CreateOptions{})
		if err == nil || !strings.Contains(err.Error(), "not in this house") {
			return fmt.Errorf("the answer is %w", err)
		}
		return nil
	})
	if secrets, err := c.client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "secrets"}).Namespace(c.system).List(t.Context(), metav1.ListOptions{}); err != nil || len(secrets.Items) > 0 {
		t.Errorf("there is a Secret: %v, %v", secrets, err)
	}
}

// files returns the certificates and the CA bundle of files.
func (c *town) files(t *testing.T) (*webhook.FileCertificates, registration.Bundle) {
	t.Helper()
	host := "pizza-operator." + c.system + ".svc"
	ca, chain, key := webhooktest.SelfSigned(t, host)
	file := filepath.Join(t.TempDir(), "ca.crt")
	expect.NoError(t, os.WriteFile(file, ca, 0o600))
	bundle, err := registration.BundleFile(file)
	expect.NoError(t, err)
	return webhooktest.Files(t, chain, key), bundle
}

// TestTrust_NoRequestFails goes from certificates in files to the CA of the operator, and back. One
// replica of each release takes the place of the one before.
func TestTrust_NoRequestFails(t *testing.T) {
	c := open(t)
	certs, bundle := c.files(t)
	releases := [][]replica.Option{
		{replica.Certificates(certs, bundle)},
		{replica.Certificates(certs, bundle), replica.TrustAuthority()},
		{replica.Trust(bundle)},
		{},
	}
	c.apply(t, c.hooks())
	var stop func() error
	for i, n := range tier.Pick([]int{0, 1, 2, 1}, []int{0, 1, 2, 3, 2, 1, 0}) {
		addr, stopThis := c.start(t, c.hooks(), append(releases[n], replica.Server(webhook.ShutdownDelay(3*time.Second)))...)
		c.awaitReady(t, addr)
		if i == 0 {
			c.awaitOrder(t)
			defer c.keepOrdering(t)()
		} else {
			time.Sleep(300 * time.Millisecond) // both serve
			expect.NoError(t, stop())
		}
		time.Sleep(300 * time.Millisecond) // it serves alone
		stop = stopThis
	}
}

// TestTrust_ReplicasDoNotFight runs one replica of a release beside two of the next one, or of the one
// before, as a rollout does. A watch of a client goes on.
func TestTrust_ReplicasDoNotFight(t *testing.T) {
	c := open(t)
	certs, bundle := c.files(t)
	files := []replica.Option{replica.Certificates(certs, bundle)}
	both := []replica.Option{replica.Certificates(certs, bundle), replica.TrustAuthority()}
	c.apply(t, c.hooks())
	crds := c.client.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	start := func(opts []replica.Option) (stop func() error) {
		t.Helper()
		addr, stop := c.start(t, c.hooks(), opts...)
		c.awaitReady(t, addr)
		return stop
	}
	stop := start(files)
	c.awaitOrder(t)
	writes := func() int64 {
		t.Helper()
		crd, err := crds.Get(t.Context(), "pizzas."+c.group, metav1.GetOptions{})
		expect.NoError(t, err)
		return crd.GetGeneration()
	}
	var closed atomic.Int64
	var watching sync.WaitGroup
	defer watching.Wait()
	watches, stopWatching := context.WithCancel(t.Context())
	defer stopWatching()
	watching.Go(func() {
		for watches.Err() == nil {
			w, err := c.pizzas("v1alpha1").Watch(watches, metav1.ListOptions{})
			if err != nil {
				time.Sleep(10 * time.Millisecond)
				continue
			}
			for range w.ResultChan() {
			}
			closed.Add(1)
		}
	})
	for _, step := range []struct {
		name string
		opts []replica.Option
		most int64 // the bundle with both CAs is written once
	}{{"to both CAs", both, 1}, {"back to one CA", files, 0}} {
		before, closedBefore := writes(), closed.Load()
		next := []func() error{start(step.opts), start(step.opts)}
		time.Sleep(tier.Pick(3*time.Second, 20*time.Second))
		n, watches := writes()-before, closed.Load()-closedBefore
		t.Logf("%s: the definition was written %d times, and a watch closed %d times", step.name, n, watches)
		if n > step.most {
			t.Errorf("%s: the definition was written %d times, expected at most %d", step.name, n, step.most)
		}
		expect.NoError(t, stop())
		expect.NoError(t, next[0]())
		stop = next[1]
	}
}
