package main

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/tools/cache"

	"github.com/crdkit/crdkit/admission/reference"
	"github.com/crdkit/crdkit/examples/pizza/api/v1alpha1"
	"github.com/crdkit/crdkit/examples/pizza/api/v1beta1"
)

// filled is an informer that has synced.
type filled struct{ handler cache.ResourceEventHandler }

func (f *filled) HasSynced() bool                     { return true }
func (f *filled) HasSyncedChecker() cache.DoneChecker { return nil }

func (f *filled) AddEventHandler(h cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	f.handler = h
	return f, nil
}

// reference measures the lookups of references with 100,000 pizzas and as many
// toppings in the caches. All pizzas have tomato and mozzarella, and each has a
// topping of its own. client-go's index by the same keys is the peer.
func (b bench) reference() error {
	const count = 100_000
	toppings := schema.GroupResource{Group: v1alpha1.GroupVersion.Group, Resource: "toppings"}
	pizzas := schema.GroupResource{Group: v1beta1.GroupVersion.Group, Resource: "pizzas"}
	toppingsOf := func(p *v1beta1.Pizza) (refs []reference.Ref) {
		for i, t := range p.Spec.Toppings {
			refs = append(refs, reference.Ref{Path: field.NewPath("spec", "toppings").Index(i).Child("name"), Name: t.Name})
		}
		return refs
	}
	own := func(i int) string { return fmt.Sprintf("topping-%05d", i) }

	all := make([]*v1beta1.Pizza, count)
	pizzaStore := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	toppingStore := cache.NewStore(cache.MetaNamespaceKeyFunc)
	add := func(name string) error {
		t := &v1alpha1.Topping{}
		t.Name = name
		return toppingStore.Add(t)
	}
	if err := add("tomato"); err != nil {
		return err
	}
	for i := range all {
		p := &v1beta1.Pizza{}
		p.Namespace, p.Name = fmt.Sprintf("namespace-%02d", i%50), fmt.Sprintf("pizza-%05d", i)
		for _, name := range []string{"tomato", "mozzarella", own(i)} {
			p.Spec.Toppings = append(p.Spec.Toppings, v1beta1.PizzaTopping{Name: strings.Clone(name)})
		}
		all[i] = p
		if err := pizzaStore.Add(p); err != nil {
			return err
		}
		if err := add(own(i)); err != nil {
			return err
		}
	}
	if err := add("mozzarella"); err != nil {
		return err
	}

	topping := reference.ClusterScoped(toppings)
	toppingInformer := &filled{}
	known, err := reference.NewTarget(topping, reference.Unwatched(toppingInformer), func(_ context.Context, _, name string) error {
		return apierrors.NewNotFound(toppings, name) // at once
	})
	if err != nil {
		return err
	}
	names := heap(func() {
		for _, t := range toppingStore.List() {
			toppingInformer.handler.OnAdd(t, true)
		}
	})
	informer := &filled{}
	var pizzasOf *reference.Referrers
	ours := heap(func() {
		if pizzasOf, err = reference.NewReferrers(pizzas, reference.Unwatched(informer), topping, toppingsOf); err != nil {
			return
		}
		for _, p := range all {
			informer.handler.OnAdd(p, true)
		}
	})
	if err != nil {
		return err
	}
	theirs := heap(func() {
		err = pizzaStore.AddIndexers(cache.Indexers{"topping": func(obj any) ([]string, error) {
			var names []string
			for _, ref := range toppingsOf(obj.(*v1beta1.Pizza)) {
				names = append(names, ref.Name)
			}
			return names, nil
		}})
	})
	if err != nil {
		return err
	}

	ctx := context.Background()
	exists := reference.Exists(known, toppingsOf)
	unused := reference.NotReferenced[*v1alpha1.Topping](pizzasOf)
	delete := func(name string) func() {
		t := &v1alpha1.Topping{}
		t.Name = name
		return func() { _, _ = unused(ctx, t) }
	}
	if _, err := unused(ctx, &v1alpha1.Topping{}); err != nil {
		return fmt.Errorf("an unused topping: %w", err)
	}
	if errs, err := exists(ctx, all[7]); len(errs) > 0 || err != nil {
		return fmt.Errorf("a pizza with known toppings: %v, %w", errs, err)
	}
	tomato := &v1alpha1.Topping{}
	tomato.Name = "tomato"
	if _, err := unused(ctx, tomato); err == nil || !strings.HasSuffix(err.Error(), fmt.Sprintf("and %d more, %d in all", count-10, count)) {
		return fmt.Errorf("a topping with %d users: %w", count, err)
	}

	missing := all[7].DeepCopy()
	missing.Spec.Toppings[2].Name = "nails"
	if errs, err := exists(ctx, missing); len(errs) != 1 || err != nil {
		return fmt.Errorf("a pizza with an unknown topping: %v, %w", errs, err)
	}

	b.rounds, b.each = min(b.rounds, 3), min(b.each, 200*time.Millisecond) // there are many figures, and most need no peer
	changes := 0
	fmt.Printf("references, with %d pizzas of 3 toppings in the cache, in µs:\n", count)
	for _, f := range []struct {
		name string
		run  func()
	}{
		{"a pizza's toppings exist", func() { _, _ = exists(ctx, all[7]) }},
		{"a topping without users is deleted", delete("nails")},
		{"a topping with 1 user", delete(own(7))},
		{"a topping with 100000 users", delete("tomato")},
		{"a pizza changes a topping", func() {
			changes++
			p := all[7].DeepCopy()
			p.Spec.Toppings[2].Name = own(changes % 2)
			informer.handler.OnUpdate(nil, p)
		}},
	} {
		fmt.Printf("  %-36s %10.2f\n", f.name, b.median(f.run)*1e6)
	}
	fmt.Printf("  the index takes %d bytes a pizza, client-go's %d\n", ours/count, theirs/count)
	fmt.Printf("  the names that a target keeps take %d bytes each\n", names/count)
	b.compare("reference/users/100000", delete("tomato"), func() {
		users, err := pizzaStore.ByIndex("topping", "tomato")
		if err != nil || len(users) != count {
			panic(err)
		}
	}, func(ours, theirs float64) float64 { return theirs / ours })
	runtime.KeepAlive(all)
	runtime.KeepAlive(known)
	runtime.KeepAlive(toppingStore)
	return nil
}

// heap returns the number of bytes by which a function grows the heap.
func heap(f func()) int64 {
	live := func() int64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := live()
	f()
	return live() - before
}
