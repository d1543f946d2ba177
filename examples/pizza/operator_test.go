package pizza

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	testingcache "k8s.io/client-go/tools/cache/testing"

	"github.com/crdkit/crdkit/examples/pizza/api/v1beta1"
	"github.com/crdkit/crdkit/test/controlplane"
	"github.com/crdkit/crdkit/test/expect"
	"github.com/crdkit/crdkit/test/testobj"
	"github.com/crdkit/crdkit/webhook"
	"github.com/crdkit/crdkit/webhook/replica"
)

// operate runs the operator, and returns its address, and a function that stops it and
// returns what Run returned.
func operate(t *testing.T, config *rest.Config, opts ...Option) (address string, stop func() <-chan error) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	expect.NoError(t, err)
	address = listener.Addr().String()
	endpoint := InCluster()
	endpoint.URL = "https://" + address
	ctx, cancel := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	go func() { stopped <- Run(ctx, config, listener, endpoint, opts...) }()
	return address, func() <-chan error { cancel(); return stopped }
}

// A request that is in flight when the operator stops is judged as any other: the informer
// that knows who uses a topping is still there.
func TestRun_RequestInFlight(t *testing.T) {
	t.Parallel()
	cp := controlplane.ForTest(t)
	d := declared(t, InCluster(), nil)
	d.definitions[0].Spec.Conversion = nil
	install(t, cp.Config(), d.definitions)
	client, err := dynamic.NewForConfig(cp.Config())
	expect.NoError(t, err)
	namespace := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": Namespace}}}
	_, err = client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}).Create(t.Context(), namespace, metav1.CreateOptions{})
	expect.NoError(t, err)
	pizza := testobj.Parse(t, object("v1beta1", `,"spec":{"toppings":[{"name":"tomato"}]}`))
	_, err = client.Resource(v1beta1.GroupVersion.WithResource("pizzas")).Namespace("default").Create(t.Context(), pizza, metav1.CreateOptions{})
	expect.NoError(t, err)
	// A kubelet does not verify the certificate either.
	trust := &tls.Config{InsecureSkipVerify: true}
	address, stop := operate(t, cp.Config(), Replica(replica.Server(webhook.ShutdownDelay(100*time.Millisecond))))
	endpoint := InCluster()
	endpoint.URL = "https://" + address
	d = declared(t, endpoint, nil)
	for resource, object := range map[schema.GroupVersionResource]any{
		{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}:               d.definitions[0],
		{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "mutatingwebhookconfigurations"}:   d.mutating,
		{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingwebhookconfigurations"}: d.validating,
	} {
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
		expect.NoError(t, err)
		delete(fields, "status")
		u := &unstructured.Unstructured{Object: fields}
		u.SetManagedFields(nil)
		_, err = client.Resource(resource).Apply(t.Context(), u.GetName(), u, metav1.ApplyOptions{FieldManager: "test", Force: true})
		expect.NoError(t, err)
	}
	web := &http.Client{Transport: &http.Transport{TLSClientConfig: trust}}
	for {
		resp, err := web.Get("https://" + address + "/readyz")
		if err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				break
			}
		}
		if t.Context().Err() != nil {
			t.Fatal("the operator is not ready")
		}
		time.Sleep(10 * time.Millisecond)
	}
	web.CloseIdleConnections()

	body := `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","operation":"DELETE","name":"tomato",` +
		`"kind":{"group":"restaurant.programming-kubernetes.info","version":"v1alpha1","kind":"Topping"},` +
		`"resource":{"group":"restaurant.programming-kubernetes.info","version":"v1alpha1","resource":"toppings"},` +
		`"oldObject":{"apiVersion":"restaurant.programming-kubernetes.info/v1alpha1","kind":"Topping","metadata":{"name":"tomato"},"spec":{"cost":1}}}}`
	conn, err := tls.Dial("tcp", address, trust)
	expect.NoError(t, err)
	defer conn.Close()
	fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\nExpect: 100-continue\r\n\r\n", "/v1/validate/toppings", address, len(body))
	answers := bufio.NewReader(conn)
	if goOn, err := http.ReadResponse(answers, nil); err != nil || goOn.StatusCode != http.StatusContinue {
		t.Fatalf("got %v, %v", goOn, err)
	}
	// The handler is reading the body. The operator stops.
	stopped := stop()
	for {
		late, err := net.Dial("tcp", address)
		if err != nil {
			break
		}
		late.Close()
		time.Sleep(time.Millisecond)
	}
	select {
	case err := <-stopped:
		t.Fatalf("Run returned %v with a request in flight", err)
	case <-time.After(200 * time.Millisecond): // in which informers could stop
	}
	fmt.Fprint(conn, body)
	resp, err := http.ReadResponse(answers, nil)
	expect.NoError(t, err)
	defer resp.Body.Close()
	var review admissionv1.AdmissionReview
	expect.NoError(t, json.NewDecoder(resp.Body).Decode(&review))
	if review.Response == nil || review.Response.Allowed || review.Response.Result == nil {
		t.Fatalf("%s: %+v", resp.Status, review.Response)
	}
	if diff := cmp.Diff(`toppings.restaurant.programming-kubernetes.info "tomato" is forbidden: referenced by pizzas: default/p`, review.Response.Result.Message); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}

