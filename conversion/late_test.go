package conversion_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"k8s.io/klog/v2"

	"github.com/crdkit/crdkit/conversion"
	"github.com/crdkit/crdkit/examples/pizza/api/v1alpha1"
	"github.com/crdkit/crdkit/examples/pizza/api/v1beta1"
)

// within posts a review with a timeout.
func within(ctx context.Context, h http.Handler, timeout, body string) string {
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/?timeout="+timeout, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Body.String()
}

// A conversion that does not return is reported after the deadline, and not begun again for the same object.
func TestHandler_ConversionDoesNotReturn(t *testing.T) {
	good, evil := pizza("v1alpha1", `{"name":"good"}`, ``), pizza("v1alpha1", `{"name":"evil","namespace":"default"}`, ``)
	alone := func(body string) string { return body }
	for name, c := range map[string]struct {
		arrange func(string) string
		list    []string
		name    string
	}{
		"one":         {alone, []string{evil}, "Pizza default/evil"},
		"one, large":  {inParts, []string{evil}, "Pizza default/evil"},
		"many":        {alone, slices.Insert(slices.Repeat([]string{good}, 499), 250, evil), "Pizza good and others"},
		"in parallel": {inParts, slices.Insert(slices.Repeat([]string{good}, 499), 250, evil), "Pizza good and others"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			end, calls, observed, logged := make(chan struct{}), atomic.Int64{}, make(chan conversion.Observation, 100), make(chan string, 100)
			h := conversion.NewHandler(registry(t, func(_ context.Context, in *v1alpha1.Pizza, _ *v1beta1.Pizza) error {
				if in.Name == "evil" {
					calls.Add(1)
					<-end
				}
				return nil
			}, nil), conversion.Observe(func(o conversion.Observation) { observed <- o }))
			ctx := klog.NewContext(t.Context(), funcr.New(func(_, args string) { logged <- args }, funcr.Options{}))
			review := c.arrange(question("v1", "v1beta1", c.list...))

			begin, answered := time.Now(), make(chan string)
			go func() { answered <- within(ctx, h, "5s", review) }()
			want := "cannot convert " + c.name + " from restaurant.programming-kubernetes.info/v1alpha1 to restaurant.programming-kubernetes.info/v1beta1: " +
				"a conversion that was begun earlier has not returned"
			select {
			case got := <-logged:
				if !strings.Contains(got, want) {
					t.Errorf("logged %s, want %s", got, want)
				}
			case got := <-answered:
				t.Fatalf("answered without a report: %.300s", got)
			}
			if took := time.Since(begin); took < 5*time.Second || took > 20*time.Second {
				t.Errorf("the report took %s", took)
			}

			begin = time.Now()
			got := within(ctx, h, "30s", review)
			if !strings.Contains(got, want) {
				t.Errorf("the same list: got %.500s, want %s", got, want)
			}
			if took := time.Since(begin); took > 10*time.Second || calls.Load() != 1 {
				t.Errorf("the answer took %s, and %d calls", took, calls.Load())
			}
			if o := <-observed; o.Failed != v1alpha1.GroupVersion.WithKind("Pizza") || len(o.Objects) > 0 {
				t.Errorf("observed: %+v", o)
			}
			if got := within(ctx, h, "30s", c.arrange(question("v1", "v1beta1", good, good))); !strings.Contains(got, `"Success"`) {
				t.Errorf("a list without the object: %.300s", got)
			}

			close(end)
			<-answered
			if got := within(ctx, h, "30s", review); !strings.Contains(got, `"Success"`) {
				t.Errorf("after the conversion has returned: %.300s", got)
			}
		})
	}
}

// When one of two late conversions of an object returns, the other one is still late.
func TestHandler_TwoConversionsDoNotReturn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int64
		ends := []chan struct{}{make(chan struct{}), make(chan struct{})}
		h := conversion.NewHandler(registry(t, func(context.Context, *alpha, *beta) error {
			if n := int(calls.Add(1)); n <= len(ends) {
				<-ends[n-1]
			}
			return nil
		}, nil))
		review, answered := question("v1", "v1beta1", pizza("v1alpha1", `{"name":"evil"}`, "")), make(chan string, 2)
		for range ends {
			go func() { answered <- within(t.Context(), h, "5s", review) }()
		}
		time.Sleep(10 * time.Second)
		for i, want := range []string{"has not returned", `"Success"`} {
			close(ends[i])
			<-answered
			if got := within(t.Context(), h, "5s", review); !strings.Contains(got, want) {
				t.Errorf("after %d have returned: got %s, want %s", i+1, got, want)
			}
		}
	})
}

// A function that heeds its context says why it returned.
func TestHandler_ConversionHeedsContext(t *testing.T) {
	h := conversion.NewHandler(registry(t, func(ctx context.Context, _ *v1alpha1.Pizza, _ *v1beta1.Pizza) error {
		<-ctx.Done()
		return fmt.Errorf("asking the menu: %w", ctx.Err())
	}, nil))
	got := within(t.Context(), h, "200ms", question("v1", "v1beta1", pizza("v1alpha1", `{"name":"x"}`, ``)))
	if want := "v1beta1: asking the menu: context deadline exceeded"; !strings.Contains(got, want) {
		t.Errorf("got %s, want %s", got, want)
	}
}
