package scheme

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// APIServer adds the types of the core group that k8s.io/apiserver encodes and decodes for every
// group: Status, the options of requests, and the types of discovery.
func APIServer() Option {
	return Functions(func(s *runtime.Scheme) error {
		core := schema.GroupVersion{Version: "v1"}
		metav1.AddToGroupVersion(s, core)
		s.AddUnversionedTypes(core, &metav1.Status{}, &metav1.APIVersions{}, &metav1.APIGroupList{}, &metav1.APIGroup{}, &metav1.APIResourceList{})
		return nil
	})
}
