package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// answer returns the converted objects as values, for a comparison.
func answer(t testing.TB, h http.Handler, body []byte) []any {
	t.Helper()
	r := httptest.NewRequest(http.MethodPost, "/convert", bytes.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	var got apiextensionsv1.ConversionReview
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || got.Response == nil || got.Response.Result.Status != "Success" {
		t.Fatalf("no answer: %v: %.500s", err, w.Body)
	}
	var objects []any
	for _, o := range got.Response.ConvertedObjects {
		var v any
		if err := json.Unmarshal(o.Raw, &v); err != nil {
			t.Fatal(err)
		}
		objects = append(objects, v)
	}
	return objects
}

// TestBothConvertAlike keeps speed from coming out of leaving work undone.
func TestBothConvertAlike(t *testing.T) {
	for _, n := range []int{1, 100} {
		body := review(n, 0)
		ours, theirs := answer(t, crdkitConversion(), body), answer(t, peerConversion(), body)
		if len(ours) != n {
			t.Errorf("%d objects became %d", n, len(ours))
		}
		if diff := cmp.Diff(theirs, ours); diff != "" {
			t.Errorf("(-controller-runtime +crdkit):\n%s", diff)
		}
	}
	if size := len(pizza(0, 0)); size < 1200 || size > 1400 {
		t.Errorf("a pizza has %d bytes", size)
	}
}
