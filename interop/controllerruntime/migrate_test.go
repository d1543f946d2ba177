package controllerruntime_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/crdkit/crdkit/conversion/migrate"
	"github.com/crdkit/crdkit/internal/testing/controlplane"
	"github.com/crdkit/crdkit/internal/testing/migratetest"
	"github.com/crdkit/crdkit/interop/controllerruntime"
)

var _ manager.LeaderElectionRunnable = &migrate.Controller{}

// The control plane has no kube-controller-manager, which would run migrations of the API.
func TestMigrate_OnAManager(t *testing.T) {
	cp := controlplane.ForTest(t, controlplane.APIServerArgs("--runtime-config=storagemigration.k8s.io/v1=false"))
	w := migratetest.New(t, cp.Config())
	w.Fill(3)
	w.Store("v1")
	mgr, err := ctrl.NewManager(cp.Config(), ctrl.Options{
		Metrics: server.Options{BindAddress: "0"}, LeaderElection: true, LeaderElectionID: "boxes", LeaderElectionNamespace: "default",
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := controllerruntime.Migrate(mgr, []string{w.CRD}, migrate.Rate(0), migrate.PropagationDelay(0)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	migratetest.Eventually(t, "only v1 is stored", func() error {
		if stored := w.StoredVersions(); !slices.Equal(stored, []string{"v1"}) {
			return fmt.Errorf("status.storedVersions is %v, want [v1]", stored)
		}
		return nil
	})
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
