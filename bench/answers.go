package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// compareAnswers returns an error if the results of the two sides differ, because a side that
// omits work is faster.
func compareAnswers(ours, theirs http.Handler) error {
	for _, n := range []int{1, 100, 1000} {
		body := review(n, 2<<10)
		got, err := answer(ours, body)
		if err != nil {
			return fmt.Errorf("crdkit: %w", err)
		}
		want, err := answer(theirs, body)
		if err != nil {
			return fmt.Errorf("controller-runtime: %w", err)
		}
		if len(got) != n {
			return fmt.Errorf("%d objects became %d", n, len(got))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			return fmt.Errorf("the two sides differ (-controller-runtime +crdkit):\n%s", diff)
		}
	}
	return nil
}

// answer returns the converted objects as values.
func answer(h http.Handler, body []byte) ([]any, error) {
	r := httptest.NewRequest(http.MethodPost, "/convert", bytes.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	var got apiextensionsv1.ConversionReview
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
		return nil, err
	}
	if got.Response == nil || got.Response.Result.Status != "Success" {
		return nil, fmt.Errorf("no success: %.500s", w.Body)
	}
	var objects []any
	for _, o := range got.Response.ConvertedObjects {
		var v any
		if err := json.Unmarshal(o.Raw, &v); err != nil {
			return nil, err
		}
		objects = append(objects, v)
	}
	return objects, nil
}
