package metrics_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/crdkit/crdkit/conversion"
	"github.com/crdkit/crdkit/conversion/metrics"
	"github.com/crdkit/crdkit/examples/pizza/api/v1alpha1"
	"github.com/crdkit/crdkit/examples/pizza/api/v1beta1"
	"github.com/crdkit/crdkit/test/expect"
)

func handler(t *testing.T, opts ...conversion.Option) http.Handler {
	t.Helper()
	s := runtime.NewScheme()
	s.AddKnownTypes(v1alpha1.GroupVersion, &v1alpha1.Pizza{})
	s.AddKnownTypes(v1beta1.GroupVersion, &v1beta1.Pizza{})
	reg := conversion.NewRegistry(s)
	err := conversion.AddSpoke(reg,
		func(_ context.Context, in *v1alpha1.Pizza, _ *v1beta1.Pizza) error {
			if in.Name == "bad" {
				return errors.New("out of flour")
			}
			return nil
		},
		func(context.Context, *v1beta1.Pizza, *v1alpha1.Pizza) error { return nil })
	expect.NoError(t, err)
	return conversion.NewHandler(reg, opts...)
}

func ask(h http.Handler, objects ...string) {
	body := fmt.Sprintf(`{"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1","request":{"uid":"1","desiredAPIVersion":"%s","objects":[%s]}}`,
		v1beta1.GroupVersion, strings.Join(objects, ","))
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	h.ServeHTTP(httptest.NewRecorder(), r)
}

func pizza(version, name string) string {
	return fmt.Sprintf(`{"apiVersion":"%s/%s","kind":"Pizza","metadata":{"name":%q}}`, v1beta1.GroupVersion.Group, version, name)
}

func TestPrometheus_CountsReviewsAndObjects(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	option, err := metrics.Prometheus(registry)
	expect.NoError(t, err)
	h := handler(t, option)
	ask(h, pizza("v1alpha1", "a"), pizza("v1alpha1", "c"))
	ask(h, pizza("v1beta1", "b"))
	ask(h, pizza("v1alpha1", "a"))
	ask(h, pizza("v1alpha1", "a"), pizza("v1alpha1", "bad"))
	ask(h, `{"apiVersion":"made.up/v1","kind":"Thing"}`)
	want := `
# HELP crdkit_conversion_failures_total ConversionReviews that failed, by the first object that failed.
# TYPE crdkit_conversion_failures_total counter
crdkit_conversion_failures_total{from="",group="",kind="",to="v1beta1"} 1
crdkit_conversion_failures_total{from="v1alpha1",group="restaurant.programming-kubernetes.info",kind="Pizza",to="v1beta1"} 1
# HELP crdkit_conversion_objects_total Objects that were converted or had the version already.
# TYPE crdkit_conversion_objects_total counter
crdkit_conversion_objects_total{from="v1alpha1",group="restaurant.programming-kubernetes.info",kind="Pizza",to="v1beta1"} 3
crdkit_conversion_objects_total{from="v1beta1",group="restaurant.programming-kubernetes.info",kind="Pizza",to="v1beta1"} 1
# HELP crdkit_conversion_reviews_total ConversionReviews, by result.
# TYPE crdkit_conversion_reviews_total counter
crdkit_conversion_reviews_total{result="failure"} 2
crdkit_conversion_reviews_total{result="success"} 3
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want),
		"crdkit_conversion_reviews_total", "crdkit_conversion_objects_total", "crdkit_conversion_failures_total"); err != nil {
		t.Error(err)
	}
	families, err := registry.Gather()
	expect.NoError(t, err)
	durations := map[string]uint64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			if h := m.GetHistogram(); h != nil {
				var labels []string
				for _, l := range m.GetLabel() {
					labels = append(labels, l.GetValue())
				}
				durations[strings.Join(labels, " ")] = h.GetSampleCount()
			}
		}
	}
	if diff := cmp.Diff(map[string]uint64{"v1alpha1 restaurant.programming-kubernetes.info Pizza v1beta1": 3, "v1beta1 restaurant.programming-kubernetes.info Pizza v1beta1": 1, "   v1beta1": 1}, durations); diff != "" {
		t.Errorf("the durations by from, group, kind and to (-want +got):\n%s", diff)
	}
}

// The same metrics twice are an error.
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
	option, err := metrics.Prometheus(registry)
	if err != nil {
		panic(err)
	}
	h := handler(&testing.T{}, option)
	ask(h, pizza("v1alpha1", "a"), pizza("v1alpha1", "b"))
	fmt.Println(testutil.GatherAndCount(registry, "crdkit_conversion_objects_total"))
	// Output: 1 <nil>
}
