package migrate

import (
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// A checkpoint holds for one state of the definition.
func TestCheckpoint_ChangedDefinition(t *testing.T) {
	crd := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Generation: 3, UID: "u", Annotations: map[string]string{
			checkpointAnnotation: `{"storageVersion":"v1","resourceVersion":"12","generation":3,"uid":"u","propagationDelay":"1m10s"}`,
		}},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1", Storage: true}}},
	}
	if got := newDefinition(crd).checkpoint(time.Minute); got != "12" {
		t.Errorf("got %q", got)
	}
	for name, change := range map[string]func(*apiextensionsv1.CustomResourceDefinition){
		"another generation":      func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Generation++ },
		"another definition":      func(crd *apiextensionsv1.CustomResourceDefinition) { crd.UID = "w" },
		"another storage version": func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Spec.Versions[0].Name = "v2" },
		"a resourceVersion that is none": func(crd *apiextensionsv1.CustomResourceDefinition) {
			crd.Annotations[checkpointAnnotation] = strings.Replace(crd.Annotations[checkpointAnnotation], "12", "0x12", 1)
		},
		"a shorter wait": func(crd *apiextensionsv1.CustomResourceDefinition) {
			crd.Annotations[checkpointAnnotation] = strings.Replace(crd.Annotations[checkpointAnnotation], "1m10s", "59s", 1)
		},
		"no annotation": func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Annotations = nil },
		"nonsense":      func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Annotations[checkpointAnnotation] = "{" },
	} {
		other := crd.DeepCopy()
		change(other)
		if got := newDefinition(other).checkpoint(time.Minute); got != "" {
			t.Errorf("%s: got %q", name, got)
		}
	}
}

func FuzzCheckpoint(f *testing.F) {
	f.Add(`{"storageVersion":"v1","resourceVersion":"12","generation":3,"uid":"u","propagationDelay":"1m10s"}`)
	f.Add(`{"storageVersion":"v1","resourceVersion":"-1","generation":3,"uid":"u","propagationDelay":"1m10s"}`)
	f.Add(`[`)
	f.Fuzz(func(t *testing.T, text string) {
		d := newDefinition(&apiextensionsv1.CustomResourceDefinition{
			ObjectMeta: metav1.ObjectMeta{Generation: 3, UID: "u", Annotations: map[string]string{checkpointAnnotation: text}},
			Spec:       apiextensionsv1.CustomResourceDefinitionSpec{Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1", Storage: true}}},
		})
		if got := d.checkpoint(time.Minute); got != "" {
			if _, err := resourceversion.CompareResourceVersion(got, "1"); err != nil {
				t.Error(err)
			}
		}
	})
}
