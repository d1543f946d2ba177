package walkthrough

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/crdkit/crdkit/examples/pizza"
	"github.com/crdkit/crdkit/examples/pizza/api/v1alpha1"
	"github.com/crdkit/crdkit/examples/pizza/api/v1beta1"
)

const (
	group  = "restaurant.programming-kubernetes.info"
	alphas = "pizzas.v1alpha1." + group
	betas  = "pizzas.v1beta1." + group
)

// Step is one thing that is shown. Steps build upon the ones before.
type Step struct {
	Name string
	Run  func(ctx context.Context, r *Restaurant) error
}

// Steps returns the steps for each version of the reviews that the API server can
// send, in order.
func Steps() []Step {
	var all []Step
	for _, version := range []string{"v1", "v1beta1"} {
		add := func(name string, run func(ctx context.Context, r *Restaurant) error) {
			all = append(all, Step{Name: fmt.Sprintf("%s reviews: %s", version, name), Run: run})
		}
		if version == "v1" {
			add("the kinds are defined and the operator starts", start)
		}
		add("the API server sends them", func(ctx context.Context, r *Restaurant) error { return r.register(ctx, version) })
		add("unknown toppings are denied, all in one answer", unknownToppings)
		add("toppings and a margherita are created in one go", margherita)
		add("the same pizza is read in both versions", bothVersions)
		add("a double portion is quantity 2", doublePortion)
		add("a pizza without toppings becomes a salami pizza", salami)
		add("an unknown field is pruned", unknownField)
		add("the cost appears, and follows the price of a topping", cost)
		add("a topping that is used cannot be deleted", usedTopping)
		add("absurd quantities are refused, and the operator goes on", quantities)
		add("500 pizzas are the same pizzas in both versions", manyPizzas)
		add("a watch delivers events in the other version", watchOther)
		add("the restaurant closes", func(ctx context.Context, r *Restaurant) error { return r.close(ctx, version) })
	}
	return all
}

// Menu puts toppings and a pizza on the menu again, after all steps.
func Menu(ctx context.Context, r *Restaurant) error { return margherita(ctx, r) }

// start defines the kinds, so that the operator's informers find them, and
// starts the operator.
func start(ctx context.Context, r *Restaurant) error {
	r.reviewVersion = "v1"
	definitions, _, err := r.endpoint().Manifests()
	if err != nil {
		return err
	}
	if err := r.applyFile(ctx, definitions, "crds.yaml"); err != nil {
		return err
	}
	if err := r.succeed(ctx, "", []string{"wait", "--for=condition=Established", "--timeout=20s", "crd/pizzas." + group, "crd/toppings." + group}); err != nil {
		return err
	}
	// No node is here to run the Deployment: the operator runs beside, with the
	// permissions of its service account and no others.
	deployment, err := pizza.Deployment("")
	if err != nil {
		return err
	}
	if err := r.applyFile(ctx, deployment, "deploy.yaml"); err != nil {
		return err
	}
	return r.startOperator(ctx)
}

// applyFile applies a manifest that is too long to be shown.
func (r *Restaurant) applyFile(ctx context.Context, manifest []byte, name string) error {
	args := []string{"apply", "--server-side", "-f", "-"}
	fmt.Fprintf(r.out, "$ kubectl apply --server-side -f %s\n", name)
	output, err := r.run(ctx, string(manifest), args...)
	fmt.Fprint(r.out, indent(output))
	if err != nil {
		return fmt.Errorf("kubectl apply: %w: %s", err, output)
	}
	return nil
}

// register tells the API server where the webhooks are, and waits until it calls
// all of them with reviews of that version.
func (r *Restaurant) register(ctx context.Context, version string) error {
	r.reviewVersion = version
	definitions, webhooks, err := r.endpoint().Manifests()
	if err != nil {
		return err
	}
	if err := r.applyFile(ctx, definitions, "crds.yaml"); err != nil {
		return err
	}
	if err := r.applyFile(ctx, webhooks, "webhooks.yaml"); err != nil {
		return err
	}
	before, err := r.requests()
	if err != nil {
		return err
	}
	probe := manifest(v1alpha1.GroupVersion.String(), "Pizza", "probe", "spec: {toppings: [nothing]}")
	topping := manifest(v1alpha1.GroupVersion.String(), "Topping", "probe", "spec: {cost: 1}")
	if err := eventually(ctx, 20*time.Second, func() error {
		// The pizza is refused for its topping, and the topping is deleted: all three
		// admission webhooks are called, and nothing is left. The conversion is called
		// before the probe is validated against the schema of the stored version.
		_, _ = r.run(ctx, probe, "create", "--dry-run=server", "-f", "-")
		_, _ = r.run(ctx, topping, "create", "-f", "-")
		_, _ = r.run(ctx, "", "delete", "topping", "probe", "--ignore-not-found")
		now, err := r.requests()
		if err != nil {
			return err
		}
		for _, path := range []string{"/admit/" + version + "/pizza", "/validate/" + version + "/pizza", "/validate/" + version + "/topping"} {
			if now[path] == before[path] {
				return fmt.Errorf("the API server has not called %s", path)
			}
		}
		return nil
	}); err != nil {
		return err
	}
	r.requestsAtSwitch, err = r.requests()
	return err
}

