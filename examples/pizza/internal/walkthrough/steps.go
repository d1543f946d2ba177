package walkthrough

import (
	"bufio"
	"bytes"
	"context"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"reflect"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/yaml"

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
		} else {
			add("the operator starts again and asks for them", func(ctx context.Context, r *Restaurant) error { return r.restart(ctx, version) })
		}
		add("the operator has registered itself", func(ctx context.Context, r *Restaurant) error { return r.registered(ctx, version) })
		add("the API server sends them", func(ctx context.Context, r *Restaurant) error { return r.called(ctx, version) })
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
		add("a CA bundle that somebody overwrites is repaired", brokenBundle)
		add("the Secret is deleted, and pizzas can still be read", deletedSecret)
		add("the restaurant closes", func(ctx context.Context, r *Restaurant) error { return r.close(ctx, version) })
	}
	return all
}

// Menu puts toppings and a pizza on the menu again, after all steps.
func Menu(ctx context.Context, r *Restaurant) error { return margherita(ctx, r) }

// start applies what the operator says that a cluster needs, and starts the operator.
func start(ctx context.Context, r *Restaurant) error {
	fmt.Fprintln(r.out, "$ pizza-operator manifests >all.yaml")
	manifests, err := exec.CommandContext(ctx, r.operatorBinary, "manifests").Output()
	if err != nil {
		return err
	}
	// No node is here to run the Deployment: the operator runs beside, with the
	// permissions of its service account and no others.
	fmt.Fprintln(r.out, "# The operator runs beside the cluster, so the API server finds it by another Service.")
	fmt.Fprintln(r.out, "# The webhook configurations are left out, too: the operator makes them itself.")
	rest, err := without(manifests, "Service", "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
	if err != nil {
		return err
	}
	if err := r.applyFile(ctx, rest, "rest.yaml"); err != nil {
		return err
	}
	service := manifest("v1", "Service", pizza.Name, "  namespace: "+pizza.Namespace+"\nspec: {type: ExternalName, externalName: localhost}")
	if err := r.succeed(ctx, service, create); err != nil {
		return err
	}
	if err := r.succeed(ctx, "", []string{"wait", "--for=condition=Established", "--timeout=20s", "crd/pizzas." + group, "crd/toppings." + group}); err != nil {
		return err
	}
	return r.startOperator(ctx)
}

// without returns YAML documents without the objects of some kinds; there must be one of each.
func without(manifests []byte, kinds ...string) ([]byte, error) {
	var rest []string
	for _, document := range strings.Split(string(manifests), "---\n") {
		var object metav1.TypeMeta
		if err := yaml.Unmarshal([]byte(document), &object); err != nil {
			return nil, err
		}
		if i := slices.Index(kinds, object.Kind); i >= 0 {
			kinds = slices.Delete(kinds, i, i+1)
			continue
		}
		rest = append(rest, document)
	}
	if len(kinds) > 0 {
		return nil, fmt.Errorf("the manifests have no %s", strings.Join(kinds, ", "))
	}
	return []byte(strings.Join(rest, "---\n")), nil
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

// restart starts the operator again, so that it asks for reviews of another version.
func (r *Restaurant) restart(ctx context.Context, version string) error {
	fmt.Fprintln(r.out, "$ kill %1")
	if err := r.Close(); err != nil {
		return err
	}
	return r.startOperator(ctx, "--review-versions="+version)
}

// webhook is what is registered of one.
type webhook struct {
	Name           string   `json:"name"`
	ReviewVersions []string `json:"admissionReviewVersions"`
	ClientConfig   struct {
		CABundle []byte `json:"caBundle"`
		Service  struct {
			Path string `json:"path"`
		} `json:"service"`
	} `json:"clientConfig"`
}

// webhooks returns what is registered of all webhooks.
func (r *Restaurant) webhooks(ctx context.Context) ([]webhook, error) {
	var crd struct {
		Spec struct {
			Conversion struct {
				Webhook struct {
					webhook
					ReviewVersions []string `json:"conversionReviewVersions"`
				} `json:"webhook"`
			} `json:"conversion"`
		} `json:"spec"`
	}
	if err := r.read(ctx, &crd, "crd", "pizzas."+group); err != nil {
		return nil, err
	}
	conversion := crd.Spec.Conversion.Webhook
	conversion.webhook.Name, conversion.webhook.ReviewVersions = "the conversion", conversion.ReviewVersions
	all := []webhook{conversion.webhook}
	for _, kind := range []string{"mutatingwebhookconfiguration", "validatingwebhookconfiguration"} {
		var configuration struct {
			Webhooks []webhook `json:"webhooks"`
		}
		if err := r.read(ctx, &configuration, kind, pizza.Name); err != nil {
			return nil, err
		}
		all = append(all, configuration.Webhooks...)
	}
	return all, nil
}

// trusted checks that each webhook is registered with the CAs that are in the Secret.
func (r *Restaurant) trusted(ctx context.Context) error {
	ca, err := r.caBundle(ctx)
	if err != nil {
		return err
	}
	all, err := r.webhooks(ctx)
	if err != nil {
		return err
	}
	for _, w := range all {
		if len(ca) == 0 || !bytes.Equal(ca, w.ClientConfig.CABundle) {
			return fmt.Errorf("%s is registered with another CA bundle than that in the Secret", w.Name)
		}
	}
	return nil
}

// registered checks what the operator has told the API server.
func (r *Restaurant) registered(ctx context.Context, version string) error {
	if err := r.succeed(ctx, "", []string{"get", "mutatingwebhookconfigurations,validatingwebhookconfigurations"},
		"mutatingwebhookconfiguration.admissionregistration.k8s.io/"+pizza.Name, "validatingwebhookconfiguration.admissionregistration.k8s.io/"+pizza.Name); err != nil {
		return err
	}
	// It changes the rules of another release when it is ready itself, and so a moment later.
	for _, w := range [][2]string{{"mutating", "/default/pizzas"}, {"validating", "/validate/pizzas"}} {
		if err := r.succeed(ctx, "", []string{"wait", w[0] + "webhookconfigurations/" + pizza.Name, "--timeout=10s",
			"--for=jsonpath={.webhooks[0].clientConfig.service.path}=/" + version + w[1]}); err != nil {
			return err
		}
	}
	if err := r.succeed(ctx, "", []string{"get", "validatingwebhookconfigurations", pizza.Name, "-o",
		`jsonpath={range .webhooks[*]}{.name} {.clientConfig.service.path}{"\n"}{end}`}, "/"+version+"/validate/pizzas", "/"+version+"/validate/toppings"); err != nil {
		return err
	}
	// The operator goes first for reviews of that version. Of both, the API server takes v1.
	versions := map[string][]string{"v1": {"v1", "v1beta1"}, "v1beta1": {"v1beta1"}}[version]
	all, err := r.webhooks(ctx)
	if err != nil {
		return err
	}
	var paths []string
	for _, w := range all {
		paths = append(paths, w.ClientConfig.Service.Path)
		if !slices.Equal(w.ReviewVersions, versions) {
			return fmt.Errorf("%s is registered for reviews %q, not %q", w.Name, w.ReviewVersions, versions)
		}
	}
	if want := append([]string{"/" + version + "/convert"}, admissionPaths(version)...); !slices.Equal(paths, want) {
		return fmt.Errorf("the paths are %q, not %q", paths, want)
	}
	if err := r.trusted(ctx); err != nil {
		return err
	}
	certificate, err := r.caCertificates(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(r.out, "  all %d with the caBundle of secret/%s: %s, until %s\n", len(all), secret, certificate[0].Subject.CommonName, certificate[0].NotAfter.Format(time.DateOnly))
	return nil
}

func (r *Restaurant) caCertificates(ctx context.Context) ([]*x509.Certificate, error) {
	ca, err := r.caBundle(ctx)
	if err != nil {
		return nil, err
	}
	return cert.ParseCertsPEM(ca)
}

func admissionPaths(version string) []string {
	return []string{"/" + version + "/default/pizzas", "/" + version + "/validate/pizzas", "/" + version + "/validate/toppings"}
}

// called waits until the API server calls all webhooks with reviews of that version.
func (r *Restaurant) called(ctx context.Context, version string) error {
	before, err := r.requests(ctx)
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
		now, err := r.requests(ctx)
		if err != nil {
			return err
		}
		for _, path := range admissionPaths(version) {
			if now[path] == before[path] {
				return fmt.Errorf("the API server has not called %s", path)
			}
		}
		return nil
	}); err != nil {
		return err
	}
	r.requestsAtSwitch, err = r.requests(ctx)
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

// brokenBundle overwrites what the API server trusts, of a webhook and of the conversion.
func brokenBundle(ctx context.Context, r *Restaurant) error {
	other, _, err := cert.GenerateSelfSignedCertKey("somebody.example.com", nil, nil)
	if err != nil {
		return err
	}
	bundle := base64.StdEncoding.EncodeToString(other)
	for _, c := range []struct{ kind, name, path string }{
		{"validatingwebhookconfiguration", pizza.Name, "/webhooks/0/clientConfig/caBundle"},
		{"crd", "pizzas." + group, "/spec/conversion/webhook/clientConfig/caBundle"},
	} {
		fmt.Fprintf(r.out, "$ kubectl patch %s %s --type=json -p '[{\"op\":\"replace\",\"path\":%q,\"value\":\"…\"}]'\n", c.kind, c.name, c.path)
		output, err := r.run(ctx, "", "patch", c.kind, c.name, "--type=json", "-p", fmt.Sprintf(`[{"op":"replace","path":%q,"value":%q}]`, c.path, bundle))
		fmt.Fprint(r.out, indent(output))
		switch {
		case err != nil:
			return fmt.Errorf("kubectl patch: %w: %s", err, output)
		case strings.Contains(output, "no change"):
			return fmt.Errorf("the CA bundle was that one already: %s", output)
		}
	}
	begin := time.Now()
	if err := eventually(ctx, 20*time.Second, func() error { return r.trusted(ctx) }); err != nil {
		return err
	}
	fmt.Fprintf(r.out, "  repaired: %.1f s later, all have the caBundle of secret/%s again\n", time.Since(begin).Seconds(), secret)
	// The API server learns of it a moment later.
	return eventually(ctx, 20*time.Second, func() error {
		output, err := r.run(ctx, pizzaAlpha("wrong", "nails"), "create", "--dry-run=server", "-f", "-")
		if err == nil {
			return permanent{errors.New("a pizza with nails is accepted")}
		}
		return contains(output, `spec.toppings[0]: Not found: "nails"`)
	})
}

// deletedSecret deletes the CA of the operator, which then makes the next one, while
// pizzas are read.
func deletedSecret(ctx context.Context, r *Restaurant) error {
	before, err := r.caCertificates(ctx)
	if err != nil {
		return err
	}
	if err := r.succeed(ctx, "", []string{"delete", "secret", "-n", pizza.Namespace, secret}); err != nil {
		return err
	}
	reads := 0
	err = eventually(ctx, 30*time.Second, func() error {
		// No read may fail meanwhile, in the version that is converted.
		if output, err := r.run(ctx, "", "get", alphas, "margherita"); err != nil {
			return permanent{fmt.Errorf("a pizza cannot be read: %w: %s", err, output)}
		}
		reads++
		if err := r.trusted(ctx); err != nil {
			return err
		}
		var s corev1.Secret
		if err := r.read(ctx, &s, "secret", "-n", pizza.Namespace, secret); err != nil {
			return err
		}
		current, err := cert.ParseCertsPEM(s.Data["tls.crt"])
		if err != nil {
			return err
		}
		if slices.ContainsFunc(before, current[0].Equal) {
			return errors.New("the CA is still the one from before")
		}
		return nil
	})
	if err != nil {
		return err
	}
	after, err := r.caCertificates(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(r.out, "$ while true; do kubectl get %s margherita; done\n  %d times, and each time it was there\n", alphas, reads)
	fmt.Fprintf(r.out, "  meanwhile secret/%s is back with the next CA; %d are trusted\n", secret, len(after))
	return r.succeed(ctx, "", []string{"get", alphas, "margherita"}, `["mozzarella","tomato"]`)
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
	now, err := r.requests(ctx)
	if err != nil {
		return err
	}
	paths := append([]string{"/" + version + "/convert"}, admissionPaths(version)...)
	for _, path := range paths {
		n := now[path] - r.requestsAtSwitch[path]
		fmt.Fprintf(r.out, "  %s has answered %v requests\n", path, n)
		if n <= 0 {
			return fmt.Errorf("%s has answered no requests while the API server was to send %s", path, version)
		}
	}
	for path, n := range now {
		if !slices.Contains(paths, path) {
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
