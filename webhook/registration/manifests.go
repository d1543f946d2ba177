package registration

import (
	"bytes"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// Manifests returns all that must be registered as YAML documents, for kubectl apply: the
// definitions in the order in which they were given, those that are converted with their
// conversion stanza, then the configurations of the mutating and of the validating webhooks.
//
// Without caBundle, no object has one, and requests that need the webhooks fail until
// somebody, such as [Webhooks.Reconcile], has put it there. See "Before the CA is known" in
// the package documentation. It is an error if caBundle holds something else than PEM
// certificates.
func (w *Webhooks) Manifests(caBundle []byte) ([]byte, error) {
	if len(caBundle) > 0 {
		if _, err := certificates(caBundle); err != nil {
			return nil, fmt.Errorf("registration: the CA bundle: %w", err)
		}
	}
	var all bytes.Buffer
	add := func(obj map[string]any) error {
		text, err := yaml.Marshal(obj)
		if err != nil {
			return fmt.Errorf("registration: %w", err)
		}
		all.WriteString("---\n")
		all.Write(text)
		return nil
	}
	for _, d := range w.definitions {
		i := slices.IndexFunc(w.objects, func(o *object) bool { return o.isDefinition() && !o.empty && o.name == d.Metadata.Name })
		obj := d.Object
		if i >= 0 {
			obj = d.with(w.objects[i].desired(caBundle, claim{}))
		}
		if err := add(obj); err != nil {
			return nil, err
		}
	}
	for _, o := range w.objects {
		if o.isDefinition() || o.empty {
			continue
		}
		if err := add(o.desired(caBundle, claim{})); err != nil {
			return nil, err
		}
	}
	return all.Bytes(), nil
}

// with returns a copy of the definition with the conversion stanza and the annotations of
// what is registered.
func (d *definition) with(desired map[string]any) map[string]any {
	u := (&unstructured.Unstructured{Object: d.Object}).DeepCopy()
	registered := &unstructured.Unstructured{Object: desired}
	annotations := u.GetAnnotations()
	for key, value := range registered.GetAnnotations() {
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[key] = value
	}
	u.SetAnnotations(annotations)
	u.Object["spec"].(map[string]any)["conversion"] = desired["spec"].(map[string]any)["conversion"]
	return u.Object
}
