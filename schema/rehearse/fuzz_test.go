package rehearse_test

import (
	"encoding/json"
	"slices"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/crdkit/crdkit/schema"
	"github.com/crdkit/crdkit/schema/rehearse"
	"github.com/crdkit/crdkit/test/expect"
)

// FuzzRun checks that any text as an object, and as the answer of a webhook, ends in a report that
// can be encoded.
func FuzzRun(f *testing.F) {
	const head = `{"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1beta1","response":{"result":{"status":"Success"},"convertedObjects":[`
	f.Add(job("x", "v1", `{"a":"1","b":null}`), head+job("x", "v2", `{"a":"1"}`)+`]}}`)
	f.Add(job("x", "v1", `[]`), head+`null]}}`)
	f.Add("apiVersion: example.com/v1\nkind: Job\nmetadata: {name: x, labels: 1}\n", `{}`)
	f.Add(`{"apiVersion":"example.com/v1","kind":"Job","metadata":[]}`, `[`)
	old := definition(f, "v1*: a, b")
	crd := definition(f, "v1*: a", "v2: a").CustomResourceDefinition()
	crd.Spec.Conversion.Webhook.ConversionReviewVersions = []string{"v1beta1"} // of which no UID is checked
	now := compile(f, crd)
	f.Fuzz(func(t *testing.T, object, text string) {
		hook := answer(func([]byte) string { return text })
		report, err := rehearse.Run(t.Context(), release(nil, old), release(hook, now), objects(object), rehearse.Redact("spec.a", "metadata.labels[*]"))
		isInput := func(f rehearse.Finding) bool { return f.Step == rehearse.Input }
		if err != nil || (report.Objects == 1) == slices.ContainsFunc(report.Findings, isInput) {
			t.Fatalf("%q: %v, %d objects", object, err, report.Objects)
		}
		if _, err := json.Marshal(report); err != nil {
			t.Errorf("%q: %v", object, err)
		}
		for _, finding := range report.Findings {
			_ = finding.String()
		}
	})
}

func compile(f *testing.F, crd *apiextensionsv1.CustomResourceDefinition) *schema.Definition {
	f.Helper()
	d, err := schema.New(crd)
	expect.NoError(f, err)
	return d
}