func unknownToppings(ctx context.Context, r *Restaurant) error {
	return r.fail(ctx, pizzaAlpha("margherita", "mozzarella", "tomato"), create,
		"is invalid", `spec.toppings[0]: Not found: "mozzarella"`, `spec.toppings[1]: Not found: "tomato"`)
}

func margherita(ctx context.Context, r *Restaurant) error {
	return r.succeed(ctx,
		topping("mozzarella", "1.0")+topping("tomato", "0.5")+topping("salami", "1.5")+pizzaAlpha("margherita", "mozzarella", "tomato"),
		[]string{"apply", "-f", "-"}, "pizza."+group+"/margherita created")
}

func bothVersions(ctx context.Context, r *Restaurant) error {
	if err := r.succeed(ctx, "", []string{"get", alphas, "margherita", "-o", "yaml"}, "  toppings:\n  - mozzarella\n  - tomato\n"); err != nil {
		return err
	}
	if err := r.succeed(ctx, "", []string{"get", betas, "margherita", "-o", "yaml"},
		"  toppings:\n  - name: mozzarella\n    quantity: 1\n  - name: tomato\n    quantity: 1\n"); err != nil {
		return err
	}
	return r.succeed(ctx, "", []string{"get", alphas, "margherita"}, "NAME", "TOPPINGS", "COST", "AGE", `["mozzarella","tomato"]`)
}

func doublePortion(ctx context.Context, r *Restaurant) error {
	if err := r.succeed(ctx, pizzaAlpha("double", "mozzarella", "tomato", "mozzarella"), create); err != nil {
		return err
	}
	return r.succeed(ctx, "", []string{"get", betas, "double", "-o", "yaml"},
		"  toppings:\n  - name: mozzarella\n    quantity: 2\n  - name: tomato\n    quantity: 1\n")
}

