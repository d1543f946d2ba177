package controllerruntime

import (
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/crdkit/crdkit/conversion/migrate"
)

// Migrate adds a [migrate.Controller] for definitions to a manager: the replica that leads moves their
// stored objects to the storage version. The error is that of [migrate.NewController] or of the manager.
func Migrate(mgr manager.Manager, crds []string, opts ...migrate.Option) error {
	c, err := migrate.NewController(mgr.GetConfig(), crds, opts...)
	if err != nil {
		return err
	}
	return mgr.Add(c)
}
