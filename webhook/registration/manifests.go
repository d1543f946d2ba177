package registration

import (
	"bytes"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/yaml"
)

// Manifests returns all that must be registered as YAML documents, for kubectl apply: the
// definitions in the order in which they were given, those that are converted with their
// conversion stanza, then the configurations of the mutating and of the validating webhooks.
//
// Without caBundle, no object has one, and requests that need the webhooks fail until
// somebody, such as [Webhooks.Inject], has put it there. See "Before the CA is known" in
// the package documentation. It is an error if caBundle has no PEM certificates.
func (w *Webhooks) Manifests(caBundle []byte) ([]byte, error) {
	if len(caBundle) > 0 {
		if _, err := cert.ParseCertsPEM(caBundle); err != nil {
			return nil, fmt.Errorf("registration: CA bundle: %w", err)
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
		obj := d.Object
		for _, o := range w.objects {
			if o.kind == definitionKind && o.declared != nil && o.name == d.Metadata.Name {
				obj = d.with(o.manifest(caBundle))
			}
		}
		if err := add(obj); err != nil {
			return nil, err
		}
	}
	for _, o := range w.objects {
		if o.kind == definitionKind || o.declared == nil {
			continue
		}
		if err := add(o.manifest(caBundle)); err != nil {
			return nil, err
		}
	}
	return all.Bytes(), nil
}

// with returns a copy of the definition with the conversion stanza and the annotations that are
// declared.
func (d *definition) with(declared map[string]any) map[string]any {
	u := (&unstructured.Unstructured{Object: d.Object}).DeepCopy()
	annotations := map[string]string{}
	maps.Copy(annotations, u.GetAnnotations())
	maps.Copy(annotations, (&unstructured.Unstructured{Object: declared}).GetAnnotations())
	if len(annotations) > 0 {
		u.SetAnnotations(annotations)
	}
	u.Object["spec"].(map[string]any)["conversion"] = declared["spec"].(map[string]any)["conversion"]
	return u.Object
}
