package walkthrough

import (
	"context"
	"fmt"
	"slices"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/crdkit/crdkit/examples/internal/menu"
	"github.com/crdkit/crdkit/examples/internal/show"
	apiserver "github.com/crdkit/crdkit/examples/pizza-apiserver"
	"github.com/crdkit/crdkit/examples/pizza/api/v1beta1"
)

// Steps returns the steps, in order.
func (r *Restaurant) Steps() []show.Step {
	return []show.Step{
		{Name: "the server starts on its own etcd, and the API server forwards to it", Run: r.StartServer},
		{Name: "unknown toppings are denied, all in one answer", Run: r.unknownToppings},
		{Name: "toppings and a margherita are created in one go", Run: r.Margherita},
		{Name: "the same pizza is read in both versions", Run: r.BothVersions},
		{Name: "a double portion is quantity 2, and the table says so", Run: r.doublePortion},
		{Name: "a pizza without toppings becomes a salami pizza", Run: r.Salami},
		{Name: "an unknown field is dropped", Run: r.UnknownField},
		{Name: "absurd quantities are refused, at the path of the version", Run: r.quantities},
		{Name: "kubectl explains the API", Run: r.explain},
		{Name: "two cooks apply their toppings to one pizza", Run: r.apply},
		{Name: "a watch delivers events in the other version", Run: r.WatchOther},
		{Name: "a topping that is used cannot be deleted", Run: r.UsedTopping},
		{Name: "only who may, reads pizzas", Run: r.permissions},
		{Name: "pizzas are stored in v1beta1, in the server's own etcd", Run: r.stored},
		{Name: "while the server is down, so are the pizzas, and nothing else", Run: r.restart},
		{Name: "the restaurant closes", Run: r.close},
	}
}

// Leave puts toppings and a pizza on the menu again.
func (r *Restaurant) Leave(ctx context.Context) error { return r.Margherita(ctx) }

func (r *Restaurant) unknownToppings(ctx context.Context) error {
	if err := r.Fail(ctx, menu.Pizza("wrong", "nails", "screws"), menu.Create,
		`spec.toppings[0]: Not found: "nails"`, `spec.toppings[1]: Not found: "screws"`); err != nil {
		return err
	}
	return r.Fail(ctx, menu.Manifest(v1beta1.GroupVersion.String(), "Pizza", "wrong", "spec:\n  toppings: [{name: nails}]"), menu.Create,
		`spec.toppings[0].name: Not found: "nails"`)
}

func (r *Restaurant) doublePortion(ctx context.Context) error {
	if err := r.DoublePortion(ctx); err != nil {
		return err
	}
	for _, resource := range []string{menu.Alphas, menu.Betas, "pz"} {
		if err := r.Succeed(ctx, "", []string{"get", resource, "double"}, "NAME", "TOPPINGS", "COST", "AGE", "mozzarella ×2, tomato"); err != nil {
			return err
		}
	}
	return nil
}

func (r *Restaurant) quantities(ctx context.Context) error {
	for _, quantity := range []string{"0", "1000000000"} {
		absurd := menu.Manifest(v1beta1.GroupVersion.String(), "Pizza", "absurd", "spec:\n  toppings: [{name: tomato, quantity: "+quantity+"}]")
		if err := r.Fail(ctx, absurd, menu.Create, "spec.toppings[0].quantity: Invalid value: "+quantity+": must be from 1 to 100"); err != nil {
			return err
		}
	}
	if err := r.Fail(ctx, menu.Manifest(v1beta1.GroupVersion.String(), "Pizza", "absurd", "spec:\n  toppings: [{name: tomato, quantity: 60}, {name: salami, quantity: 60}]"), menu.Create,
		"spec.toppings: Invalid value: 120: a pizza has at most 100 portions of toppings"); err != nil {
		return err
	}
	return r.Fail(ctx, menu.Pizza("absurd", slices.Repeat([]string{"tomato"}, 101)...), menu.Create, "spec.toppings: Too many: 101: must have at most 100 items")
}

func (r *Restaurant) explain(ctx context.Context) error {
	return r.Succeed(ctx, "", []string{"explain", "pizzas.spec.toppings.quantity", "--api-version=" + v1beta1.GroupVersion.String()},
		"quantity is the number of portions, 1 if it is not given")
}

