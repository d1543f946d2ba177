package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/yaml"

	e2e "github.com/crdkit/crdkit/bench/e2e/pizza"
	"github.com/crdkit/crdkit/examples/pizza/api/v1alpha1"
	"github.com/crdkit/crdkit/examples/pizza/api/v1beta1"
	"github.com/crdkit/crdkit/test/controlplane"
)

const (
	storedPizzas  = 5000
	getsARound    = 4000
	createsARound = 1000
	e2eClients    = 8
)

// endToEnd compares webhooks through a real kube-apiserver: no webhooks, those of crdkit, and those
// of controller-runtime, with the same pizzas and the same functions. Pizzas are stored as v1beta1.
// They are read as v1alpha1, and created as v1beta1 through a mutating and a validating webhook.
func (b bench) endToEnd() error {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	cached, err := startPizzaServer(ctx)
	if errors.Is(err, controlplane.ErrNoBinaries) {
		fmt.Println("e2e needs the binaries of make controlplane")
		return nil
	}
	if err != nil {
		return err
	}
	defer cached.cp.Stop()
	uncached, err := startPizzaServer(ctx, controlplane.APIServerArgs("--watch-cache=false"))
	if err != nil {
		return err
	}
	defer uncached.cp.Stop()
	hooks, stopHooks, err := startHooks()
	if err != nil {
		return err
	}
	defer stopHooks()

	phases := []struct {
		name, title string
		run         func(*hook) (measure, error)
	}{
		{"list/cache", fmt.Sprintf("the first LIST of %d, when the watch cache is empty", storedPizzas), func(h *hook) (measure, error) { return cached.use(ctx, h) }},
		{"get", "GET", func(*hook) (measure, error) { return cached.get(ctx) }},
		{"create", "CREATE", func(*hook) (measure, error) { return cached.create(ctx) }},
		{"list/etcd", fmt.Sprintf("LIST of %d from etcd", storedPizzas), func(*hook) (measure, error) { return uncached.list(ctx) }},
	}
	measures := map[string][]measure{} // by phase and webhook, one a round
	for round := range b.rounds {
		for i := range hooks {
			h := hooks[(i+round)%len(hooks)]
			if _, err := uncached.use(ctx, h); err != nil {
				return fmt.Errorf("%s: %w", h.name, err)
			}
			for _, phase := range phases {
				before, err := h.used()
				if err != nil {
					return err
				}
				m, err := phase.run(h)
				if err != nil {
					return fmt.Errorf("%s: %s: %w", phase.name, h.name, err)
				}
				after, err := h.used()
				if err != nil {
					return err
				}
				m.cpu = (after.CPU - before.CPU).Seconds() / float64(m.objects)
				measures[phase.name+"/"+h.name] = append(measures[phase.name+"/"+h.name], m)
			}
			if err := cached.clear(ctx); err != nil {
				return err
			}
		}
	}

	fmt.Printf("through kube-apiserver, %d clients, medians of %d rounds:\n", e2eClients, b.rounds)
	for _, phase := range phases {
		fmt.Println(" ", phase.title)
		var all []measure // by webhook
		for _, h := range hooks {
			m := middle(measures[phase.name+"/"+h.name])
			all = append(all, m)
			fmt.Printf("    %-18s %9.1f µs an object, %6.1f µs of it CPU time of the webhook", h.name, m.each*1e6, m.cpu*1e6)
			if m.p99 > 0 {
				fmt.Printf(", %5.0f requests/s, p50 %6.2f ms, p99 %6.2f ms", 1/m.each, m.p50*1e3, m.p99*1e3)
			}
			fmt.Println()
		}
		none, ours, theirs := all[0], all[1], all[2]
		fmt.Printf("    webhooks take %.1f µs an object with crdkit, %.1f µs with controller-runtime\n", (ours.each-none.each)*1e6, (theirs.each-none.each)*1e6)
		ratio("e2e/"+phase.name, theirs.each/ours.each)
		ratio("e2e/"+phase.name+"/cpu", theirs.cpu/ours.cpu)
		if ours.p99 > 0 {
			ratio("e2e/"+phase.name+"/p99", theirs.p99/ours.p99)
		}
	}
	var peaks []float64
	for _, h := range hooks[1:] {
		u, err := h.used()
		if err != nil {
			return err
		}
		fmt.Printf("  %s: at most %.1f MiB resident\n", h.name, float64(u.Peak)/(1<<20))
		peaks = append(peaks, float64(u.Peak))
	}
	ratio("e2e/memory", peaks[1]/peaks[0])
	return nil
}

// measure is what a phase of a round has taken, in seconds.
type measure struct {
	objects  int
	each     float64 // for an object
	p50, p99 float64 // of the requests, if there were many
	cpu      float64 // of the webhook, for an object
}

