// Package controllerruntime joins crdkit and controller-runtime.
//
// API types that were written for controller-runtime's conversion webhook convert
// with crdkit, one kind at a time, and without a change to the types:
//
//	err := controllerruntime.AddSpoke[*v1.CronJob, *v2.CronJob](reg)
//	mgr.GetWebhookServer().Register("/convert", conversion.NewHandler(reg))
//
// The handler is a plain http.Handler and runs on a manager's webhook server, in
// the place of the one that controller-runtime's builder would register.
//
// Defaulters and validators, also those of the deprecated Custom interfaces, run in a
// handler of package admission:
//
//	admission.NewHandler(s, controllerruntime.Validator[*v1.CronJob](validator{}))
//
// Package admission/reference checks references with the informers of a manager's
// cache:
//
//	mgr, err := manager.New(config, manager.Options{Cache: cache.Options{NewInformer: reference.NewInformer}})
//	secrets, err := controllerruntime.Informer(ctx, mgr.GetCache(), &corev1.Secret{})
//	live := controllerruntime.Getter(mgr.GetAPIReader(), corev1.SchemeGroupVersion.WithKind("Secret"))
//	known, err := reference.NewTarget(secret, secrets, live)
//
// [Migrate] moves stored objects to the storage version, on the replica that leads.
//
// The package starts no manager, and registers no webhook.
package controllerruntime

import (
	"context"

	peer "sigs.k8s.io/controller-runtime/pkg/conversion"

	"github.com/crdkit/crdkit/conversion"
)

// AddSpoke adds the conversions that a type has as its methods ConvertTo and
// ConvertFrom. For what is an error, see [conversion.AddSpoke]; that S does not
// convert to H, but to another hub, shows when the method is called.
//
// The methods copy the metadata, as controller-runtime wants it; crdkit holds them
// to its laws all the same: except for labels and annotations, metadata stays.
func AddSpoke[S peer.Convertible, H peer.Hub](r *conversion.Registry) error {
	return conversion.AddSpoke(r,
		func(_ context.Context, in S, out H) error { return in.ConvertTo(out) },
		func(_ context.Context, in H, out S) error { return out.ConvertFrom(in) })
}
