// Package v1beta1 is the old version of the Backup, with conversion methods that forget a field: they
// were complete until v1 got spec.encrypt, which v1beta1 does not have.
package v1beta1

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/conversion"

	v1 "github.com/crdkit/crdkit/interop/controllerruntime/moving/api/v1"
	"github.com/crdkit/crdkit/interop/controllerruntime/moving/api/v1beta1"
)

// AddToScheme adds the type to a scheme.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(v1beta1.GroupVersion, &Backup{})
	metav1.AddToGroupVersion(s, v1beta1.GroupVersion)
	return nil
}

// Backup is a Backup with other conversion methods.
type Backup v1beta1.Backup

// DeepCopyObject copies a Backup.
func (b *Backup) DeepCopyObject() runtime.Object {
	return (*Backup)((*v1beta1.Backup)(b).DeepCopyObject().(*v1beta1.Backup))
}

// ConvertTo converts to the hub.
func (b *Backup) ConvertTo(dst conversion.Hub) error {
	hub := dst.(*v1.Backup)
	b.ObjectMeta.DeepCopyInto(&hub.ObjectMeta)
	hub.Spec.Bucket, hub.Spec.Path, _ = strings.Cut(b.Spec.Target, "/")
	hub.Spec.Keep = b.Spec.Keep
	return nil
}

// ConvertFrom converts from the hub.
func (b *Backup) ConvertFrom(src conversion.Hub) error {
	hub := src.(*v1.Backup)
	hub.ObjectMeta.DeepCopyInto(&b.ObjectMeta)
	b.Spec.Target = hub.Spec.Bucket
	if hub.Spec.Path != "" {
		b.Spec.Target += "/" + hub.Spec.Path
	}
	b.Spec.Keep = hub.Spec.Keep
	return nil
}