// middle returns the medians of some rounds.
func middle(rounds []measure) measure {
	of := func(figure func(measure) float64) float64 {
		var all []float64
		for _, m := range rounds {
			all = append(all, figure(m))
		}
		slices.Sort(all)
		return all[len(all)/2]
	}
	return measure{
		each: of(func(m measure) float64 { return m.each }),
		p50:  of(func(m measure) float64 { return m.p50 }),
		p99:  of(func(m measure) float64 { return m.p99 }),
		cpu:  of(func(m measure) float64 { return m.cpu }),
	}
}

// hookNames are the commands of the webhooks, and their Services.
var hookNames = []string{"crdkit", "controllerruntime"}

// hook is a running webhook, or none if it has no URL.
type hook struct {
	name, url string // the name is that of its Service too
	port      int
	ca        []byte
	client    *http.Client
}

// startHooks starts the webhooks in processes of their own.
func startHooks() (hooks []*hook, stop func(), err error) {
	dir, err := os.MkdirTemp("", "e2e")
	if err != nil {
		return nil, nil, err
	}
	var started []*exec.Cmd
	stop = func() {
		for _, cmd := range started {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
		os.RemoveAll(dir)
	}
	defer func() {
		if err != nil {
			stop()
		}
	}()
	var hosts []string
	for _, name := range hookNames {
		hosts = append(hosts, name+".default.svc")
	}
	chain, key, err := cert.GenerateSelfSignedCertKey("127.0.0.1", nil, hosts)
	if err != nil {
		return nil, nil, err
	}
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "tls.crt"), chain, 0o600), os.WriteFile(filepath.Join(dir, "tls.key"), key, 0o600)); err != nil {
		return nil, nil, err
	}
	_, ca := pem.Decode(chain) // behind the leaf
	hooks = []*hook{{name: "none"}}
	for _, name := range hookNames {
		binary := filepath.Join(dir, name)
		if output, err := exec.Command("go", "build", "-o", binary, "./e2e/"+name).CombinedOutput(); err != nil {
			return nil, nil, fmt.Errorf("go build %s: %w\n%s", name, err, output)
		}
		port, err := controlplane.FreePort()
		if err != nil {
			return nil, nil, err
		}
		address := fmt.Sprintf("127.0.0.1:%d", port)
		cmd := exec.Command(binary, dir, address)
		cmd.Stderr = os.Stderr
		if err := cmd.Start(); err != nil {
			return nil, nil, err
		}
		started = append(started, cmd)
		h := &hook{name, "https://" + address, port, ca, &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}}
		hooks = append(hooks, h)
		if err := within(10*time.Second, func() error { _, err := h.used(); return err }); err != nil {
			return nil, nil, err
		}
	}
	return hooks, stop, nil
}

// used returns what the process of a webhook has used.
func (h *hook) used() (u e2e.Usage, err error) {
	if h.url == "" {
		return u, nil
	}
	resp, err := h.client.Get(h.url + "/usage")
	if err != nil {
		return u, err
	}
	defer resp.Body.Close()
	return u, json.NewDecoder(resp.Body).Decode(&u)
}

// within repeats a function until it succeeds.
func within(timeout time.Duration, f func() error) error {
	for begin := time.Now(); ; time.Sleep(time.Millisecond) {
		if err := f(); err == nil || time.Since(begin) > timeout {
			return err
		}
	}
}

// pizzaServer is a kube-apiserver with stored pizzas.
type pizzaServer struct {
	cp         *controlplane.ControlPlane
	host       string
	client     *http.Client
	definition apiextensionsv1.CustomResourceDefinition
	uses       int // how often use was called
}

const (
	definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	mutating    = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
	validating  = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
)

// pizzas returns the path of the pizzas of a namespace.
func pizzas(version schema.GroupVersion, namespace string) string {
	return "/apis/" + version.String() + "/namespaces/" + namespace + "/pizzas"
}

func newPizza(name, toppings string) []byte {
	spec := fmt.Sprintf(`{"toppings":[%s]}`, toppings)
	applied := fmt.Sprintf(`{"apiVersion":%q,"kind":"Pizza","metadata":{"annotations":{},"name":%q,"namespace":"default"},"spec":%s}`+"\n", v1beta1.GroupVersion, name, spec)
	return fmt.Appendf(nil, `{"apiVersion":%q,"kind":"Pizza","metadata":{"name":%q,"annotations":{"kubectl.kubernetes.io/last-applied-configuration":%q}},"spec":%s}`,
		v1beta1.GroupVersion, name, applied, spec)
}

