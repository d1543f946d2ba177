// Package leave is the operator on its way back from crdkit, which docs/leaving.md describes: its last
// release with crdkit, and the release after it, whose webhooks controller-runtime serves with
// certificates in files.
package leave

import (
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/crdkit/crdkit/admission"
	"github.com/crdkit/crdkit/conversion"
	v1 "github.com/crdkit/crdkit/interop/controllerruntime/moving/api/v1"
	"github.com/crdkit/crdkit/interop/controllerruntime/moving/leave/v1beta1"
	"github.com/crdkit/crdkit/interop/controllerruntime/moving/step0"
	"github.com/crdkit/crdkit/interop/controllerruntime/moving/step2"
	"github.com/crdkit/crdkit/interop/controllerruntime/moving/step3"
	"github.com/crdkit/crdkit/webhook/registration"
)

// AddToScheme adds all versions of the Backup to a scheme.
func AddToScheme(s *runtime.Scheme) error {
	if err := v1.AddToScheme(s); err != nil {
		return err
	}
	return v1beta1.AddToScheme(s)
}

// Hooks declares the webhooks of the last release with crdkit. Without admission.ConvertWith, their
// rules name v1 alone, and the webhooks of controller-runtime can take their place.
func Hooks(s *runtime.Scheme, definition []byte) (*registration.Webhooks, error) {
	reg, err := step3.Registry(s)
	if err != nil {
		return nil, err
	}
	return registration.New("backup-operator",
		registration.Service("backup-system", "backup-operator"),
		registration.CRDs(definition),
		registration.Conversion("/convert", conversion.NewHandler(reg)),
		registration.Mutating("default.backups.example.com", "/mutate-example-com-v1-backup",
			admission.NewHandler(s, admission.Mutate(step2.KeepAWeek))),
		registration.Validating("validate.backups.example.com", "/validate-example-com-v1-backup",
			admission.NewHandler(s, admission.Validate(step2.AYearIsEnough), admission.ValidateUpdate(step2.BucketStays))),
	)
}

// Setup adds the webhooks of the Backup to a manager.
func Setup(mgr ctrl.Manager) error { return step0.Setup(mgr) }
