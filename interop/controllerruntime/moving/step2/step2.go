// Package step2 has functions in place of the defaulter and the validator, on the paths that
// the builder gave them.
package step2

import (
	"context"

	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/crdkit/crdkit/admission"
	"github.com/crdkit/crdkit/conversion"
	v1 "github.com/crdkit/crdkit/interop/controllerruntime/moving/api/v1"
	"github.com/crdkit/crdkit/interop/controllerruntime/moving/step1"
)

// Setup adds the webhooks of the Backup to a manager.
func Setup(mgr ctrl.Manager) error {
	reg, err := step1.Registry(mgr.GetScheme())
	if err != nil {
		return err
	}
	server := mgr.GetWebhookServer()
	server.Register("/convert", conversion.NewHandler(reg))
	server.Register("/mutate-example-com-v1-backup", admission.NewHandler(mgr.GetScheme(),
		admission.ConvertWith(reg), admission.Mutate(KeepAWeek)))
	server.Register("/validate-example-com-v1-backup", admission.NewHandler(mgr.GetScheme(),
		admission.ConvertWith(reg), admission.Validate(AYearIsEnough), admission.ValidateUpdate(BucketStays)))
	return nil
}

// KeepAWeek is the default.
func KeepAWeek(_ context.Context, b *v1.Backup) error {
	if b.Spec.Keep == 0 {
		b.Spec.Keep = 7
	}
	return nil
}

// AYearIsEnough is for creates and updates.
func AYearIsEnough(_ context.Context, b *v1.Backup) (errs field.ErrorList, _ error) {
	if b.Spec.Keep > 365 {
		errs = append(errs, field.Invalid(field.NewPath("spec", "keep"), b.Spec.Keep, "a year is enough"))
	}
	return errs, nil
}

// BucketStays is for updates.
func BucketStays(_ context.Context, b, old *v1.Backup) (field.ErrorList, error) {
	return validation.ValidateImmutableField(b.Spec.Bucket, old.Spec.Bucket, field.NewPath("spec", "bucket")), nil
}
