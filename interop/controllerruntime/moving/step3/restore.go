package step3

import (
	"encoding/json"

	v1 "github.com/crdkit/crdkit/interop/controllerruntime/moving/api/v1"
	"github.com/crdkit/crdkit/interop/controllerruntime/moving/api/v1beta1"
)

// restore reads the annotation of earlier releases, as long as there may be objects
// with it: those that are stored in v1beta1, and manifests that were read from the cluster.
func restore(in *v1beta1.Backup, out *v1.Backup) error {
	const annotation = "cluster.x-k8s.io/conversion-data"
	data, ok := in.Annotations[annotation]
	if !ok {
		return nil
	}
	var restored v1.Backup
	if err := json.Unmarshal([]byte(data), &restored); err != nil {
		return err
	}
	out.Spec.Encrypt = restored.Spec.Encrypt
	delete(out.Annotations, annotation)
	return nil
}
