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

// controller keeps the cost of every pizza right.
type controller struct {
	clients  *clients
	pizzas   cache.SharedIndexInformer
	toppings cache.SharedIndexInformer
	pizzasOf *reference.Referrers
	queue    workqueue.TypedRateLimitingInterface[cache.ObjectName]
}

// newController returns a controller of the pizzas in the informers, which it
// does not start.
func newController(clients *clients, pizzas, toppings cache.SharedIndexInformer, pizzasOf *reference.Referrers) (*controller, error) {
	c := &controller{
		clients:  clients,
		pizzas:   pizzas,
		toppings: toppings,
		pizzasOf: pizzasOf,
		queue: workqueue.NewTypedRateLimitingQueueWithConfig(
			workqueue.NewTypedItemExponentialFailureRateLimiter[cache.ObjectName](100*time.Millisecond, 30*time.Second),
			workqueue.TypedRateLimitingQueueConfig[cache.ObjectName]{Name: "pizzas"}),
	}
	_, pizzaErr := pizzas.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { c.enqueue(obj) },
		UpdateFunc: func(_, obj any) { c.enqueue(obj) },
	})
	_, toppingErr := toppings.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { c.enqueueReferrers(obj) },
		UpdateFunc: func(_, obj any) { c.enqueueReferrers(obj) },
		DeleteFunc: func(obj any) { c.enqueueReferrers(obj) },
	})
	return c, errors.Join(pizzaErr, toppingErr)
}

// enqueue asks for the cost of a pizza.
func (c *controller) enqueue(obj any) {
	if name, err := cache.ObjectToName(obj); err == nil {
		c.queue.Add(name)
	}
}

// enqueueReferrers asks for the cost of all pizzas that have a topping.
func (c *controller) enqueueReferrers(obj any) {
	name, err := cache.DeletionHandlingObjectToName(obj)
	if err != nil {
		return
	}
	for _, pizza := range c.pizzasOf.Of(name.Namespace, name.Name) {
		c.queue.Add(pizza)
	}
}

// run works until the context ends. The informers must have synced, because a
// topping that is not known yet has no cost.
func (c *controller) run(ctx context.Context, workers int) {
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() { wait.UntilWithContext(ctx, c.work, time.Second) })
	}
	<-ctx.Done()
	c.queue.ShutDown()
	wg.Wait()
}

func (c *controller) work(ctx context.Context) {
	for {
		name, shutdown := c.queue.Get()
		if shutdown {
			return
		}
		err := c.reconcile(ctx, name)
		switch {
		case err == nil:
			c.queue.Forget(name)
		case ctx.Err() == nil:
			klog.FromContext(ctx).Error(err, "Cannot compute the cost of a pizza; trying again", "pizza", name)
			c.queue.AddRateLimited(name)
		}
		c.queue.Done(name)
	}
}

// reconcile writes the cost of one pizza, if it is not the one that it has.
func (c *controller) reconcile(ctx context.Context, name cache.ObjectName) error {
	obj, exists, err := c.pizzas.GetIndexer().GetByKey(name.String())
	if err != nil || !exists {
		return err
	}
	pizza := obj.(*v1beta1.Pizza)
	cost, missing := c.cost(pizza)
	if len(missing) > 0 {
		// Somebody deleted a topping past the webhook. When it comes back, or the
		// pizza changes, the pizza is enqueued again; a wrong cost would be worse
		// than none.
		klog.FromContext(ctx).Info("A pizza has no cost: toppings are missing", "pizza", name, "toppings", strings.Join(missing, ", "))
		cost = nil
	}
	if equal(cost, pizza.Status.Cost) {
		return nil
	}
	// The UID keeps the cost from a pizza of the same name that came after.
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": pizza.UID},
		"status":   map[string]any{"cost": cost},
	})
	if err != nil {
		return err
	}
	_, err = c.clients.Pizzas(name.Namespace).Patch(ctx, name.Name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) && !c.isCurrent(pizza) {
		return nil // the pizza has gone; if there is another one, it is in the queue
	}
	if err != nil {
		return fmt.Errorf("writing the status: %w", err)
	}
	return nil
}

// isCurrent says whether the informer still holds the pizza, and no other.
func (c *controller) isCurrent(pizza *v1beta1.Pizza) bool {
	obj, exists, err := c.pizzas.GetIndexer().Get(pizza)
	return err == nil && exists && obj.(*v1beta1.Pizza).UID == pizza.UID
}

// cost adds up the toppings, to the cent, and returns the names of those that
// are not known.
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
