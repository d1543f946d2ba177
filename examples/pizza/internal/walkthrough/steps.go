package walkthrough

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/yaml"

	"github.com/crdkit/crdkit/examples/internal/menu"
	"github.com/crdkit/crdkit/examples/internal/show"
	"github.com/crdkit/crdkit/examples/pizza"
	"github.com/crdkit/crdkit/examples/pizza/api/v1alpha1"
	"github.com/crdkit/crdkit/examples/pizza/api/v1beta1"
)

// Steps returns the steps for each version of the reviews that the API server can send, in
// order.
func (r *Restaurant) Steps() []show.Step {
	var all []show.Step
	for _, version := range []string{"v1", "v1beta1"} {
		add := func(name string, run func(context.Context) error) {
			all = append(all, show.Step{Name: fmt.Sprintf("%s reviews: %s", version, name), Run: run})
		}
		of := func(run func(ctx context.Context, version string) error) func(context.Context) error {
			return func(ctx context.Context) error { return run(ctx, version) }
		}
		if version == "v1" {
			add("the kinds are defined and the operator starts", r.start)
		} else {
			add("the operator starts again and asks for them", of(r.restart))
		}
		add("the API server trusts the operator", of(r.registered))
		add("the API server sends them", of(r.called))
		add("unknown toppings are denied, all in one answer", r.UnknownToppings)
		add("toppings and a margherita are created in one go", r.Margherita)
		add("a double portion is quantity 2", r.DoublePortion)
		add("the cost appears, and follows the price of a topping", r.cost)
		add("a topping that is used cannot be deleted", r.UsedTopping)
		add("an overwritten CA bundle is repaired", r.brokenBundle)
		add("the Secret is deleted, and pizzas can still be read", r.deletedSecret)
		add("the same pizza is read in both versions", r.BothVersions)
		add("a pizza without toppings becomes a salami pizza", r.Salami)
		add("an unknown field is pruned", r.UnknownField)
		add("absurd quantities are refused, and the operator goes on", r.Quantities)
		add("a watch delivers events in the other version", r.WatchOther)
		add(fmt.Sprintf("%d pizzas are the same pizzas in both versions", r.many), r.manyPizzas)
		add("the restaurant closes", of(r.close))
	}
	return all
}

// endpoint returns the arguments on which the operator and its manifests must agree.
func (r *Restaurant) endpoint(args ...string) []string {
	return append([]string{fmt.Sprintf("--webhook-service-port=%d", r.port)}, args...)
}

