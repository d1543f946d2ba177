package equivalence

import (
	"errors"
	"testing"

	"github.com/crdkit/crdkit/schema"
)

// Any text is read as the manifests of a release, or gives an error; what is read can be prepared for counting.
func FuzzManifests(f *testing.F) {
	f.Add([]byte("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n---\n{kind: A}"))
	f.Add([]byte(`{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicy, metadata: {name: a}, spec: {paramKind: {kind: A}, validations: [{expression: "object.a == 'b' && size(object.c) > 2"}, 1]}}
---
{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicyBinding, metadata: {name: a}, spec: {policyName: a, paramRef: {name: b}}}`))
	f.Add([]byte(`{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingWebhookConfiguration, metadata: {name: a}, webhooks: [{name: a, clientConfig: {url: "https://a/b"}, matchConditions: [{expression: "a.b"}]}, "b"]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		s := &side{name: "before", release: schema.Release{Manifests: map[string][]byte{"a.yaml": text}}}
		if err := errors.Join(s.parse(), s.checkBindings()); err != nil {
			return
		}
		s.countWebhooks()
		s.probes()
		for _, m := range s.manifests {
			for _, expression := range expressions(m.Object) {
				expressionHints(expression)
			}
		}
	})
}
