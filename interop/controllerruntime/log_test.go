package controllerruntime_test

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/crdkit/crdkit/admission"
	"github.com/crdkit/crdkit/conversion"
)

// kubebuilder's logger adds a stack to each error, which tells nothing about a review that failed
// because of its object.
func TestLog_FailedReviewIsOneLine(t *testing.T) {
	fail := admission.Validate(func(context.Context, *Hub) (field.ErrorList, error) {
		return nil, errors.New("no connection")
	})
	deny := admission.Validate(func(context.Context, *Hub) (field.ErrorList, error) {
		return field.ErrorList{field.Required(field.NewPath("spec"), "")}, nil
	})
	const spoke, hub = `{"apiVersion":"example.com/v1","kind":"Server","metadata":{"name":"x"}}`, `{"apiVersion":"example.com/v2","kind":"Server","metadata":{"name":"x"}}`
	convert := `{"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1","request":{"uid":"u","desiredAPIVersion":"example.com/v2","objects":[` + spoke + `]}}`
	admit := `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"u","operation":"CREATE","name":"x",` +
		`"kind":{"group":"example.com","version":"v2","kind":"Server"},"object":` + hub + `}}`
	for name, c := range map[string]struct {
		handler       http.Handler
		request, want string
	}{
		"conversion": {conversion.NewHandler(registry(t)), convert, "cannot convert Server x"},
		"undecided":  {admission.NewHandler(registry(t).Scheme(), fail), admit, "no connection"},
		"denied":     {admission.NewHandler(registry(t).Scheme(), fail, deny), admit, "no connection"},
	} {
		var out bytes.Buffer
		logger := zap.New(zap.UseDevMode(true), zap.WriteTo(&out))
		r := httptest.NewRequestWithContext(klog.NewContext(t.Context(), logger), http.MethodPost, "/", strings.NewReader(c.request))
		r.Header.Set("Content-Type", "application/json")
		c.handler.ServeHTTP(httptest.NewRecorder(), r)
		if got := out.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, c.want) {
			t.Errorf("%s: got %s", name, got)
		}
	}
}
