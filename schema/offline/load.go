package offline

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/crdkit/crdkit/schema/internal/pipeline"
)

// load puts an object into the store as it is, for [Stored].
func (r *Resource) load(text []byte) error {
	if !utilyaml.IsJSONBuffer(text) {
		var err error
		if text, err = yaml.YAMLToJSON(text); err != nil {
			return err
		}
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(text); err != nil {
		return err
	}
	// A server does not let a definition lose a version in which objects may be stored
	// (status.storedVersions).
	if gvk := u.GroupVersionKind(); gvk.GroupKind() != r.definition.GroupKind() || r.spec(gvk.Version) == nil {
		return fmt.Errorf("it is a %s, not a %s in one of the versions %s", gvk, r.definition.GroupKind(), strings.Join(r.definition.Versions(), ", "))
	}
	if u.GetName() == "" {
		return errors.New("it has no metadata.name")
	}
	switch {
	case !r.namespaced() && u.GetNamespace() != "":
		return fmt.Errorf("it is in the namespace %s, and %s are in none", u.GetNamespace(), r.crd.Spec.Names.Plural)
	case r.namespaced() && u.GetNamespace() == "":
		u.SetNamespace(metav1.NamespaceDefault)
	}
	// Every stored object has these.
	if u.GetUID() == "" {
		u.SetUID(r.uid())
	}
	if u.GetCreationTimestamp().Time.IsZero() {
		u.SetCreationTimestamp(metav1.NewTime(r.now()))
	}
	if u.GetGeneration() == 0 {
		u.SetGeneration(1)
	}
	pipeline.RemoveMetadata(u, "resourceVersion", "selfLink", "managedFields")
	if _, taken := r.objects[keyOf(u)]; taken {
		return fmt.Errorf("%s is there already", keyOf(u))
	}
	text, err := json.Marshal(u.Object)
	if err != nil {
		return err
	}
	r.version++
	r.objects[keyOf(u)] = record{text, r.version}
	return nil
}
