package metrics_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/crdkit/crdkit/admission"
	"github.com/crdkit/crdkit/admission/metrics"
	"github.com/crdkit/crdkit/examples/pizza/api/v1beta1"
	"github.com/crdkit/crdkit/test/expect"
)

func handler(opts ...admission.Option) http.Handler {
	s := runtime.NewScheme()
	s.AddKnownTypes(v1beta1.GroupVersion, &v1beta1.Pizza{})
	return admission.NewHandler(s, append(opts,
		admission.Mutate(func(_ context.Context, p *v1beta1.Pizza) error {
			switch p.Name {
			case "unlabelled":
				p.Labels = map[string]string{"size": "large"}
			case "broken":
				return errors.New("out of flour")
			}
			return nil
		}),
		admission.Validate(func(_ context.Context, p *v1beta1.Pizza) (field.ErrorList, error) {
			if p.Name == "hawaii" {
				return field.ErrorList{field.Forbidden(field.NewPath("metadata", "name"), "not in this house")}, nil
			}
			return nil, nil
		}))...)
}

func ask(h http.Handler, name, kind, version, subresource string) {
	gvk := fmt.Sprintf(`"group":%q,"version":%q,"kind":%q`, v1beta1.GroupVersion.Group, version, kind)
	body := fmt.Sprintf(`{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"1","operation":"CREATE","kind":{%s},"subResource":%q,
		"object":{"apiVersion":"%s/%s","kind":%q,"metadata":{"name":%q}}}}`, gvk, subresource, v1beta1.GroupVersion.Group, version, kind, name)
	post(h, body)
}

func post(h http.Handler, body string) {
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	h.ServeHTTP(httptest.NewRecorder(), r)
}

// Requests are counted by their outcomes.
func TestPrometheus_Counts(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	observe, err := metrics.Prometheus(registry)
	expect.NoError(t, err)
	one, other := handler(observe("one")), handler(observe("other"))
	for _, name := range []string{"margherita", "margherita", "unlabelled", "hawaii", "broken"} {
		ask(one, name, "Pizza", "v1beta1", "")
	}
	ask(one, "hawaii", "Pizza", "v1beta1", "status")
	ask(other, "margherita", "Pizza", "v1beta1", "")
	post(other, "nonsense")
	want := `
# HELP crdkit_admission_requests_total Admission requests, by decision.
# TYPE crdkit_admission_requests_total counter
crdkit_admission_requests_total{decision="allowed",group="restaurant.programming-kubernetes.info",kind="Pizza",operation="CREATE",subresource="",version="v1beta1",webhook="one"} 2
crdkit_admission_requests_total{decision="allowed",group="restaurant.programming-kubernetes.info",kind="Pizza",operation="CREATE",subresource="",version="v1beta1",webhook="other"} 1
crdkit_admission_requests_total{decision="allowed",group="restaurant.programming-kubernetes.info",kind="Pizza",operation="CREATE",subresource="status",version="v1beta1",webhook="one"} 1
crdkit_admission_requests_total{decision="denied",group="restaurant.programming-kubernetes.info",kind="Pizza",operation="CREATE",subresource="",version="v1beta1",webhook="one"} 1
crdkit_admission_requests_total{decision="patched",group="restaurant.programming-kubernetes.info",kind="Pizza",operation="CREATE",subresource="",version="v1beta1",webhook="one"} 1
crdkit_admission_requests_total{decision="undecided",group="",kind="",operation="",subresource="",version="",webhook="other"} 1
crdkit_admission_requests_total{decision="undecided",group="restaurant.programming-kubernetes.info",kind="Pizza",operation="CREATE",subresource="",version="v1beta1",webhook="one"} 1
`
	expect.NoError(t, testutil.GatherAndCompare(registry, strings.NewReader(want), "crdkit_admission_requests_total"))
	families, err := registry.Gather()
	expect.NoError(t, err)
	observed := 0
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			if h := metric.GetHistogram(); h != nil {
				observed += int(h.GetSampleCount())
				if h.GetSampleSum() <= 0 {
					t.Errorf("no time has passed for %v", metric.GetLabel())
				}
			}
		}
	}
	if observed != 8 {
		t.Errorf("the duration of %d requests was observed, want 8", observed)
	}
}

// Kinds and versions that clients make up become no labels.
func TestPrometheus_MadeUpLabels(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	observe, err := metrics.Prometheus(registry)
	expect.NoError(t, err)
	h := handler(observe("one"))
	for i := range 50 {
		ask(h, "x", fmt.Sprint("Kind", i), "v1beta1", "")
		ask(h, "x", "Pizza", fmt.Sprint("v", i+2), "")
		ask(h, "x", "Pizza", "v1beta1", fmt.Sprint("sub", i))
		post(h, fmt.Sprintf(`{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"1","operation":"OP%d"}}`, i))
	}
	want := `
# HELP crdkit_admission_requests_total Admission requests, by decision.
# TYPE crdkit_admission_requests_total counter
crdkit_admission_requests_total{decision="allowed",group="restaurant.programming-kubernetes.info",kind="Pizza",operation="CREATE",subresource="other",version="v1beta1",webhook="one"} 50
crdkit_admission_requests_total{decision="undecided",group="",kind="",operation="",subresource="",version="",webhook="one"} 50
crdkit_admission_requests_total{decision="undecided",group="",kind="",operation="CREATE",subresource="",version="",webhook="one"} 50
crdkit_admission_requests_total{decision="undecided",group="restaurant.programming-kubernetes.info",kind="Pizza",operation="CREATE",subresource="",version="",webhook="one"} 50
`
	expect.NoError(t, testutil.GatherAndCompare(registry, strings.NewReader(want), "crdkit_admission_requests_total"))
	if n, err := testutil.GatherAndCount(registry, "crdkit_admission_duration_seconds"); err != nil || n != 4 {
		t.Errorf("there are %d histograms: %v", n, err)
	}
}

func TestPrometheus_RegisteredTwice(t *testing.T) {
	registry := prometheus.NewRegistry()
	_, err := metrics.Prometheus(registry)
	expect.NoError(t, err)
	var already prometheus.AlreadyRegisteredError
	if _, err := metrics.Prometheus(registry); !errors.As(err, &already) {
		t.Errorf("got %v", err)
	}
}

func Example() {
	registry := prometheus.NewRegistry()
	observe, err := metrics.Prometheus(registry)
	if err != nil {
		panic(err)
	}
	h := handler(observe("pizzas"))
	ask(h, "margherita", "Pizza", "v1beta1", "")
	ask(h, "hawaii", "Pizza", "v1beta1", "")
	fmt.Println(testutil.GatherAndCount(registry, "crdkit_admission_requests_total")) // allowed and denied
	// Output: 2 <nil>
}
