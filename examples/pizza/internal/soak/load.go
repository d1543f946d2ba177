package soak

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	"github.com/crdkit/crdkit/examples/pizza/api/v1alpha1"
	"github.com/crdkit/crdkit/examples/pizza/api/v1beta1"
)

const group = "restaurant.programming-kubernetes.info"

var (
	versions = []string{v1alpha1.GroupVersion.Version, v1beta1.GroupVersion.Version}
	toppings = []string{"mozzarella", "tomato", "salami"}
)

// pause is how long a client waits between two requests: there are two processors for all of
// this, the control plane included.
func pause(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(10*time.Millisecond + rand.N(20*time.Millisecond)):
	}
}

// load is what the clients do.
type load struct {
	client dynamic.Interface
	ledger *ledger
}

func (l *load) pizzas(version string) dynamic.ResourceInterface {
	return l.client.Resource(schema.GroupVersionResource{Group: group, Version: version, Resource: "pizzas"}).Namespace("default")
}

// request carries one request out. It is never cut off by the end of the soak: that would not be
// a failure of the webhooks.
func (l *load) request(ctx context.Context, kind string, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()
	start := time.Now()
	err := f(ctx)
	switch {
	case apierrors.IsConflict(err): // the controller has been faster
		l.ledger.note(kind, start, nil)
	case kind == "watch" && (apierrors.IsResourceExpired(err) || apierrors.IsGone(err)):
		l.ledger.note("watch that had to list again", start, nil)
	default:
		l.ledger.note(kind, start, err)
	}
	return err
}

// run keeps the clients busy until ctx ends.
func (l *load) run(ctx context.Context) {
	var clients sync.WaitGroup
	for i := range 3 {
		clients.Go(func() { l.eat(ctx, i) })
	}
	for _, version := range versions {
		clients.Go(func() { l.list(ctx, version) })
		clients.Go(func() { l.watch(ctx, version) })
	}
	clients.Go(func() { l.price(ctx) })
	clients.Wait()
}

// eat orders a pizza, looks at it in both versions, changes it, looks again, and eats it.
func (l *load) eat(ctx context.Context, client int) {
	for n := 0; ctx.Err() == nil; n++ {
		name := fmt.Sprintf("pizza-%d-%d", client, n)
		// An order that got no answer may have been taken.
		spec := portions()
		version := versions[rand.IntN(2)]
		for l.request(ctx, "create", func(ctx context.Context) error {
			_, err := l.pizzas(version).Create(ctx, pizza(version, name, spec), metav1.CreateOptions{})
			if apierrors.IsAlreadyExists(err) {
				return nil
			}
			return err
		}) != nil {
			if pause(ctx); ctx.Err() != nil {
				return
			}
		}
		for range 3 {
			pause(ctx)
			l.look(ctx, name, spec)
			pause(ctx)
			changed := portions()
			version := versions[rand.IntN(2)]
			if l.request(ctx, "update", func(ctx context.Context) error {
				obj, err := l.pizzas(version).Get(ctx, name, metav1.GetOptions{})
				if err != nil {
					return err
				}
				obj.Object["spec"] = pizza(version, name, changed).Object["spec"]
				_, err = l.pizzas(version).Update(ctx, obj, metav1.UpdateOptions{})
				return err
			}) == nil {
				spec = changed
			} else if spec = nil; ctx.Err() != nil { // whichever it is
				return
			}
			l.look(ctx, name, spec)
		}
		for l.request(ctx, "delete", func(ctx context.Context) error {
			err := l.pizzas(versions[rand.IntN(2)]).Delete(ctx, name, metav1.DeleteOptions{})
			if apierrors.IsNotFound(err) {
				return nil
			}
			return err
		}) != nil {
			if pause(ctx); ctx.Err() != nil {
				return
			}
		}
	}
}

// price changes the price of a topping, about which the next release is asked.
func (l *load) price(ctx context.Context) {
	client := l.client.Resource(schema.GroupVersionResource{Group: group, Version: "v1alpha1", Resource: "toppings"})
	for ctx.Err() == nil {
		_ = l.request(ctx, "price", func(ctx context.Context) error {
			patch := fmt.Sprintf(`{"spec":{"cost":%d}}`, 1+rand.IntN(99))
			_, err := client.Patch(ctx, toppings[rand.IntN(len(toppings))], types.MergePatchType, []byte(patch), metav1.PatchOptions{})
			return err
		})
		sleep(ctx, 200*time.Millisecond)
	}
}

