package offline_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/crdkit/crdkit/schema/offline"
)

func TestAHandlerMayUseTheResponseController(t *testing.T) {
	allow := answer(func(map[string]any) map[string]any { return map[string]any{"allowed": true} })
	r := newGadgets(t, offline.Mutate(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		c := http.NewResponseController(w)
		for name, err := range map[string]error{
			"SetReadDeadline": c.SetReadDeadline(time.Time{}), "SetWriteDeadline": c.SetWriteDeadline(time.Time{}), "EnableFullDuplex": c.EnableFullDuplex(),
		} {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		allow.ServeHTTP(w, req)
		if err := c.Flush(); err != nil {
			t.Error(err)
		}
		w.(http.Flusher).Flush()
	})))
	if _, err := r.Create(t.Context(), "v1", []byte(gadget("v1", "a", "", ""))); err != nil {
		t.Error(err)
	}
}

func TestAPanicHasItsStack(t *testing.T) {
	r := newGadgets(t, offline.Validate(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("gears") })))
	_, err := r.Create(t.Context(), "v1", []byte(gadget("v1", "a", "", "")))
	if !apierrors.IsInternalError(err) || !strings.Contains(err.Error(), "the handler panicked: gears\n") || !strings.Contains(err.Error(), "transport_test.go:") {
		t.Error(err)
	}
}

func TestAMuxWithoutAPathIsExplained(t *testing.T) {
	mux := http.NewServeMux()
	r := newGadgets(t, offline.Validate(mux))
	_, err := r.Create(t.Context(), "v1", []byte(gadget("v1", "a", "", "")))
	if want := "the handler has answered 404: a webhook without a clientConfig is called at the path /, so give it a clientConfig or the handler alone"; err == nil || !strings.Contains(err.Error(), want) {
		t.Error(err)
	}
	r = newGadgets(t, offline.Validate(mux, admissionregistrationv1.ValidatingWebhook{
		Name: "v.example.com", ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: new("https://x/validate")},
	}))
	_, err = r.Create(t.Context(), "v1", []byte(gadget("v1", "a", "", "")))
	if want := `failed calling webhook "v.example.com": failed to call webhook: the server could not find the requested resource`; err == nil || !strings.Contains(err.Error(), want) {
		t.Error(err)
	}
}
