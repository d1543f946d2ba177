package replica_test

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/crdkit/crdkit/admission"
	"github.com/crdkit/crdkit/conversion"
	"github.com/crdkit/crdkit/scheme"
	"github.com/crdkit/crdkit/webhook"
	"github.com/crdkit/crdkit/webhook/metrics"
	"github.com/crdkit/crdkit/webhook/registration"
	"github.com/crdkit/crdkit/webhook/replica"
)

// A kubelet does not verify the certificate of what it probes.
var insecure = &tls.Config{InsecureSkipVerify: true}

// outside is a registration that does not know the operator's own namespace.
func outside(t *testing.T, opts ...registration.Option) *registration.Webhooks {
	t.Helper()
	registry := conversion.NewRegistry(runtime.NewScheme())
	spoke := schema.GroupVersionKind{Group: "example.com", Version: "v1alpha1", Kind: "Pizza"}
	check(t, conversion.AddFields(registry, spoke, "v1", conversion.Rename("spec.topping", "spec.toppings")))
	hooks, err := registration.New("pizza-operator", append([]registration.Option{
		registration.URL("https://127.0.0.1:9443"),
		registration.Definitions(definition("example.com")),
		registration.Conversion("/convert", conversion.NewHandler(registry)),
	}, opts...)...)
	check(t, err)
	return hooks
}

func TestMistakesAreFoundAtTheStartAllInOneErrorAndTheListenerIsClosed(t *testing.T) {
	ok := func(*http.Request) error { return nil }
	inside := registration.OwnNamespace("ns")
	pods, err := scheme.New(scheme.Functions(corev1.AddToScheme))
	check(t, err)
	registry := prometheus.NewRegistry()
	for name, c := range map[string]struct {
		hooks *registration.Webhooks
		opts  []replica.Option
		want  []string
	}{
		"no registration":             {nil, nil, []string{"the registration or the client configuration is nil"}},
		"no namespace for the Secret": {outside(t), nil, []string{"the Secret's namespace", "registration.OwnNamespace"}},
		"all that is nil": {outside(t, inside), []replica.Option{nil, replica.Certificates(nil, nil), replica.Handle("/a", nil), replica.Metrics(nil), replica.Ready("b", nil), replica.Informer("c", nil), replica.Controller(nil)},
			[]string{"an option is nil", "the certificates are nil", `the handler of "/a" is nil`, "the function of Metrics is nil", `the check "b" is nil`, "informer c is nil", "a controller is nil"}},
		"metrics that are taken": {outside(t, inside), []replica.Option{replica.Metrics(func(c webhook.Certificates) error {
			return errors.Join(metrics.Prometheus(registry, c), metrics.Prometheus(registry, c))
		})}, []string{"the metrics: duplicate metrics collector registration"}},
		"what is taken": {outside(t, inside), []replica.Option{replica.Handle("/healthz", http.NotFoundHandler()), replica.Handle("/a b c", http.NotFoundHandler()), replica.Handle("/convert", http.NotFoundHandler()), replica.Ready("shutdown", ok), replica.Ready("a", ok), replica.Ready("a", ok)},
			[]string{`the handler of "/healthz"`, `the handler of "/a b c"`, `the handler of "/convert"`, `two checks "shutdown"`, `two checks "a"`}},
		"a webhook where health is": {outside(t, inside, registration.Mutating("m.example.com", "/readyz", admission.NewHandler(pods, admission.Mutate(func(context.Context, *corev1.Pod) error { return nil })))), nil, []string{`the handler of "/readyz"`}},
	} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		check(t, err)
		err = replica.Run(t.Context(), &rest.Config{Host: "https://127.0.0.1:1"}, l, c.hooks, c.opts...)
		if err == nil {
			t.Errorf("%s: no error", name)
			continue
		}
		for _, line := range strings.Split(err.Error(), "\n") {
			if !strings.HasPrefix(line, "replica: ") && !strings.HasPrefix(line, "the Secret's") {
				t.Errorf("%s: the error has the line %q", name, line)
			}
		}
		for _, want := range c.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got %v, want %s", name, err, want)
			}
		}
		if _, err := l.Accept(); err == nil {
			t.Errorf("%s: the listener is open", name)
		}
	}
}

func TestAMistakeIsFoundWithoutAListenerToo(t *testing.T) {
	for name, hooks := range map[string]*registration.Webhooks{"and without a registration": nil, "and with one": outside(t)} {
		err := replica.Run(t.Context(), &rest.Config{Host: "https://127.0.0.1:1"}, nil, hooks)
		if err == nil || !strings.Contains(err.Error(), "the listener is nil") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// files are certificates and a CA bundle of which neither is the other.
type (
	files  struct{ webhook.Certificates }
	bundle struct{}
)

func (bundle) CABundle() ([]byte, <-chan struct{}) { return []byte("a CA"), nil }

func TestMetrics_SeeBundleOfAnotherSource(t *testing.T) {
	for name, b := range map[string]registration.Bundle{"a CA": bundle{}, "": nil} {
		got := ""
		err := replica.Run(t.Context(), &rest.Config{Host: "https://127.0.0.1:1"}, nil, outside(t), replica.Certificates(files{}, b),
			replica.Metrics(func(certs webhook.Certificates) error {
				if b, ok := certs.(registration.Bundle); ok {
					pem, _ := b.CABundle()
					got = string(pem)
				}
				return errors.New("seen")
			}))
		if err == nil || !strings.Contains(err.Error(), "replica: the metrics: seen") {
			t.Errorf("got %v", err)
		}
		if got != name {
			t.Errorf("the bundle is %q, want %q", got, name)
		}
	}
}