// look reads a pizza in both versions, and compares them with each other, and with the
// portions of its toppings if these are known.
func (l *load) look(ctx context.Context, name string, want map[string]int64) {
	for _, version := range versions {
		_ = l.request(ctx, "get", func(ctx context.Context) error {
			obj, err := l.pizzas(version).Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			got, err := portionsOf(obj, version)
			if err == nil && want != nil && fmt.Sprint(got) != fmt.Sprint(want) {
				err = fmt.Errorf("%s has %v, not %v", name, got, want)
			}
			return err
		})
	}
}

func (l *load) list(ctx context.Context, version string) {
	for ctx.Err() == nil {
		_ = l.request(ctx, "list", func(ctx context.Context) error {
			// With a limit the API server reads from etcd, and else from its cache.
			opts := metav1.ListOptions{}
			if rand.IntN(2) == 0 {
				opts.Limit = 5
			}
			list, err := l.pizzas(version).List(ctx, opts)
			if err != nil {
				return err
			}
			for i := range list.Items {
				if _, err := portionsOf(&list.Items[i], version); err != nil {
					return err
				}
			}
			return nil
		})
		pause(ctx)
		pause(ctx)
	}
}

// watch watches, and begins again where a watch has ended, as it does when the definition
// changes. If the API server has forgotten where that was (410, Expired), it lists again, as
// every client must (client-go/tools/cache/reflector.go). Every other error is a failure.
func (l *load) watch(ctx context.Context, version string) {
	from := ""
	for ctx.Err() == nil {
		err := l.request(ctx, "watch", func(requestCtx context.Context) error {
			if from == "" {
				list, err := l.pizzas(version).List(requestCtx, metav1.ListOptions{Limit: 1})
				if err != nil {
					return err
				}
				from = list.GetResourceVersion()
			}
			w, err := l.pizzas(version).Watch(requestCtx, metav1.ListOptions{ResourceVersion: from, TimeoutSeconds: new(int64(10)), AllowWatchBookmarks: true})
			if err != nil {
				return err
			}
			defer w.Stop()
			for {
				select {
				case <-ctx.Done():
					return nil
				case event, ok := <-w.ResultChan():
					if !ok {
						return nil
					}
					if err := l.event(event, version); err != nil {
						return err
					}
					from = event.Object.(*unstructured.Unstructured).GetResourceVersion()
				}
			}
		})
		if err != nil {
			from = ""
			pause(ctx)
		}
	}
}

func (l *load) event(event watch.Event, version string) error {
	if event.Type == watch.Error {
		return apierrors.FromObject(event.Object)
	}
	obj, ok := event.Object.(*unstructured.Unstructured)
	if !ok {
		return fmt.Errorf("the event has a %T", event.Object)
	}
	if event.Type == watch.Bookmark {
		return nil
	}
	_, err := portionsOf(obj, version)
	return err
}

// portions returns how often each topping is on a pizza.
func portions() map[string]int64 {
	p := map[string]int64{}
	for range 1 + rand.IntN(5) {
		p[toppings[rand.IntN(len(toppings))]]++
	}
	return p
}

func pizza(version, name string, portions map[string]int64) *unstructured.Unstructured {
	var list []any
	for _, topping := range toppings {
		n := portions[topping]
		if n > 0 && version == v1beta1.GroupVersion.Version {
			list = append(list, map[string]any{"name": topping, "quantity": n})
			continue
		}
		for range n {
			list = append(list, topping)
		}
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": group + "/" + version, "kind": "Pizza",
		"metadata": map[string]any{"name": name},
		"spec":     map[string]any{"toppings": list},
	}}
}

// portionsOf reads a pizza that must be of a version.
func portionsOf(obj *unstructured.Unstructured, version string) (map[string]int64, error) {
	if got := obj.GetAPIVersion(); !strings.HasSuffix(got, "/"+version) {
		return nil, fmt.Errorf("%s is of %s, not %s", obj.GetName(), got, version)
	}
	list, _, err := unstructured.NestedSlice(obj.Object, "spec", "toppings")
	if err != nil || len(list) == 0 {
		return nil, errors.Join(err, fmt.Errorf("%s has no toppings", obj.GetName()))
	}
	p := map[string]int64{}
	for _, item := range list {
		name, quantity := "", int64(1)
		switch item := item.(type) {
		case string:
			name = item
		case map[string]any:
			name, _ = item["name"].(string)
			quantity, _ = item["quantity"].(int64)
		}
		if !slices.Contains(toppings, name) || quantity < 1 {
			return nil, fmt.Errorf("%s has the topping %v", obj.GetName(), item)
		}
		p[name] += quantity
	}
	return p, nil
}
