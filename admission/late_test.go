package admission_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/crdkit/crdkit/admission"
	"github.com/crdkit/crdkit/examples/pizza/api/v1beta1"
)

// A function that heeds its context says why it returned.
func TestHandler_FunctionHeedsContext(t *testing.T) {
	h := admission.NewHandler(pizzaScheme(t), admission.Mutate(func(ctx context.Context, _ *v1beta1.Pizza) error {
		<-ctx.Done()
		return fmt.Errorf("asking the menu: %w", ctx.Err())
	}))
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/?timeout=200ms", strings.NewReader(request{object: pizza("v1beta1", "")}.String()))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if want := "Pizza default/margherita: asking the menu: context deadline exceeded"; w.Code != http.StatusGatewayTimeout || !strings.Contains(w.Body.String(), want) {
		t.Errorf("got %d %s, want 504 and %s", w.Code, w.Body, want)
	}
}
