package conversion_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"k8s.io/klog/v2"

	"github.com/crdkit/crdkit/conversion"
	"github.com/crdkit/crdkit/test/expect"
	"github.com/crdkit/crdkit/test/logcheck"
)

// Strings of clients and functions are escaped in the log, and bounded there and in the answer.
func TestLogger_StringsOfClients(t *testing.T) {
	bad, err := json.Marshal(logcheck.Bad())
	expect.NoError(t, err)
	h := conversion.NewHandler(registry(t, func(_ context.Context, in *alpha, _ *beta) error {
		switch in.Spec.Toppings[0] {
		case "panic":
			panic(in.Name)
		default:
			return errors.New(in.Name)
		}
	}, nil))
	for name, body := range map[string]string{
		"a panic":         question("v1", "v1beta1", pizza("v1alpha1", `{"name":`+string(bad)+`,"namespace":`+string(bad)+`}`, `,"spec":{"toppings":["panic"]}`)),
		"an error":        question("v1", "v1beta1", pizza("v1alpha1", `{"name":`+string(bad)+`}`, `,"spec":{"toppings":["error"]}`)),
		"a kind":          question("v1", "v1beta1", `{"apiVersion":`+string(bad)+`,"kind":`+string(bad)+`,"metadata":{"name":`+string(bad)+`}}`),
		"a version":       strings.Replace(question("v1", "v1beta1", pizza("v1alpha1", `{"name":"x"}`, "")), `"restaurant.programming-kubernetes.info/v1beta1"`, string(bad), 1),
		"a UID":           strings.Replace(question("v1", "v1beta1", `{}`), `"u-1"`, string(bad), 1),
		"a review's kind": strings.Replace(question("v1", "v1beta1"), `"kind":"ConversionReview"`, `"kind":`+string(bad), 1),
	} {
		t.Run(name, func(t *testing.T) {
			logger, entries := logcheck.New(t)
			w := post(klog.NewContext(t.Context(), logger), h, body)
			var answer struct {
				Message  string
				Response struct{ Result struct{ Message string } }
			}
			expect.NoError(t, json.Unmarshal(w.Body.Bytes(), &answer))
			if got := answer.Message + answer.Response.Result.Message; got == "" || len(got) > 40<<10 {
				t.Errorf("the message has %d bytes: %.200s", len(got), got)
			}
			if entries() == 0 && w.Code != 400 {
				t.Error("nothing was logged")
			}
		})
	}
}
