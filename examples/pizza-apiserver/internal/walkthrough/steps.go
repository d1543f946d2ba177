package walkthrough

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	apiserver "github.com/crdkit/crdkit/examples/pizza-apiserver"
	"github.com/crdkit/crdkit/examples/pizza-apiserver/restaurant"
	"github.com/crdkit/crdkit/examples/pizza/api/v1alpha1"
	"github.com/crdkit/crdkit/examples/pizza/api/v1beta1"
)

const (
	group  = restaurant.GroupName
	alphas = "pizzas.v1alpha1." + group
	betas  = "pizzas.v1beta1." + group
)

// Step is one thing that is shown. Steps build upon the ones before.
type Step struct {
	Name string
	Run  func(ctx context.Context, r *Restaurant) error
}

// Steps returns the steps, in order.
func Steps() []Step {
	return []Step{
		{"the server starts on its own etcd, and the API server forwards to it", func(ctx context.Context, r *Restaurant) error { return r.StartServer(ctx) }},
		{"unknown toppings are denied, all in one answer", unknownToppings},
		{"toppings and a margherita are created in one go", margherita},
		{"the same pizza is read in both versions", bothVersions},
		{"a double portion is quantity 2, and the table says so", doublePortion},
		{"a pizza without toppings becomes a salami pizza", salami},
		{"an unknown field is dropped", unknownField},
		{"absurd quantities are refused, at the path of the version", quantities},
		{"kubectl explains the API", explain},
		{"two cooks apply their toppings to one pizza", apply},
		{"a watch delivers events in the other version", watchOther},
		{"a topping that is used cannot be deleted", usedTopping},
		{"only who may, reads pizzas", permissions},
		{"pizzas are stored in v1beta1, in the server's own etcd", stored},
		{"while the server is down, so are the pizzas, and nothing else", restart},
		{"the restaurant closes", closeRestaurant},
	}
}

// Menu puts toppings and a pizza on the menu again, after all steps.
func Menu(ctx context.Context, r *Restaurant) error { return margherita(ctx, r) }

func unknownToppings(ctx context.Context, r *Restaurant) error {
	if err := r.fail(ctx, pizzaAlpha("wrong", "nails", "screws"), create,
		`spec.toppings[0]: Not found: "nails"`, `spec.toppings[1]: Not found: "screws"`); err != nil {
		return err
	}
	return r.fail(ctx, manifest(v1beta1.GroupVersion.String(), "Pizza", "wrong", "spec:\n  toppings: [{name: nails}]"), create,
		`spec.toppings[0].name: Not found: "nails"`)
}

func margherita(ctx context.Context, r *Restaurant) error {
	all := topping("mozzarella", "1") + topping("tomato", "0.5") + topping("salami", "2") + pizzaAlpha("margherita", "mozzarella", "tomato")
	return r.succeed(ctx, all, create, "topping.restaurant.programming-kubernetes.info/mozzarella created", "margherita created")
}

func bothVersions(ctx context.Context, r *Restaurant) error {
	if err := r.succeed(ctx, "", []string{"get", alphas, "margherita", "-o", "yaml"}, "  toppings:\n  - mozzarella\n  - tomato\n"); err != nil {
		return err
	}
	return r.succeed(ctx, "", []string{"get", betas, "margherita", "-o", "yaml"},
		"  toppings:\n  - name: mozzarella\n    quantity: 1\n  - name: tomato\n    quantity: 1\n")
}

func doublePortion(ctx context.Context, r *Restaurant) error {
	if err := r.succeed(ctx, pizzaAlpha("double", "mozzarella", "tomato", "mozzarella"), create); err != nil {
		return err
	}
	if err := r.succeed(ctx, "", []string{"get", betas, "double", "-o", "jsonpath={.spec}"},
		`{"toppings":[{"name":"mozzarella","quantity":2},{"name":"tomato","quantity":1}]}`); err != nil {
		return err
	}
	for _, resource := range []string{alphas, betas, "pz"} {
		if err := r.succeed(ctx, "", []string{"get", resource, "double"}, "NAME", "TOPPINGS", "COST", "AGE", "mozzarella ×2, tomato"); err != nil {
			return err
		}
	}
	return nil
}

func salami(ctx context.Context, r *Restaurant) error {
	for _, gv := range []string{v1alpha1.GroupVersion.String(), v1beta1.GroupVersion.String()} {
		for i, spec := range []string{"spec: {}", "spec: null", "spec: {toppings: []}"} {
			name := fmt.Sprintf("salami-%s-%d", gv[len(group)+1:], i)
			if err := r.succeed(ctx, manifest(gv, "Pizza", name, spec), create); err != nil {
				return err
			}
			if err := r.succeed(ctx, "", []string{"get", alphas, name, "-o", "jsonpath={.spec}"}, `{"toppings":["tomato","mozzarella","salami"]}`); err != nil {
				return err
			}
		}
	}
	return nil
}