func salami(ctx context.Context, r *Restaurant) error {
	for _, gv := range []string{v1alpha1.GroupVersion.String(), v1beta1.GroupVersion.String()} {
		for i, spec := range []string{"spec: {}", "spec: null", "spec: {toppings: []}"} {
			name := fmt.Sprintf("salami-%s-%d", gv[len(group)+1:], i)
			if err := r.succeed(ctx, manifest(gv, "Pizza", name, spec), create); err != nil {
				return err
			}
			var pizza v1alpha1.Pizza
			if err := r.read(ctx, &pizza, alphas, name); err != nil {
				return err
			}
			if want := []string{"tomato", "mozzarella", "salami"}; !slices.Equal(pizza.Spec.Toppings, want) {
				return fmt.Errorf("%s with %s has the toppings %q, not %q", name, spec, pizza.Spec.Toppings, want)
			}
		}
	}
	return r.succeed(ctx, "", []string{"get", alphas}, `["tomato","mozzarella","salami"]`)
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

func cost(ctx context.Context, r *Restaurant) error {
	costs := func(want float64) error {
		if err := eventually(ctx, 15*time.Second, func() error {
			for _, version := range []string{alphas, betas} {
				var pizza struct {
					Status struct {
						Cost *float64 `json:"cost"`
					} `json:"status"`
				}
				if err := r.read(ctx, &pizza, version, "double"); err != nil {
					return err
				}
				if got := pizza.Status.Cost; got == nil || *got != want {
					return fmt.Errorf("%s double costs %v, not %v", version, got, want)
				}
			}
			return nil
		}); err != nil {
			return err
		}
		return r.succeed(ctx, "", []string{"get", "pizza", "double"}, fmt.Sprintf(" %v ", want))
	}
	if err := costs(2.5); err != nil {
		return err
	}
	if err := r.succeed(ctx, "", []string{"patch", "topping", "mozzarella", "--type=merge", "-p", `{"spec":{"cost":1.1}}`}); err != nil {
		return err
	}
	return costs(2.7)
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

func quantities(ctx context.Context, r *Restaurant) error {
	for _, c := range []struct{ quantity, message string }{
		{"0", "spec.toppings[0].quantity: Invalid value: 0: spec.toppings[0].quantity in body should be greater than or equal to 1"},
		{"1000000000", "spec.toppings[0].quantity: Invalid value: 1000000000: spec.toppings[0].quantity in body should be less than or equal to 100"},
	} {
		absurd := manifest(v1beta1.GroupVersion.String(), "Pizza", "absurd", "spec:\n  toppings: [{name: tomato, quantity: "+c.quantity+"}]")
		if err := r.fail(ctx, absurd, create, c.message); err != nil {
			return err
		}
	}
	tooMany := manifest(v1beta1.GroupVersion.String(), "Pizza", "absurd", "spec:\n  toppings: [{name: tomato, quantity: 60}, {name: salami, quantity: 60}]")
	if err := r.fail(ctx, tooMany, create, "a pizza has at most 100 portions of toppings"); err != nil {
		return err
	}
	return r.succeed(ctx, "", []string{"get", alphas, "margherita"}, `["mozzarella","tomato"]`)
}

func manyPizzas(ctx context.Context, r *Restaurant) error {
	const count = 500
	names := []string{"mozzarella", "tomato", "salami"}
	var many strings.Builder
	for i := range count {
		a, b, c := names[i%3], names[i/3%3], names[i/9%3]
		if i%2 == 0 {
			many.WriteString(pizzaAlpha(fmt.Sprintf("many-%03d", i), a, b, c))
			continue
		}
		spec := fmt.Sprintf("spec:\n  toppings:\n  - {name: %s, quantity: %d}", a, 1+i%5)
		if b != a {
			spec += fmt.Sprintf("\n  - {name: %s}", b)
		}
		many.WriteString(manifest(v1beta1.GroupVersion.String(), "Pizza", fmt.Sprintf("many-%03d", i), spec))
	}
	if err := r.succeed(ctx, many.String(), create, "many-499 created"); err != nil {
		return err
	}
	// The controller is still writing costs: read until both lists are of one moment.
	return eventually(ctx, 60*time.Second, func() error {
		var alpha v1alpha1.PizzaList
		var beta v1beta1.PizzaList
		if err := r.read(ctx, &alpha, alphas); err != nil {
			return permanent{err}
		}
		if err := r.read(ctx, &beta, betas); err != nil {
			return permanent{err}
		}
		if len(alpha.Items) < count || len(alpha.Items) != len(beta.Items) {
			return permanent{fmt.Errorf("there are %d pizzas in v1alpha1 and %d in v1beta1", len(alpha.Items), len(beta.Items))}
		}
		for i := range alpha.Items {
			a, b := &alpha.Items[i], &beta.Items[i]
			if a.ResourceVersion != b.ResourceVersion {
				return fmt.Errorf("the pizzas are still changing")
			}
			if err := samePizza(a, b); err != nil {
				return permanent{err}
			}
		}
		fmt.Fprintf(r.out, "$ kubectl get %s; kubectl get %s\n  %d and %d pizzas, each with the same metadata, toppings and cost in both\n",
			alphas, betas, len(alpha.Items), len(beta.Items))
		return nil
	})
}

// samePizza compares two versions of a pizza; the order of toppings does not
// matter.
func samePizza(a *v1alpha1.Pizza, b *v1beta1.Pizza) error {
	if !reflect.DeepEqual(a.ObjectMeta, b.ObjectMeta) {
		return fmt.Errorf("%s has different metadata:\n%+v\n%+v", a.Name, a.ObjectMeta, b.ObjectMeta)
	}
	portions := map[string]int32{}
	for _, name := range a.Spec.Toppings {
		portions[name]++
	}
	want := map[string]int32{}
	for _, t := range b.Spec.Toppings {
		want[t.Name] = *t.Quantity
	}
	if !reflect.DeepEqual(portions, want) || !reflect.DeepEqual(a.Status.Cost, b.Status.Cost) {
		return fmt.Errorf("%s differs: %v %v, and %v %v", a.Name, portions, a.Status, want, b.Status)
	}
	return nil
}

func watchOther(ctx context.Context, r *Restaurant) (err error) {
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

// close removes everything, and checks which reviews the API server has sent.
func (r *Restaurant) close(ctx context.Context, version string) error {
	for _, resource := range []string{"pizzas", "toppings"} {
		if output, err := r.run(ctx, "", "delete", resource, "--all", "--wait=false"); err != nil {
			return fmt.Errorf("kubectl delete %s: %w: %s", resource, err, output)
		}
		fmt.Fprintf(r.out, "$ kubectl delete %s --all\n", resource)
		if resource == "pizzas" {
			if err := r.toppingsAreFree(ctx); err != nil {
				return err
			}
		}
	}
	now, err := r.requests()
	if err != nil {
		return err
	}
	for path, n := range now {
		n -= r.requestsAtSwitch[path]
		ours := strings.Contains(path, "/"+version+"/")
		if ours {
			fmt.Fprintf(r.out, "  %s has answered %v requests\n", path, n)
		}
		// Requests for the definition as it was before may still be under way, and
		// convert with it: apiextensions-apiserver drains them at its leisure.
		if ours != (n > 0) && (ours || !strings.HasPrefix(path, "/convert/")) {
			return fmt.Errorf("%s has answered %v requests while the API server was to send %s", path, n, version)
		}
	}
	return nil
}

// toppingsAreFree waits until the operator has seen that no pizza is left.
func (r *Restaurant) toppingsAreFree(ctx context.Context) error {
	return eventually(ctx, 20*time.Second, func() error {
		output, err := r.run(ctx, "", "delete", "toppings", "--all", "--dry-run=server")
		if err != nil {
			return fmt.Errorf("%w: %s", err, output)
		}
		return nil
	})
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
