// Package step1 converts with crdkit, by the methods that the types have. Everything else is
// as before.
package step1

import (
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/crdkit/crdkit/conversion"
	"github.com/crdkit/crdkit/interop/controllerruntime"
	v1 "github.com/crdkit/crdkit/interop/controllerruntime/moving/api/v1"
	"github.com/crdkit/crdkit/interop/controllerruntime/moving/api/v1beta1"
	"github.com/crdkit/crdkit/interop/controllerruntime/moving/step0"
)

// Registry knows how Backups convert.
func Registry(s *runtime.Scheme) (*conversion.Registry, error) {
	reg := conversion.NewRegistry(s)
	return reg, controllerruntime.AddSpoke[*v1beta1.Backup, *v1.Backup](reg)
}

// Setup adds the webhooks of the Backup to a manager. The builder leaves a path alone that has
// a handler already.
func Setup(mgr ctrl.Manager) error {
	reg, err := Registry(mgr.GetScheme())
	if err != nil {
		return err
	}
	mgr.GetWebhookServer().Register("/convert", conversion.NewHandler(reg))
	return step0.Setup(mgr)
}
