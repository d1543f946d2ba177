package pizza_test

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/crdkit/crdkit/examples/pizza"
	"github.com/crdkit/crdkit/examples/pizza/api/v1alpha1"
	"github.com/crdkit/crdkit/examples/pizza/api/v1beta1"
	"github.com/crdkit/crdkit/schema/apiservertest"
	"github.com/crdkit/crdkit/test/expect"
	"github.com/crdkit/crdkit/webhook"
	"github.com/crdkit/crdkit/webhook/authority"
	webhookreplica "github.com/crdkit/crdkit/webhook/replica"
)

// leftover is a pizza of the first release. Until the API server trusts the operator to convert
// it, every list of pizzas fails.
const leftover = `{"apiVersion":"restaurant.programming-kubernetes.info/v1alpha1","kind":"Pizza","metadata":{"name":"leftover"},"spec":{"toppings":["tomato","tomato"]}}`

// TestRun_WithoutCluster runs the whole operator through a day of the restaurant: certificates
// of its own CA, webhooks over HTTPS, informers, leader election and controller. Only the API
// server is in this process.
func TestRun_WithoutCluster(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	expect.NoError(t, err)
	endpoint := pizza.InCluster()
	endpoint.URL = "https://" + listener.Addr().String()
	manifests, err := pizza.Manifests("", endpoint, nil)
	expect.NoError(t, err)
	server := apiservertest.Start(t, apiservertest.Manifests(manifests), apiservertest.Stored([]byte(leftover)))
	lease := pizza.Lease{
		Namespace: pizza.Namespace, Name: pizza.Name, Identity: "the-only-replica",
		Duration: 5 * time.Minute, RenewDeadline: 4 * time.Minute, RetryPeriod: time.Second,
	}
	ctx, cancel := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	go func() {
		stopped <- pizza.Run(ctx, server.Config(), listener, endpoint, pizza.LeaderElection(lease),
			pizza.Replica(webhookreplica.Server(webhook.ShutdownDelay(0)), webhookreplica.Authority(authority.PropagationDelay(2*time.Second))))
	}()
	stop := sync.OnceValue(func() error { cancel(); return <-stopped })
	t.Cleanup(func() { _ = stop() })

	client := dynamic.NewForConfigOrDie(server.Config())
	menu := client.Resource(toppings)
	alpha := client.Resource(v1alpha1.GroupVersion.WithResource("pizzas")).Namespace("default")
	beta := client.Resource(v1beta1.GroupVersion.WithResource("pizzas")).Namespace("default")
	for name, cost := range map[string]float64{"tomato": 0.5, "mozzarella": 1, "salami": 1.5} {
		_, err := menu.Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": v1alpha1.GroupVersion.String(), "kind": "Topping", "metadata": map[string]any{"name": name}, "spec": map[string]any{"cost": cost},
		}}, metav1.CreateOptions{})
		expect.NoError(t, err)
	}
	costs := func(name string, want float64) {
		t.Helper()
		expect.Eventually(t, func() error {
			o, err := alpha.Get(t.Context(), name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			status := fmt.Sprint(o.Object["status"])
			if status != fmt.Sprintf("map[cost:%v]", want) {
				return fmt.Errorf("pizza %s: status: %s: want cost %v", name, status, want)
			}
			return nil
		})
	}

	costs("leftover", 1)
	if holder := holderOf(t, server.Config(), lease); holder != lease.Identity {
		t.Errorf("lease: held by %q, want %q", holder, lease.Identity)
	}
	salami, err := alpha.Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": "Pizza", "metadata": map[string]any{"name": "salami"},
	}}, metav1.CreateOptions{})
	expect.NoError(t, err)
	if got := fmt.Sprint(salami.Object["spec"]); got != "map[toppings:[tomato mozzarella salami]]" {
		t.Errorf("pizza salami: spec: %s, want the default toppings", got)
	}
	costs("salami", 3)
	_, err = menu.Patch(t.Context(), "tomato", types.MergePatchType, []byte(`{"spec":{"cost":0.75}}`), metav1.PatchOptions{})
	expect.NoError(t, err)
	costs("salami", 3.25)
	costs("leftover", 1.5)

	_, err = beta.Patch(t.Context(), "salami", types.MergePatchType, []byte(`{"spec":{"toppings":[{"name":"tomato"},{"name":"nails"}]}}`), metav1.PatchOptions{})
	if !apierrors.IsInvalid(err) || !strings.HasSuffix(err.Error(), `spec.toppings[1].name: Not found: "nails"`) {
		t.Errorf("pizza with nails: got %v, want that they are not found", err)
	}
	err = menu.Delete(t.Context(), "salami", metav1.DeleteOptions{})
	if !apierrors.IsForbidden(err) || !strings.HasSuffix(err.Error(), "referenced by pizzas: default/salami") {
		t.Errorf("topping in use: got %v, want that its deletion is forbidden", err)
	}
	expect.NoError(t, beta.Delete(t.Context(), "salami", metav1.DeleteOptions{}))
	expect.Eventually(t, func() error { return menu.Delete(t.Context(), "salami", metav1.DeleteOptions{}) })

	expect.NoError(t, stop())
	if holder := holderOf(t, server.Config(), lease); holder != "" {
		t.Errorf("lease: held by %q after the operator has stopped", holder)
	}
}

func holderOf(t *testing.T, config *rest.Config, lease pizza.Lease) string {
	t.Helper()
	object, err := clientset(t, config).CoordinationV1().Leases(lease.Namespace).Get(t.Context(), lease.Name, metav1.GetOptions{})
	expect.NoError(t, err)
	if object.Spec.HolderIdentity == nil {
		return ""
	}
	return *object.Spec.HolderIdentity
}
