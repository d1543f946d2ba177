package step3

import (
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/crdkit/crdkit/admission"
	"github.com/crdkit/crdkit/conversion"
	"github.com/crdkit/crdkit/interop/controllerruntime/moving/step2"
)

// Setup adds the webhooks of the Backup to a manager.
func Setup(mgr ctrl.Manager) error {
	reg, err := Registry(mgr.GetScheme())
	if err != nil {
		return err
	}
	server := mgr.GetWebhookServer()
	server.Register("/convert", conversion.NewHandler(reg))
	server.Register("/mutate-example-com-v1-backup", admission.NewHandler(mgr.GetScheme(),
		admission.ConvertWith(reg), admission.Mutate(step2.KeepAWeek)))
	server.Register("/validate-example-com-v1-backup", admission.NewHandler(mgr.GetScheme(),
		admission.ConvertWith(reg), admission.Validate(step2.AYearIsEnough), admission.ValidateUpdate(step2.BucketStays)))
	return nil
}
