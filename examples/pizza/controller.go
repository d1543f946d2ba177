package pizza

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"github.com/crdkit/crdkit/admission/reference"
	"github.com/crdkit/crdkit/examples/pizza/api/v1alpha1"
	"github.com/crdkit/crdkit/examples/pizza/api/v1beta1"
)

// controller writes the cost of every pizza while this replica is the leader. It reads pizzas and
// toppings from the informers, which it does not start.
type controller struct {
	clients  *clients
	pizzas   cache.SharedIndexInformer
	toppings cache.SharedIndexInformer
	pizzasOf *reference.Referrers
}

// queue holds the pizzas whose cost is to be computed.
type queue = workqueue.TypedRateLimitingInterface[cache.ObjectName]

func newQueue() queue {
	return workqueue.NewTypedRateLimitingQueueWithConfig(
		workqueue.NewTypedItemExponentialFailureRateLimiter[cache.ObjectName](100*time.Millisecond, 30*time.Second),
		workqueue.TypedRateLimitingQueueConfig[cache.ObjectName]{Name: "pizzas"})
}

// run works for one term, until the context is done, and then waits for its workers. It may be
// called again after it has returned, and begins with all existing pizzas. The informers must have
// synced, because a topping that is not in the informer has no cost.
func (c *controller) run(ctx context.Context, workers int) {
	queue := newQueue()
	stopFollowing, err := c.follow(queue)
	defer stopFollowing()
	if err != nil && ctx.Err() == nil {
		klog.FromContext(ctx).Error(err, "Cannot follow pizzas and toppings")
	}
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() { wait.UntilWithContext(ctx, func(ctx context.Context) { c.work(ctx, queue) }, time.Second) })
	}
	<-ctx.Done()
	queue.ShutDown()
	wg.Wait()
}

// follow adds all pizzas to the queue, because an informer reports each of its objects to a new
// handler, and then each pizza that changes, or whose toppings change, until it is stopped.
func (c *controller) follow(queue queue) (stop func(), err error) {
	pizzas, pizzaErr := c.pizzas.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { enqueue(queue, obj) },
		UpdateFunc: func(_, obj any) { enqueue(queue, obj) },
	})
	toppings, toppingErr := c.toppings.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { c.enqueueReferrers(queue, obj) },
		UpdateFunc: func(_, obj any) { c.enqueueReferrers(queue, obj) },
		DeleteFunc: func(obj any) { c.enqueueReferrers(queue, obj) },
	})
	return func() {
		// Removing a handler from a stopped informer is not an error.
		if pizzaErr == nil {
			_ = c.pizzas.RemoveEventHandler(pizzas)
		}
		if toppingErr == nil {
			_ = c.toppings.RemoveEventHandler(toppings)
		}
	}, errors.Join(pizzaErr, toppingErr)
}

// enqueue adds a pizza to the queue.
func enqueue(queue queue, obj any) {
	if name, err := cache.ObjectToName(obj); err == nil {
		queue.Add(name)
	}
}

// enqueueReferrers adds all pizzas that have a topping to the queue.
func (c *controller) enqueueReferrers(queue queue, obj any) {
	name, err := cache.DeletionHandlingObjectToName(obj)
	if err != nil {
		return
	}
	for _, pizza := range c.pizzasOf.Of(name.Namespace, name.Name) {
		queue.Add(pizza)
	}
}

func (c *controller) work(ctx context.Context, queue queue) {
	for {
		name, shutdown := queue.Get()
		if shutdown {
			return
		}
		if ctx.Err() != nil { // the next leader reconciles the rest of the queue
			queue.Done(name)
			continue
		}
		err := c.reconcile(ctx, name)
		switch {
		case err == nil:
			queue.Forget(name)
		case ctx.Err() == nil:
			klog.FromContext(ctx).Error(err, "Cannot compute the cost of a pizza; trying again", "pizza", name)
			queue.AddRateLimited(name)
		}
		queue.Done(name)
	}
}

// reconcile writes the cost of one pizza, unless the pizza has it already.
func (c *controller) reconcile(ctx context.Context, name cache.ObjectName) error {
	obj, exists, err := c.pizzas.GetIndexer().GetByKey(name.String())
	if err != nil || !exists {
		return err
	}
	pizza := obj.(*v1beta1.Pizza)
	cost, missing := c.cost(pizza)
	if len(missing) > 0 {
		// The topping was deleted without the webhook. The pizza keeps its cost until the topping
		// is created again, or the pizza changes, because a wrong cost would be worse.
		klog.FromContext(ctx).Info("A pizza has no cost: toppings are missing", "pizza", name, "toppings", strings.Join(missing, ", "))
		cost = nil
	}
	if equal(cost, pizza.Status.Cost) {
		return nil
	}
	// The UID prevents a write to a later pizza of the same name.
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": pizza.UID},
		"status":   map[string]any{"cost": cost},
	})
	if err != nil {
		return err
	}
	_, err = c.clients.Pizzas(name.Namespace).Patch(ctx, name.Name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) && !c.isCurrent(pizza) {
		return nil // the pizza is deleted; a later one of the same name is in the queue
	}
	if err != nil {
		return fmt.Errorf("writing the status: %w", err)
	}
	return nil
}

// isCurrent reports whether the informer still has the pizza, and not a later one of the same name.
func (c *controller) isCurrent(pizza *v1beta1.Pizza) bool {
	obj, exists, err := c.pizzas.GetIndexer().Get(pizza)
	return err == nil && exists && obj.(*v1beta1.Pizza).UID == pizza.UID
}

// cost returns the sum of the costs of the toppings, to the cent, and the names of unknown
// toppings.
func (c *controller) cost(pizza *v1beta1.Pizza) (cost *float64, missing []string) {
	var sum float64
	for _, t := range pizza.Spec.Toppings {
		obj, exists, err := c.toppings.GetIndexer().GetByKey(t.Name)
		if err != nil || !exists {
			missing = append(missing, t.Name)
			continue
		}
		sum += float64(quantity(t)) * obj.(*v1alpha1.Topping).Spec.Cost
	}
	return new(math.Round(sum*100) / 100), missing
}

func equal(a, b *float64) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}
