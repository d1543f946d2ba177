package schema

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
)

// warnOfFinalizers warns of finalizers that are new and have no good name: it is
// generateWarningsFromObj of customresource/strategy.go and validateKubeFinalizerName of
// validator.go.
func (r *request) warnOfFinalizers(finalizers, old []string) {
	standard := []string{metav1.FinalizerOrphanDependents, metav1.FinalizerDeleteDependents, string(corev1.FinalizerKubernetes)}
	for _, name := range sets.List(sets.New(finalizers...).Difference(sets.New(old...))) {
		for _, msg := range utilvalidation.IsQualifiedName(name) {
			r.AddWarning("", fmt.Sprintf("metadata.finalizers: %q: %s", name, msg))
		}
		switch {
		case strings.Contains(name, "/") || slices.Contains(standard, name):
		case strings.Contains(name, "."):
			r.AddWarning("", fmt.Sprintf("metadata.finalizers: %q: prefer a domain-qualified finalizer name including a path (/) to avoid accidental conflicts with other finalizer writers", name))
		default:
			r.AddWarning("", fmt.Sprintf("metadata.finalizers: %q: prefer a domain-qualified finalizer name to avoid accidental conflicts with other finalizer writers", name))
		}
	}
}