func unknownField(ctx context.Context, r *Restaurant) error {
	unknown := manifest(v1beta1.GroupVersion.String(), "Pizza", "unknown", "spec:\n  toppings: [{name: tomato}]\n  garbage: 42")
	if err := r.succeed(ctx, unknown, []string{"create", "--validate=warn", "-f", "-"}, `unknown field "spec.garbage"`); err != nil {
		return err
	}
	output, err := r.kubectl(ctx, "", "get", betas, "unknown", "-o", "jsonpath={.spec}")
	if err != nil {
		return err
	}
	if want := `{"toppings":[{"name":"tomato","quantity":1}]}`; output != want {
		return fmt.Errorf("the spec is %s, not %s", output, want)
	}
	return nil
}

func quantities(ctx context.Context, r *Restaurant) error {
	for _, quantity := range []string{"0", "1000000000"} {
		absurd := manifest(v1beta1.GroupVersion.String(), "Pizza", "absurd", "spec:\n  toppings: [{name: tomato, quantity: "+quantity+"}]")
		if err := r.fail(ctx, absurd, create, "spec.toppings[0].quantity: Invalid value: "+quantity+": must be from 1 to 100"); err != nil {
			return err
		}
	}
	if err := r.fail(ctx, manifest(v1beta1.GroupVersion.String(), "Pizza", "absurd", "spec:\n  toppings: [{name: tomato, quantity: 60}, {name: salami, quantity: 60}]"), create,
		"spec.toppings: Invalid value: 120: a pizza has at most 100 portions of toppings"); err != nil {
		return err
	}
	return r.fail(ctx, pizzaAlpha("absurd", slices.Repeat([]string{"tomato"}, 101)...), create, "spec.toppings: Too many: 101: must have at most 100 items")
}

func explain(ctx context.Context, r *Restaurant) error {
	return r.succeed(ctx, "", []string{"explain", "pizzas.spec.toppings.quantity", "--api-version=" + v1beta1.GroupVersion.String()},
		"quantity is the number of portions, 1 if it is not given")
}

func apply(ctx context.Context, r *Restaurant) error {
	portion := func(name string, quantity int) string {
		return manifest(v1beta1.GroupVersion.String(), "Pizza", "shared", fmt.Sprintf("spec:\n  toppings: [{name: %s, quantity: %d}]", name, quantity))
	}
	serverSide := func(cook string) []string {
		return []string{"apply", "--server-side", "--field-manager=" + cook, "-f", "-"}
	}
	if err := r.succeed(ctx, portion("tomato", 1), serverSide("ada"), "serverside-applied"); err != nil {
		return err
	}
	if err := r.succeed(ctx, portion("salami", 2), serverSide("bob"), "serverside-applied"); err != nil {
		return err
	}
	if err := r.succeed(ctx, "", []string{"get", "pizza", "shared"}, "tomato, salami ×2"); err != nil {
		return err
	}
	return r.fail(ctx, portion("salami", 3), serverSide("ada"), `conflict with "bob"`, `.spec.toppings[name="salami"].quantity`)
}

func watchOther(ctx context.Context, r *Restaurant) error {
	args := []string{"get", alphas, "watched", "--watch", "-o", "json", "--output-watch-events", "--ignore-not-found"}
	fmt.Fprintf(r.out, "$ kubectl %s &\n", quoteAll(args))
	watchCtx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(watchCtx, r.kubectlBin, append([]string{"--kubeconfig=" + r.kubeconfig}, args...)...)
	events, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := r.succeed(ctx, manifest(v1beta1.GroupVersion.String(), "Pizza", "watched", "spec:\n  toppings: [{name: tomato}]"), create); err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	defer func() {
		cancel()
		_ = cmd.Wait() // it was killed
	}()
	if err := r.succeed(ctx, "", []string{"patch", betas, "watched", "--type=merge", "-p", `{"spec":{"toppings":[{"name":"tomato","quantity":3}]}}`}); err != nil {
		return err
	}
	decoder := json.NewDecoder(bufio.NewReader(events))
	for {
		var event struct {
			Type   string         `json:"type"`
			Object v1alpha1.Pizza `json:"object"`
		}
		if err := decoder.Decode(&event); err != nil {
			return errors.Join(errors.New("the watch ended before the event came"), err)
		}
		fmt.Fprintf(r.out, "  %s %s %s %q\n", event.Type, event.Object.APIVersion, event.Object.Name, event.Object.Spec.Toppings)
		if event.Object.APIVersion != v1alpha1.GroupVersion.String() {
			return fmt.Errorf("the event is in version %s", event.Object.APIVersion)
		}
		if slices.Equal(event.Object.Spec.Toppings, []string{"tomato", "tomato", "tomato"}) {
			return nil
		}
	}
}

