package menu

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/crdkit/crdkit/examples/internal/show"
	"github.com/crdkit/crdkit/examples/pizza/api/v1alpha1"
	"github.com/crdkit/crdkit/examples/pizza/api/v1beta1"
)

// Guest orders pizzas with kubectl. Its methods are steps, in this order; the later ones
// need what Margherita and DoublePortion have created.
type Guest struct{ show.Kubectl }

// UnknownToppings orders a pizza of toppings that do not exist.
func (g Guest) UnknownToppings(ctx context.Context) error {
	return g.Fail(ctx, Pizza("margherita", "mozzarella", "tomato"), Create,
		"is invalid", `spec.toppings[0]: Not found: "mozzarella"`, `spec.toppings[1]: Not found: "tomato"`)
}

// Margherita creates toppings, and a pizza of them.
func (g Guest) Margherita(ctx context.Context) error {
	all := Topping("mozzarella", "1.0") + Topping("tomato", "0.5") + Topping("salami", "1.5") + Pizza("margherita", "mozzarella", "tomato")
	return g.Succeed(ctx, all, Create, "topping."+Group+"/mozzarella created", "pizza."+Group+"/margherita created")
}

// Leave puts toppings and a pizza on the menu again.
func (g Guest) Leave(ctx context.Context) error { return g.Margherita(ctx) }

// BothVersions reads it in both versions, and in a table.
func (g Guest) BothVersions(ctx context.Context) error {
	if err := g.Succeed(ctx, "", []string{"get", Alphas, "margherita", "-o", "yaml"}, "  toppings:\n  - mozzarella\n  - tomato\n"); err != nil {
		return err
	}
	if err := g.Succeed(ctx, "", []string{"get", Betas, "margherita", "-o", "yaml"},
		"  toppings:\n  - name: mozzarella\n    quantity: 1\n  - name: tomato\n    quantity: 1\n"); err != nil {
		return err
	}
	return g.Succeed(ctx, "", []string{"get", Alphas, "margherita"}, "NAME", "TOPPINGS", "COST", "AGE", `["mozzarella","tomato"]`)
}

// DoublePortion creates a pizza that says a topping twice in v1alpha1.
func (g Guest) DoublePortion(ctx context.Context) error {
	if err := g.Succeed(ctx, Pizza("double", "mozzarella", "tomato", "mozzarella"), Create); err != nil {
		return err
	}
	return g.spec(ctx, Betas, "double", `{"toppings":[{"name":"mozzarella","quantity":2},{"name":"tomato","quantity":1}]}`)
}

// Salami creates pizzas without toppings, which get some.
func (g Guest) Salami(ctx context.Context) error {
	var names []string
	for _, version := range []string{v1alpha1.GroupVersion.Version, v1beta1.GroupVersion.Version} {
		var all string
		for i, spec := range []string{"spec: {}", "spec: null", "spec: {toppings: []}"} {
			name := fmt.Sprintf("salami-%s-%d", version, i)
			names = append(names, name)
			all += Manifest(Group+"/"+version, "Pizza", name, spec)
		}
		if err := g.Succeed(ctx, all, Create); err != nil {
			return err
		}
	}
	args := append([]string{"get", Alphas}, names...)
	output, err := g.Show(ctx, "", append(args, "-o", `jsonpath={range .items[*]}{.metadata.name} {.spec}{"\n"}{end}`)...)
	if err != nil {
		return fmt.Errorf("kubectl get: %w: %s", err, output)
	}
	const salami = ` {"toppings":["tomato","mozzarella","salami"]}` + "\n"
	if want := strings.Join(names, salami) + salami; output != want {
		return fmt.Errorf("the pizzas are\n%snot\n%s", output, want)
	}
	return nil
}

// UnknownField creates a pizza with a field that does not exist.
func (g Guest) UnknownField(ctx context.Context) error {
	unknown := Manifest(v1beta1.GroupVersion.String(), "Pizza", "unknown", "spec:\n  toppings: [{name: tomato}]\n  garbage: 42")
	if err := g.Succeed(ctx, unknown, []string{"create", "--validate=warn", "-f", "-"}, `unknown field "spec.garbage"`); err != nil {
		return err
	}
	return g.spec(ctx, Betas, "unknown", `{"toppings":[{"name":"tomato","quantity":1}]}`)
}

// Quantities orders pizzas that the rules of the definition refuse.
func (g Guest) Quantities(ctx context.Context) error {
	var absurd string
	for _, toppings := range []string{"{name: tomato, quantity: 0}", "{name: tomato, quantity: 1000000000}", "{name: tomato, quantity: 60}, {name: salami, quantity: 60}"} {
		absurd += Manifest(v1beta1.GroupVersion.String(), "Pizza", "absurd", "spec:\n  toppings: ["+toppings+"]")
	}
	if err := g.Fail(ctx, absurd, Create,
		"spec.toppings[0].quantity: Invalid value: 0: spec.toppings[0].quantity in body should be greater than or equal to 1",
		"spec.toppings[0].quantity: Invalid value: 1000000000: spec.toppings[0].quantity in body should be less than or equal to 100",
		"a pizza has at most 100 portions of toppings"); err != nil {
		return err
	}
	return g.Succeed(ctx, "", []string{"get", Alphas, "margherita"}, `["mozzarella","tomato"]`)
}

// UsedTopping deletes a topping that pizzas use, which fails, and one that none does.
func (g Guest) UsedTopping(ctx context.Context) error {
	if err := g.Fail(ctx, "", []string{"delete", "topping", "mozzarella"},
		"forbidden", "referenced by pizzas: default/double, default/margherita"); err != nil {
		return err
	}
	if err := g.Succeed(ctx, Topping("anchovies", "3"), Create); err != nil {
		return err
	}
	return g.Succeed(ctx, "", []string{"delete", "topping", "anchovies"})
}

// spec compares what kubectl prints of a pizza's spec.
func (g Guest) spec(ctx context.Context, resource, name, want string) error {
	output, err := g.Show(ctx, "", "get", resource, name, "-o", "jsonpath={.spec}")
	if err != nil {
		return fmt.Errorf("kubectl get: %w: %s", err, output)
	}
	if output != want {
		return fmt.Errorf("the spec is %s, not %s", output, want)
	}
	return nil
}

// ToppingsAreFree waits until the server has seen by its own watch that no pizza is left.
func (g Guest) ToppingsAreFree(ctx context.Context) error {
	return show.Eventually(ctx, 2*time.Minute, func() error {
		return g.Try(ctx, "", "delete", "toppings", "--all", "--dry-run=server")
	})
}
