// Package step4 needs no certificate manager, and no markers of webhooks: the operator makes
// its certificates, and prints the manifests of its webhooks.
package step4

import (
	"context"
	"net"
	"path/filepath"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/yaml"

	"github.com/crdkit/crdkit/admission"
	"github.com/crdkit/crdkit/conversion"
	"github.com/crdkit/crdkit/interop/controllerruntime/moving/step2"
	"github.com/crdkit/crdkit/interop/controllerruntime/moving/step3"
	"github.com/crdkit/crdkit/webhook"
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
		registration.CRDs(definition),
		registration.Conversion("/convert", conversion.NewHandler(reg)),
		registration.Mutating("default.backups.example.com", "/mutate-example-com-v1-backup",
			admission.NewHandler(s, admission.ConvertWith(reg), admission.Mutate(step2.KeepAWeek))),
		registration.Validating("validate.backups.example.com", "/validate-example-com-v1-backup",
			admission.NewHandler(s, admission.ConvertWith(reg), admission.Validate(step2.AYearIsEnough), admission.ValidateUpdate(step2.BucketStays))),
	)
}

// Manifests returns the rights that the webhooks need, and their registration.
func Manifests(hooks *registration.Webhooks) ([]byte, error) {
	role, err := yaml.Marshal(rbacv1.ClusterRole{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole"},
		ObjectMeta: metav1.ObjectMeta{Name: hooks.Name() + "-webhooks"},
		Rules:      hooks.PolicyRules(),
	})
	if err != nil {
		return nil, err
	}
	registered, err := hooks.Manifests(nil)
	return slices.Concat(role, registered), err
}

// Run runs a manager, and beside it the webhooks, in every replica, whichever leads. It returns
// when the context has ended and both have, or when one of them has failed. If that was the
// webhooks, it does not wait for the manager, and the program should end.
//
// The webhooks are not added to the manager. It starts what needs no leader when its caches have
// synced (controller-runtime/pkg/manager/internal.go, Start), and a cache of Backups syncs when
// a replica converts them.
func Run(ctx context.Context, mgr ctrl.Manager, l net.Listener, hooks *registration.Webhooks, opts ...replica.Option) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() {
		defer stop()
		ended <- mgr.Start(ctx)
	}()
	if err := replica.Run(ctx, mgr.GetConfig(), l, hooks, opts...); err != nil {
		return err // do not wait for the manager: it ends only after its caches have synced
	}
	return <-ended
}

// Files returns the certificates of a Secret that is mounted in a folder, such as that of a
// Certificate, and the CA bundle that the API server needs for them.
func Files(folder string) (*webhook.FileCertificates, registration.Bundle, error) {
	certs, err := webhook.Files(filepath.Join(folder, "tls.crt"), filepath.Join(folder, "tls.key"))
	if err != nil {
		return nil, nil, err
	}
	bundle, err := registration.BundleFile(filepath.Join(folder, "ca.crt"))
	if err != nil {
		return nil, nil, err
	}
	return certs, bundle, nil
}
