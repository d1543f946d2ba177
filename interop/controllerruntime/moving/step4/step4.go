// Package step4 needs no certificate manager, and no manifests of webhooks: the operator makes
// its certificates, and tells the API server about its webhooks.
package step4

import (
	"context"
	"net"

	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/crdkit/crdkit/admission"
	"github.com/crdkit/crdkit/conversion"
	"github.com/crdkit/crdkit/interop/controllerruntime/moving/step2"
	"github.com/crdkit/crdkit/interop/controllerruntime/moving/step3"
	"github.com/crdkit/crdkit/webhook/registration"
	"github.com/crdkit/crdkit/webhook/replica"
)

// Hooks declares the webhooks of the Backup, for its definition.
func Hooks(s *runtime.Scheme, definition []byte) (*registration.Webhooks, error) {
	reg, err := step3.Registry(s)
	if err != nil {
		return nil, err
	}
	return registration.New("backup-operator",
		registration.Service("backup-system", "backup-operator"),
		registration.Definitions(definition),
		registration.Conversion("/convert", conversion.NewHandler(reg)),
		registration.Mutating("default.backups.example.com", "/mutate-example-com-v1-backup",
			admission.NewHandler(s, admission.ConvertWith(reg), admission.Mutate(step2.KeepAWeek))),
		registration.Validating("validate.backups.example.com", "/validate-example-com-v1-backup",
			admission.NewHandler(s, admission.ConvertWith(reg), admission.Validate(step2.AYearIsEnough), admission.ValidateUpdate(step2.BucketStays))),
	)
}

// Setup has a manager serve the webhooks in every replica, whichever leads.
func Setup(mgr ctrl.Manager, definition []byte, l net.Listener) error {
	hooks, err := Hooks(mgr.GetScheme(), definition)
	if err != nil {
		return err
	}
	return mgr.Add(webhooks(func(ctx context.Context) error {
		return replica.Run(ctx, mgr.GetConfig(), l, hooks)
	}))
}

// webhooks runs whether the replica leads or not.
type webhooks func(context.Context) error

func (w webhooks) Start(ctx context.Context) error { return w(ctx) }

func (webhooks) NeedLeaderElection() bool { return false }
