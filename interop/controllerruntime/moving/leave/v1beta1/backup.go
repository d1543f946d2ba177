// Package v1beta1 is the old version of the Backup, with conversion methods that still read the
// annotation of crdkit.
package v1beta1

import (
	"encoding/json"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/conversion"

	"github.com/crdkit/crdkit/conversion/lossless"
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

// dataAnnotation keeps the whole hub object, as MarshalData of cluster-api does.
const dataAnnotation = "cluster.x-k8s.io/conversion-data"

// ConvertTo converts to the hub.
func (b *Backup) ConvertTo(dst conversion.Hub) error {
	hub := dst.(*v1.Backup)
	b.ObjectMeta.DeepCopyInto(&hub.ObjectMeta)
	hub.Spec.Bucket, hub.Spec.Path, _ = strings.Cut(b.Spec.Target, "/")
	hub.Spec.Keep = b.Spec.Keep
	if data, ok := b.Annotations[dataAnnotation]; ok {
		var restored v1.Backup
		if err := json.Unmarshal([]byte(data), &restored); err != nil {
			return err
		}
		hub.Spec.Encrypt = restored.Spec.Encrypt
		delete(hub.Annotations, dataAnnotation)
	}
	return lossless.Restore(b, dst, lossless.HubCopy(dataAnnotation))
}

// ConvertFrom converts from the hub.
func (b *Backup) ConvertFrom(src conversion.Hub) error {
	hub := src.(*v1.Backup)
	hub.ObjectMeta.DeepCopyInto(&b.ObjectMeta)
	data, err := json.Marshal(&v1.Backup{Spec: hub.Spec})
	if err != nil {
		return err
	}
	if b.Annotations == nil {
		b.Annotations = map[string]string{}
	}
	b.Annotations[dataAnnotation] = string(data)
	b.Spec.Target = hub.Spec.Bucket
	if hub.Spec.Path != "" {
		b.Spec.Target += "/" + hub.Spec.Path
	}
	b.Spec.Keep = hub.Spec.Keep
	return nil
}