func startPizzaServer(ctx context.Context, opts ...controlplane.Option) (s *pizzaServer, err error) {
	s = &pizzaServer{}
	if s.cp, err = controlplane.Start(ctx, opts...); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.cp.Stop())
		}
	}()
	config := s.cp.Config()
	s.host = config.Host
	if s.client, err = rest.HTTPClientFor(config); err != nil {
		return nil, err
	}
	text, err := os.ReadFile("../examples/pizza/config/crd/restaurant.programming-kubernetes.info_pizzas.yaml")
	if err != nil {
		return nil, err
	}
	if err := yaml.Unmarshal(text, &s.definition); err != nil {
		return nil, err
	}
	if err := s.send(ctx, http.MethodPost, definitions, s.definition); err != nil {
		return nil, err
	}
	namespace := corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "new"}}
	if err := s.send(ctx, http.MethodPost, "/api/v1/namespaces", namespace); err != nil {
		return nil, err
	}
	// To a webhook of a Service, the API server speaks HTTP/1.1, and to one at a URL of the local
	// host HTTP/2 (k8s.io/apiserver/pkg/util/webhook/client.go).
	for _, name := range hookNames {
		service := corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "localhost"}}
		if err := s.send(ctx, http.MethodPost, "/api/v1/namespaces/default/services", service); err != nil {
			return nil, err
		}
	}
	err = within(20*time.Second, func() error {
		_, err := s.request(ctx, http.MethodGet, pizzas(v1beta1.GroupVersion, "default"), nil)
		return err
	})
	if err != nil {
		return nil, err
	}
	_, err = repeat(ctx, storedPizzas, func(ctx context.Context, i int) error {
		_, err := s.request(ctx, http.MethodPost, pizzas(v1beta1.GroupVersion, "default"), newPizza(fmt.Sprint("margherita-", i), `{"name":"mozzarella"},{"name":"tomato"}`))
		return err
	})
	return s, err
}

// use makes the API server use a webhook. A change of the definition discards the watch caches of
// its versions, as a restart would. The measure is that of the first list.
func (s *pizzaServer) use(ctx context.Context, h *hook) (m measure, err error) {
	for _, path := range []string{mutating, validating} {
		if _, err := s.request(ctx, http.MethodDelete, path, nil); err != nil {
			return m, err
		}
	}
	err = within(20*time.Second, func() error {
		got, err := s.request(ctx, http.MethodPost, pizzas(v1beta1.GroupVersion, "new")+"?dryRun=All", newPizza("x", `{"name":"unknown"}`))
		if err == nil && !strings.Contains(string(got), "unknown") {
			err = fmt.Errorf("created %s without webhooks", got)
		}
		return err
	})
	if err != nil {
		return m, err
	}
	s.uses++
	mark := fmt.Sprint("use-", s.uses)
	d := s.definition.DeepCopy()
	d.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter}
	if h.url != "" {
		d.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.WebhookConverter, Webhook: &apiextensionsv1.WebhookConversion{
			ClientConfig:             &apiextensionsv1.WebhookClientConfig{Service: &apiextensionsv1.ServiceReference{Namespace: "default", Name: h.name, Path: new("/convert"), Port: new(int32(h.port))}, CABundle: h.ca},
			ConversionReviewVersions: []string{"v1"},
		}}
	}
	for i, v := range d.Spec.Versions {
		if v.Name == v1beta1.GroupVersion.Version { // its objects show which definition is in use
			v.Schema.OpenAPIV3Schema.Properties["mark"] = apiextensionsv1.JSONSchemaProps{Type: "string", Default: &apiextensionsv1.JSON{Raw: fmt.Appendf(nil, "%q", mark)}}
			d.Spec.Versions[i] = v
		}
	}
	old, err := s.request(ctx, http.MethodGet, definitions+"/"+d.Name, nil)
	if err != nil {
		return m, err
	}
	var now apiextensionsv1.CustomResourceDefinition
	if err := json.Unmarshal(old, &now); err != nil {
		return m, err
	}
	d.ResourceVersion = now.ResourceVersion
	if err := s.send(ctx, http.MethodPut, definitions+"/"+d.Name, d); err != nil {
		return m, err
	}
	err = within(20*time.Second, func() error {
		got, err := s.request(ctx, http.MethodGet, pizzas(v1beta1.GroupVersion, "default")+"/margherita-0", nil)
		if err == nil && !strings.Contains(string(got), mark) {
			err = fmt.Errorf("read %s by an earlier definition", got)
		}
		return err
	})
	if err != nil {
		return m, err
	}
	begin := time.Now()
	err = within(time.Minute, func() error { // the API server answers 429 until the cache is full
		_, err := s.request(ctx, http.MethodGet, pizzas(v1alpha1.GroupVersion, "default")+"?resourceVersion=0", nil)
		return err
	})
	m = measure{objects: storedPizzas, each: time.Since(begin).Seconds() / storedPizzas}
	if err != nil || h.url == "" {
		return m, err
	}
	return m, s.admit(ctx, h)
}