func (r *Restaurant) apply(ctx context.Context) error {
	portion := func(name string, quantity int) string {
		return menu.Manifest(v1beta1.GroupVersion.String(), "Pizza", "shared", fmt.Sprintf("spec:\n  toppings: [{name: %s, quantity: %d}]", name, quantity))
	}
	serverSide := func(cook string) []string {
		return []string{"apply", "--server-side", "--field-manager=" + cook, "-f", "-"}
	}
	if err := r.Succeed(ctx, portion("tomato", 1), serverSide("ada"), "serverside-applied"); err != nil {
		return err
	}
	if err := r.Succeed(ctx, portion("salami", 2), serverSide("bob"), "serverside-applied"); err != nil {
		return err
	}
	if err := r.Succeed(ctx, "", []string{"get", "pizza", "shared"}, "tomato, salami ×2"); err != nil {
		return err
	}
	return r.Fail(ctx, portion("salami", 3), serverSide("ada"), `conflict with "bob"`, `.spec.toppings[name="salami"].quantity`)
}

// permissions shows that the server knows who asks, through the kube-apiserver, and that the
// kube-apiserver's RBAC reports whether they may.
func (r *Restaurant) permissions(ctx context.Context) error {
	if err := r.Fail(ctx, "", []string{"get", "pizzas", "--as=guest"}, `User "guest" cannot list resource "pizzas"`); err != nil {
		return err
	}
	if err := r.Succeed(ctx, "", []string{"create", "clusterrole", "menu-reader", "--verb=get,list", "--resource=pizzas." + menu.Group}); err != nil {
		return err
	}
	if err := r.Succeed(ctx, "", []string{"create", "clusterrolebinding", "menu-reader", "--clusterrole=menu-reader", "--user=guest"}); err != nil {
		return err
	}
	// The server remembers a denial for ten seconds (DelegatingAuthorizationOptions), but
	// the kube-apiserver denied this one before it was forwarded.
	if err := show.Eventually(ctx, 2*time.Minute, func() error { return r.Try(ctx, "", "get", "pizzas", "--as=guest") }); err != nil {
		return err
	}
	return r.Succeed(ctx, "", []string{"get", "pizzas", "margherita", "--as=guest"}, "mozzarella, tomato")
}

// stored reads the server's etcd.
func (r *Restaurant) stored(ctx context.Context) error {
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{r.socket()}, DialTimeout: 10 * time.Second})
	if err != nil {
		return err
	}
	defer client.Close()
	const key = "/" + apiserver.Name + "/" + menu.Group + "/pizzas/default/margherita"
	fmt.Fprintf(r.Out, "$ etcdctl --endpoints=unix://etcd.sock get %s\n", key)
	found, err := client.Get(ctx, key)
	if err != nil {
		return err
	}
	if len(found.Kvs) != 1 {
		return fmt.Errorf("key %s: not found", key)
	}
	value := string(found.Kvs[0].Value)
	fmt.Fprint(r.Out, show.Indent(value))
	return show.Contains(value, `"apiVersion":"`+v1beta1.GroupVersion.String()+`"`, `"toppings":[{"name":"mozzarella","quantity":1},{"name":"tomato","quantity":1}]`)
}

// restart stops the server and starts it again.
func (r *Restaurant) restart(ctx context.Context) error {
	fmt.Fprintln(r.Out, "$ kill %2 # pizza-apiserver")
	if err := r.stopServer(); err != nil {
		return err
	}
	if err := r.Fail(ctx, "", []string{"get", menu.Betas, "margherita"}, "Error from server (ServiceUnavailable)"); err != nil {
		return err
	}
	if err := r.Succeed(ctx, "", []string{"get", "namespaces", "default"}, "Active"); err != nil {
		return err
	}
	if err := r.startServer(ctx); err != nil {
		return err
	}
	// The kube-apiserver looks again after a while (remote_available_controller.go).
	if err := show.Eventually(ctx, time.Minute, func() error { return r.Try(ctx, "", "get", menu.Betas, "margherita") }); err != nil {
		return err
	}
	return r.Succeed(ctx, "", []string{"get", menu.Betas, "margherita"}, "mozzarella, tomato")
}

func (r *Restaurant) close(ctx context.Context) error {
	if err := r.Succeed(ctx, "", []string{"delete", "pizzas", "--all"}, `"margherita" deleted`); err != nil {
		return err
	}
	if err := r.ToppingsAreFree(ctx); err != nil {
		return err
	}
	return r.Succeed(ctx, "", []string{"delete", "toppings", "--all"}, `"mozzarella" deleted`)
}
