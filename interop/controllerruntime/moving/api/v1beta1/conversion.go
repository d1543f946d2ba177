package v1beta1

import (
	"encoding/json"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/conversion"

	v1 "github.com/crdkit/crdkit/interop/controllerruntime/moving/api/v1"
)

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
	return nil
}

// ConvertFrom converts from the hub.
func (b *Backup) ConvertFrom(src conversion.Hub) error {
	hub := src.(*v1.Backup)
	data, err := json.Marshal(&v1.Backup{Spec: hub.Spec})
	if err != nil {
		return err
	}
	hub.ObjectMeta.DeepCopyInto(&b.ObjectMeta)
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
