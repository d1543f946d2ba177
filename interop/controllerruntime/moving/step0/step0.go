// Package step0 is where the story begins: controller-runtime's builder, defaulter, validator
// and conversion.
package step0

import (
	"context"
	"errors"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	v1 "github.com/crdkit/crdkit/interop/controllerruntime/moving/api/v1"
)

// Setup adds the webhooks of the Backup to a manager.
func Setup(mgr ctrl.Manager) error {
	return ctrl.NewWebhookManagedBy(mgr, &v1.Backup{}).
		WithDefaulter(defaulter{}).
		WithValidator(validator{}).
		Complete()
}

type defaulter struct{}

func (defaulter) Default(_ context.Context, b *v1.Backup) error {
	if b.Spec.Keep == 0 {
		b.Spec.Keep = 7
	}
	return nil
}

type validator struct{}

func (validator) ValidateCreate(_ context.Context, b *v1.Backup) (admission.Warnings, error) {
	if b.Spec.Keep > 365 {
		return nil, errors.New("spec.keep: a year is enough")
	}
	return nil, nil
}

func (validator) ValidateUpdate(ctx context.Context, old, b *v1.Backup) (admission.Warnings, error) {
	if b.Spec.Bucket != old.Spec.Bucket {
		return nil, errors.New("spec.bucket: cannot be changed")
	}
	return validator{}.ValidateCreate(ctx, b)
}

func (validator) ValidateDelete(context.Context, *v1.Backup) (admission.Warnings, error) {
	return nil, nil
}