// start applies what the operator says that a cluster needs, and starts the operator.
func (r *Restaurant) start(ctx context.Context) error {
	// No node is here to run the Deployment: the operator runs beside, with the
	// permissions of its service account and no others.
	if err := r.apply(ctx, r.endpoint()); err != nil {
		return err
	}
	service := menu.Manifest("v1", "Service", pizza.Name, "  namespace: "+pizza.Namespace+"\nspec: {type: ExternalName, externalName: localhost}")
	if err := r.Succeed(ctx, service, menu.Create); err != nil {
		return err
	}
	if err := r.Succeed(ctx, "", []string{"wait", "--for=condition=Established", "--timeout=20s", "crd/pizzas." + menu.Group, "crd/toppings." + menu.Group}); err != nil {
		return err
	}
	// A creation is delayed by two seconds if it is sent within two seconds after the definition was established,
	// which the definition says in whole seconds (customresource_handler.go).
	established := time.Now().Truncate(time.Second)
	err := r.startOperator(ctx, r.endpoint())
	time.Sleep(time.Until(established.Add(2 * time.Second)))
	return err
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

// restart starts the operator again, so that it asks for reviews of another version.
func (r *Restaurant) restart(ctx context.Context, version string) error {
	fmt.Fprintln(r.Out, "$ kill %1")
	if err := r.Close(); err != nil {
		return err
	}
	endpoint := r.endpoint("--review-versions=" + version)
	if err := r.apply(ctx, endpoint); err != nil {
		return err
	}
	return r.startOperator(ctx, endpoint)
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
	if err := r.read(ctx, &crd, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/pizzas."+menu.Group); err != nil {
		return nil, err
	}
	conversion := crd.Spec.Conversion.Webhook
	conversion.webhook.Name, conversion.webhook.ReviewVersions = "the conversion", conversion.ReviewVersions
	all := []webhook{conversion.webhook}
	for _, kind := range []string{"mutatingwebhookconfigurations", "validatingwebhookconfigurations"} {
		var configuration struct {
			Webhooks []webhook `json:"webhooks"`
		}
		if err := r.read(ctx, &configuration, "/apis/admissionregistration.k8s.io/v1/"+kind+"/"+pizza.Name); err != nil {
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

// registered checks what the API server has been told.
func (r *Restaurant) registered(ctx context.Context, version string) error {
	if err := r.Succeed(ctx, "", []string{"get", "mutatingwebhookconfigurations,validatingwebhookconfigurations"},
		"mutatingwebhookconfiguration.admissionregistration.k8s.io/"+pizza.Name, "validatingwebhookconfiguration.admissionregistration.k8s.io/"+pizza.Name); err != nil {
		return err
	}
	if err := r.Succeed(ctx, "", []string{"get", "validatingwebhookconfigurations", pizza.Name, "-o",
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
	fmt.Fprintf(r.Out, "  all %d with the caBundle of secret/%s: %s, until %s\n", len(all), secret, certificate[0].Subject.CommonName, certificate[0].NotAfter.Format(time.DateOnly))
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
	if err := show.Eventually(ctx, 2*time.Minute, func() error {
		// The pizza is refused for its topping, and the topping is deleted: all three
		// admission webhooks are called, and nothing is left. The conversion is called
		// before the probe is validated against the schema of the stored version.
		toppings := "/apis/" + v1alpha1.GroupVersion.String() + "/toppings"
		pizza := `{"apiVersion":"` + v1alpha1.GroupVersion.String() + `","kind":"Pizza","metadata":{"name":"probe"},"spec":{"toppings":["nothing"]}}`
		topping := `{"apiVersion":"` + v1alpha1.GroupVersion.String() + `","kind":"Topping","metadata":{"name":"probe"},"spec":{"cost":1}}`
		_ = r.client.Post().AbsPath(pizzasPath("v1alpha1")).Param("dryRun", "All").Body([]byte(pizza)).Do(ctx)
		_ = r.client.Post().AbsPath(toppings).Body([]byte(topping)).Do(ctx)
		_ = r.client.Delete().AbsPath(toppings + "/probe").Do(ctx)
		now, err := r.requests(ctx)
		if err != nil {
			return err
		}
		for _, path := range admissionPaths(version) {
			if now[path] == before[path] {
				return fmt.Errorf("the API server has not called %s", path)
			}
		}
		r.requestsAtSwitch = now
		return nil
	}); err != nil {
		return err
	}
	for _, path := range admissionPaths(version) {
		fmt.Fprintf(r.Out, "  %s has answered %v requests\n", path, r.requestsAtSwitch[path])
	}
	return nil
}

func (r *Restaurant) cost(ctx context.Context) error {
	costs := func(want float64) error {
		if err := show.Eventually(ctx, 2*time.Minute, func() error {
			for _, version := range []string{"v1alpha1", "v1beta1"} {
				var pizza struct {
					Status struct {
						Cost *float64 `json:"cost"`
					} `json:"status"`
				}
				if err := r.read(ctx, &pizza, pizzasPath(version)+"/double"); err != nil {
					return err
				}
				if got := pizza.Status.Cost; got == nil || *got != want {
					return fmt.Errorf("double costs %v in %s, not %v", got, version, want)
				}
			}
			return nil
		}); err != nil {
			return err
		}
		return r.Succeed(ctx, "", []string{"get", "pizza", "double"}, fmt.Sprintf(" %v ", want))
	}
	if err := costs(2.5); err != nil {
		return err
	}
	if err := r.Succeed(ctx, "", []string{"patch", "topping", "mozzarella", "--type=merge", "-p", `{"spec":{"cost":1.1}}`}); err != nil {
		return err
	}
	return costs(2.7)
}

func (r *Restaurant) manyPizzas(ctx context.Context) error {
	names := []string{"mozzarella", "tomato", "salami"}
	var many strings.Builder
	for i := range r.many {
		a, b, c := names[i%3], names[i/3%3], names[i/9%3]
		if i%2 == 0 {
			many.WriteString(menu.Pizza(fmt.Sprintf("many-%03d", i), a, b, c))
			continue
		}
		spec := fmt.Sprintf("spec:\n  toppings:\n  - {name: %s, quantity: %d}", a, 1+i%5)
		if b != a {
			spec += fmt.Sprintf("\n  - {name: %s}", b)
		}
		many.WriteString(menu.Manifest(v1beta1.GroupVersion.String(), "Pizza", fmt.Sprintf("many-%03d", i), spec))
	}
	if err := r.Succeed(ctx, many.String(), menu.Create, fmt.Sprintf("many-%03d created", r.many-1)); err != nil {
		return err
	}
	// The controller is still writing costs: wait for those, and read until both lists are of one moment.
	if err := show.Eventually(ctx, 2*time.Minute, func() error {
		var all v1beta1.PizzaList
		if err := r.read(ctx, &all, pizzasPath("v1beta1")); err != nil {
			return err
		}
		if i := slices.IndexFunc(all.Items, func(p v1beta1.Pizza) bool { return p.Status.Cost == nil }); i >= 0 {
			return fmt.Errorf("%s has no cost", all.Items[i].Name)
		}
		return nil
	}); err != nil {
		return err
	}
	return show.Eventually(ctx, 2*time.Minute, func() error {
		var alpha v1alpha1.PizzaList
		var beta v1beta1.PizzaList
		if err := r.Read(ctx, &alpha, menu.Alphas); err != nil {
			return show.Permanent(err)
		}
		if err := r.Read(ctx, &beta, menu.Betas); err != nil {
			return show.Permanent(err)
		}
		if len(alpha.Items) < r.many || len(alpha.Items) != len(beta.Items) {
			return show.Permanent(fmt.Errorf("got %d pizzas in v1alpha1 and %d in v1beta1", len(alpha.Items), len(beta.Items)))
		}
		for i := range alpha.Items {
			a, b := &alpha.Items[i], &beta.Items[i]
			if a.ResourceVersion != b.ResourceVersion {
				return fmt.Errorf("the pizzas are still changing")
			}
			if err := samePizza(a, b); err != nil {
				return show.Permanent(err)
			}
		}
		fmt.Fprintf(r.Out, "$ kubectl get %s; kubectl get %s\n  %d and %d pizzas, each with the same metadata, toppings and cost in both\n",
			menu.Alphas, menu.Betas, len(alpha.Items), len(beta.Items))
		return nil
	})
}

// pizzasPath returns the path of the pizzas in a version.
func pizzasPath(version string) string {
	return "/apis/" + menu.Group + "/" + version + "/namespaces/default/pizzas"
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

// brokenBundle overwrites what the API server trusts, of a webhook and of the conversion.
func (r *Restaurant) brokenBundle(ctx context.Context) error {
	other, _, err := cert.GenerateSelfSignedCertKey("somebody.example.com", nil, nil)
	if err != nil {
		return err
	}
	bundle := base64.StdEncoding.EncodeToString(other)
	for _, c := range []struct{ kind, name, path string }{
		{"validatingwebhookconfiguration", pizza.Name, "/webhooks/0/clientConfig/caBundle"},
		{"crd", "pizzas." + menu.Group, "/spec/conversion/webhook/clientConfig/caBundle"},
	} {
		shown := fmt.Sprintf("patch %s %s --type=json -p '[{\"op\":\"replace\",\"path\":%q,\"value\":\"…\"}]'", c.kind, c.name, c.path)
		output, err := r.ShowAs(ctx, shown, "", "patch", c.kind, c.name, "--type=json", "-p", fmt.Sprintf(`[{"op":"replace","path":%q,"value":%q}]`, c.path, bundle))
		switch {
		case err != nil:
			return fmt.Errorf("kubectl patch: %w: %s", err, output)
		case strings.Contains(output, "no change"):
			return fmt.Errorf("the CA bundle was that one already: %s", output)
		}
	}
	begin := time.Now()
	if err := show.Eventually(ctx, 2*time.Minute, func() error { return r.trusted(ctx) }); err != nil {
		return err
	}
	fmt.Fprintf(r.Out, "  repaired: %.1f s later, all have the caBundle of secret/%s again\n", time.Since(begin).Seconds(), secret)
	// The API server learns of it a moment later.
	return show.Eventually(ctx, 2*time.Minute, func() error {
		output, err := r.Run(ctx, menu.Pizza("wrong", "nails"), "create", "--dry-run=server", "-f", "-")
		if err == nil {
			return show.Permanent(errors.New("a pizza with nails is accepted"))
		}
		return show.Contains(output, `spec.toppings[0]: Not found: "nails"`)
	})
}

// deletedSecret deletes the CA of the operator, which then makes the next one, while
// pizzas are read.
func (r *Restaurant) deletedSecret(ctx context.Context) error {
	before, err := r.caCertificates(ctx)
	if err != nil {
		return err
	}
	if err := r.Succeed(ctx, "", []string{"delete", "secret", "-n", pizza.Namespace, secret}); err != nil {
		return err
	}
	reads := 0
	err = show.Eventually(ctx, 2*time.Minute, func() error {
		// No read may fail meanwhile, in the version that is converted.
		if err := r.Try(ctx, "", "get", menu.Alphas, "margherita"); err != nil {
			return show.Permanent(fmt.Errorf("a pizza cannot be read: %w", err))
		}
		reads++
		if err := r.trusted(ctx); err != nil {
			return err
		}
		var s corev1.Secret
		if err := r.read(ctx, &s, secretPath); err != nil {
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
	fmt.Fprintf(r.Out, "$ while true; do kubectl get %s margherita; done\n  %d times, and each time it was there\n", menu.Alphas, reads)
	fmt.Fprintf(r.Out, "  meanwhile secret/%s is back with the next CA; %d are trusted\n", secret, len(after))
	return r.Succeed(ctx, "", []string{"get", menu.Alphas, "margherita"}, `["mozzarella","tomato"]`)
}

// close removes everything, and checks which reviews the API server has sent.
func (r *Restaurant) close(ctx context.Context, version string) error {
	for _, resource := range []string{"pizzas", "toppings"} {
		if err := r.Try(ctx, "", "delete", resource, "--all", "--wait=false"); err != nil {
			return err
		}
		fmt.Fprintf(r.Out, "$ kubectl delete %s --all\n", resource)
		if resource == "pizzas" {
			if err := r.ToppingsAreFree(ctx); err != nil {
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
		fmt.Fprintf(r.Out, "  %s has answered %v requests\n", path, n)
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
