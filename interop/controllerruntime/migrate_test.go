package controllerruntime_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/crdkit/crdkit/conversion/migrate"
	"github.com/crdkit/crdkit/interop/controllerruntime"
	"github.com/crdkit/crdkit/test/controlplane"
	"github.com/crdkit/crdkit/test/expect"
	"github.com/crdkit/crdkit/test/migratetest"
	"github.com/crdkit/crdkit/test/rbac"
)

var _ manager.LeaderElectionRunnable = &migrate.Controller{}

func TestMigrate_OnAManager(t *testing.T) {
	cp := controlplane.ForTest(t)
	w := migratetest.New(t, cp.Config())
	w.Fill(3)
	w.Store("v1")
	operator, err := cp.User("operator")
	expect.NoError(t, err)
	rules := append(migrate.ControllerRules(w.CRD), rbacv1.PolicyRule{APIGroups: []string{"coordination.k8s.io", "events.k8s.io", ""}, Resources: []string{"leases", "events"}, Verbs: []string{"get", "create", "update", "patch"}})
	rbac.Grant(t, cp.Config(), "", "operator", rules...)
	mgr, err := ctrl.NewManager(operator, ctrl.Options{
		Metrics: server.Options{BindAddress: "0"}, LeaderElection: true, LeaderElectionID: "boxes", LeaderElectionNamespace: "default",
	})
	expect.NoError(t, err)
	expect.NoError(t, controllerruntime.Migrate(mgr, []string{w.CRD}, migrate.Rate(0), migrate.PropagationDelay(0)))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	expect.Eventually(t, func() error {
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