// A lease at fault stops the operator at once.
func TestRun_LeaseAtFault(t *testing.T) {
	address, stop := operate(t, &rest.Config{}, LeaderElection(Lease{}))
	expect.ErrorContains(t, <-stop(), "the lease for the leader: no namespace or name")
	if conn, err := net.Dial("tcp", address); err == nil {
		conn.Close()
		t.Error("the listener is open")
	}
}

// Each term begins with all pizzas, and nothing is written between two.
func TestTerm_LooksAtAllPizzas(t *testing.T) {
	written := make(chan string, 100)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		written <- path.Base(path.Dir(r.URL.Path))
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, object("v1beta1", ""))
	}))
	defer server.Close()
	op, err := newOperator(&rest.Config{Host: server.URL})
	expect.NoError(t, err)
	source := testingcache.NewFakeControllerSource()
	source.Add(pizzaOf("a", nil))
	source.Add(pizzaOf("b", nil))
	op.controller.pizzas = cache.NewSharedIndexInformer(source, &v1beta1.Pizza{}, 0, cache.Indexers{})
	op.controller.toppings = cache.NewSharedIndexInformer(testingcache.NewFakeControllerSource(), &v1beta1.Pizza{}, 0, cache.Indexers{})
	run(t, op.controller.pizzas)
	run(t, op.controller.toppings)

	// term works until that many pizzas have been written.
	term := func(change func(), n int) (names []string) {
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			op.controller.run(ctx, 1)
		}()
		for len(names) < n {
			if len(names) == 2 && change != nil {
				change()
				change = nil
			}
			names = append(names, <-written)
		}
		cancel()
		<-ended
		slices.Sort(names)
		return names
	}
	if diff := cmp.Diff([]string{"a", "b", "c"}, term(func() { source.Add(pizzaOf("c", nil)) }, 3)); diff != "" {
		t.Errorf("the first term (-want +got):\n%s", diff)
	}
	source.Add(pizzaOf("d", nil))
	for len(op.controller.pizzas.GetStore().ListKeys()) < 4 {
		time.Sleep(time.Millisecond)
	}
	select {
	case name := <-written:
		t.Errorf("%s was written between the terms", name)
	case <-time.After(50 * time.Millisecond):
	}
	if diff := cmp.Diff([]string{"a", "b", "c", "d"}, term(nil, 4)); diff != "" {
		t.Errorf("the second term (-want +got):\n%s", diff)
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestTerm_EndsWithLastWrite(t *testing.T) {
	began, goOn := make(chan struct{}), make(chan struct{})
	config := inProcess(t)
	_, err := ask(t.Context(), dynamic.NewForConfigOrDie(config), "create", "v1beta1", "", object("v1beta1", ""))
	expect.NoError(t, err)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTrip(func(r *http.Request) (*http.Response, error) {
			resp, err := next.RoundTrip(r)
			if r.Method == http.MethodPatch {
				close(began)
				<-goOn // the answer is on its way, and no context takes the write back
			}
			return resp, err
		})
	})
	op, err := newOperator(config)
	expect.NoError(t, err)
	run(t, op.pizzas)
	run(t, op.toppings)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		op.work(ctx)
	}()
	<-began
	cancel()
	select {
	case <-ended:
		t.Error("the term has ended with a write under way")
	case <-time.After(100 * time.Millisecond):
	}
	close(goOn)
	<-ended
}