// admit registers the admission webhooks, and waits until they are called.
func (s *pizzaServer) admit(ctx context.Context, h *hook) error {
	none := admissionregistrationv1.SideEffectClassNone
	client := func(path string) admissionregistrationv1.WebhookClientConfig {
		return admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{Namespace: "default", Name: h.name, Path: &path, Port: new(int32(h.port))}, CABundle: h.ca}
	}
	rules := []admissionregistrationv1.RuleWithOperations{{
		Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
		Rule:       admissionregistrationv1.Rule{APIGroups: []string{v1beta1.GroupVersion.Group}, APIVersions: []string{v1beta1.GroupVersion.Version}, Resources: []string{"pizzas"}},
	}}
	name := metav1.ObjectMeta{Name: "pizzas.example.com"}
	err := errors.Join(
		s.send(ctx, http.MethodPost, validating, admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: name, Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: name.Name, ClientConfig: client("/validate"), Rules: rules, SideEffects: &none, AdmissionReviewVersions: []string{"v1"},
		}}}),
		s.send(ctx, http.MethodPost, mutating, admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: name, Webhooks: []admissionregistrationv1.MutatingWebhook{{
			Name: name.Name, ClientConfig: client("/mutate"), Rules: rules, SideEffects: &none, AdmissionReviewVersions: []string{"v1"},
		}}}),
	)
	if err != nil {
		return err
	}
	dry := pizzas(v1beta1.GroupVersion, "new") + "?dryRun=All"
	return within(20*time.Second, func() error {
		got, err := s.request(ctx, http.MethodPost, dry, newPizza("x", ""))
		if err != nil || !strings.Contains(string(got), `"tomato"`) {
			return fmt.Errorf("created %s without toppings: %w", got, err)
		}
		if got, err := s.request(ctx, http.MethodPost, dry, newPizza("x", `{"name":"unknown"}`)); err == nil {
			return fmt.Errorf("created %s without validation", got)
		}
		return nil
	})
}

// get reads pizzas, one a request.
func (s *pizzaServer) get(ctx context.Context) (measure, error) {
	return repeat(ctx, getsARound, func(ctx context.Context, i int) error {
		_, err := s.request(ctx, http.MethodGet, pizzas(v1alpha1.GroupVersion, "default")+fmt.Sprint("/margherita-", i), nil)
		return err
	})
}

// create creates pizzas, half of them without toppings.
func (s *pizzaServer) create(ctx context.Context) (measure, error) {
	toppings := []string{"", `{"name":"mozzarella"},{"name":"tomato"}`}
	return repeat(ctx, createsARound, func(ctx context.Context, i int) error {
		_, err := s.request(ctx, http.MethodPost, pizzas(v1beta1.GroupVersion, "new"), newPizza(fmt.Sprint("new-", i), toppings[i%2]))
		return err
	})
}

// clear deletes the pizzas that were created.
func (s *pizzaServer) clear(ctx context.Context) error {
	_, err := s.request(ctx, http.MethodDelete, pizzas(v1beta1.GroupVersion, "new"), nil)
	return err
}

// list reads all pizzas in one request.
func (s *pizzaServer) list(ctx context.Context) (measure, error) {
	begin := time.Now()
	_, err := s.request(ctx, http.MethodGet, pizzas(v1alpha1.GroupVersion, "default"), nil)
	return measure{objects: storedPizzas, each: time.Since(begin).Seconds() / storedPizzas}, err
}

// repeat calls a function n times, by several clients.
func repeat(ctx context.Context, n int, f func(context.Context, int) error) (measure, error) {
	latencies := make([]time.Duration, n)
	var next atomic.Int64
	clients, ctx := errgroup.WithContext(ctx)
	begin := time.Now()
	for range e2eClients {
		clients.Go(func() error {
			for i := int(next.Add(1) - 1); i < n; i = int(next.Add(1) - 1) {
				sent := time.Now()
				if err := f(ctx, i); err != nil {
					return err
				}
				latencies[i] = time.Since(sent)
			}
			return nil
		})
	}
	err := clients.Wait()
	took := time.Since(begin)
	slices.Sort(latencies)
	return measure{objects: n, each: took.Seconds() / float64(n), p50: latencies[n/2].Seconds(), p99: latencies[n*99/100].Seconds()}, err
}

// send sends an object as JSON.
func (s *pizzaServer) send(ctx context.Context, method, path string, object any) error {
	body, err := json.Marshal(object)
	if err == nil {
		_, err = s.request(ctx, method, path, body)
	}
	return err
}

// request returns the answer to a request, or an error if it is not one of success.
func (s *pizzaServer) request(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, method, s.host+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	resp, err := s.client.Do(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode >= 300 {
		err = fmt.Errorf("%s %s: %s: %.500s", method, path, resp.Status, answer)
	}
	return answer, err
}
