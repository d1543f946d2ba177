package walkthrough

import (
	"context"
	"fmt"
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
		{Name: "unknown toppings are denied, all in one answer", Run: r.UnknownToppings},
		{Name: "toppings and a margherita are created in one go", Run: r.Margherita},
		{Name: "the same pizza is read in both versions", Run: r.BothVersions},
		{Name: "a double portion is quantity 2", Run: r.DoublePortion},
		{Name: "a pizza without toppings becomes a salami pizza", Run: r.Salami},
		{Name: "an unknown field is pruned", Run: r.UnknownField},
		{Name: "absurd quantities are refused", Run: r.Quantities},
		{Name: "kubectl explains the API", Run: r.explain},
		{Name: "a watch delivers events in the other version", Run: r.WatchOther},
		{Name: "a topping that is used cannot be deleted", Run: r.UsedTopping},
		{Name: "only who may, reads pizzas", Run: r.permissions},
		{Name: "pizzas are stored in v1beta1, in the server's own etcd", Run: r.stored},
		{Name: "while the server is down, so are the pizzas, and nothing else", Run: r.restart},
		{Name: "the restaurant closes", Run: r.close},
	}
}

func (r *Restaurant) explain(ctx context.Context) error {
	return r.Succeed(ctx, "", []string{"explain", "pizzas.spec.toppings.quantity", "--api-version=" + v1beta1.GroupVersion.String()},
		"quantity is the number of portions, 1 if it is not given")
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
	return r.Succeed(ctx, "", []string{"get", "pizzas", "margherita", "--as=guest"}, `{"name":"mozzarella","quantity":1}`)
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
	return r.Succeed(ctx, "", []string{"get", menu.Alphas, "margherita"}, `["mozzarella","tomato"]`)
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
