package corpus_test

import (
	"testing"

	metav1 "github.com/crossplane/crossplane/apis/v2/pkg/meta/v1"
	metav1alpha1 "github.com/crossplane/crossplane/apis/v2/pkg/meta/v1alpha1"
	metav1beta1 "github.com/crossplane/crossplane/apis/v2/pkg/meta/v1beta1"
)

// crossplane returns the conversions of Crossplane, which goverter generates. No webhook serves them: the package
// manager calls them when it reads a package. The versions have the same fields.
func crossplane(t *testing.T) *project {
	t.Helper()
	p := newProject(t, metav1alpha1.AddToScheme, metav1beta1.AddToScheme, metav1.AddToScheme)
	const module, meta = "github.com/crossplane/crossplane", "cluster/meta/*.yaml"
	p.definitions = published(t, module+"/v2@v2.4.2", meta)
	p.releases = []string{"v1.18.0", "v2.0.0"}
	p.history["v1.18.0"] = published(t, module+"@v1.18.0", meta)
	p.history["v2.0.0"] = published(t, module+"/v2@v2.0.0", meta)
	addConvertible[*metav1alpha1.Configuration, *metav1.Configuration](p)
	addConvertible[*metav1alpha1.Provider, *metav1.Provider](p)
	addConvertible[*metav1beta1.Function, *metav1.Function](p)
	return p
}