func usedTopping(ctx context.Context, r *Restaurant) error {
	if err := r.fail(ctx, "", []string{"delete", "topping", "mozzarella"},
		"forbidden", "it is used by pizzas: default/double, default/margherita, default/salami-v1alpha1-0"); err != nil {
		return err
	}
	if err := r.succeed(ctx, topping("anchovies", "3"), create); err != nil {
		return err
	}
	return r.succeed(ctx, "", []string{"delete", "topping", "anchovies"})
}

// permissions shows that the server knows who asks, through the kube-apiserver, and that the
// kube-apiserver's RBAC says whether they may.
func permissions(ctx context.Context, r *Restaurant) error {
	if err := r.fail(ctx, "", []string{"get", "pizzas", "--as=guest"}, `User "guest" cannot list resource "pizzas"`); err != nil {
		return err
	}
	if err := r.succeed(ctx, "", []string{"create", "clusterrole", "menu-reader", "--verb=get,list", "--resource=pizzas." + group}); err != nil {
		return err
	}
	if err := r.succeed(ctx, "", []string{"create", "clusterrolebinding", "menu-reader", "--clusterrole=menu-reader", "--user=guest"}); err != nil {
		return err
	}
	// The server remembers a denial for ten seconds (DelegatingAuthorizationOptions), but
	// the kube-apiserver denied this one before it was forwarded.
	if err := eventually(ctx, 30*time.Second, func() error {
		if output, err := r.run(ctx, "", "get", "pizzas", "--as=guest"); err != nil {
			return fmt.Errorf("%w: %s", err, output)
		}
		return nil
	}); err != nil {
		return err
	}
	return r.succeed(ctx, "", []string{"get", "pizzas", "margherita", "--as=guest"}, "mozzarella, tomato")
}

// stored reads the server's etcd.
func stored(ctx context.Context, r *Restaurant) error {
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{r.socket()}, DialTimeout: 10 * time.Second})
	if err != nil {
		return err
	}
	defer client.Close()
	const key = "/" + apiserver.Name + "/" + group + "/pizzas/default/margherita"
	fmt.Fprintf(r.out, "$ etcdctl --endpoints=unix://etcd.sock get %s\n", key)
	found, err := client.Get(ctx, key)
	if err != nil {
		return err
	}
	if len(found.Kvs) != 1 {
		return fmt.Errorf("there is no key %s", key)
	}
	value := string(found.Kvs[0].Value)
	fmt.Fprint(r.out, indent(value))
	return contains(value, `"apiVersion":"`+v1beta1.GroupVersion.String()+`"`, `"toppings":[{"name":"mozzarella","quantity":1},{"name":"tomato","quantity":1}]`)
}

// restart stops the server and starts it again.
func restart(ctx context.Context, r *Restaurant) error {
	fmt.Fprintln(r.out, "$ kill %2 # pizza-apiserver")
	if err := r.server.stop(); err != nil {
		return err
	}
	if err := r.fail(ctx, "", []string{"get", betas, "margherita"}); err != nil {
		return err
	}
	if err := r.succeed(ctx, "", []string{"get", "namespaces", "default"}, "Active"); err != nil {
		return err
	}
	if err := r.startServer(ctx); err != nil {
		return err
	}
	// The kube-apiserver looks again after a while (remote_available_controller.go).
	if err := eventually(ctx, time.Minute, func() error {
		output, err := r.run(ctx, "", "get", betas, "margherita")
		if err != nil {
			return fmt.Errorf("%w: %s", err, output)
		}
		return nil
	}); err != nil {
		return err
	}
	return r.succeed(ctx, "", []string{"get", betas, "margherita"}, "mozzarella, tomato")
}

func closeRestaurant(ctx context.Context, r *Restaurant) error {
	if err := r.succeed(ctx, "", []string{"delete", "pizzas", "--all"}, `"margherita" deleted`); err != nil {
		return err
	}
	// The server sees by its own watch that no pizza is left.
	if err := eventually(ctx, 20*time.Second, func() error {
		output, err := r.run(ctx, "", "delete", "toppings", "--all", "--dry-run=server")
		if err != nil {
			return fmt.Errorf("%w: %s", err, output)
		}
		return nil
	}); err != nil {
		return err
	}
	return r.succeed(ctx, "", []string{"delete", "toppings", "--all"}, `"mozzarella" deleted`)
}

var create = []string{"create", "-f", "-"}

func manifest(apiVersion, kind, name, spec string) string {
	return fmt.Sprintf("---\napiVersion: %s\nkind: %s\nmetadata:\n  name: %s\n%s\n", apiVersion, kind, name, spec)
}

func topping(name, cost string) string {
	return manifest(v1alpha1.GroupVersion.String(), "Topping", name, "spec:\n  cost: "+cost)
}

func pizzaAlpha(name string, toppings ...string) string {
	return manifest(v1alpha1.GroupVersion.String(), "Pizza", name, "spec:\n  toppings: ["+strings.Join(toppings, ", ")+"]")
}
