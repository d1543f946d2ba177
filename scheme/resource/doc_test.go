package resource_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/options"
	"k8s.io/apiserver/pkg/util/compatibility"
	"k8s.io/client-go/dynamic"

	"github.com/crdkit/crdkit/conversion"
	"github.com/crdkit/crdkit/examples/pizza"
	"github.com/crdkit/crdkit/examples/pizza/api/v1alpha1"
	"github.com/crdkit/crdkit/examples/pizza/api/v1beta1"
	"github.com/crdkit/crdkit/schema"
	"github.com/crdkit/crdkit/schema/apiservertest"
	"github.com/crdkit/crdkit/scheme"
	"github.com/crdkit/crdkit/scheme/resource"
	"github.com/crdkit/crdkit/test/aggregated"
	"github.com/crdkit/crdkit/test/expect"
)

func validateV1alpha1(context.Context, *v1alpha1.Pizza, *v1alpha1.Pizza) field.ErrorList { return nil }

func validateV1beta1(_ context.Context, p, _ *v1beta1.Pizza) (errs field.ErrorList) {
	for i, topping := range p.Spec.Toppings {
		if topping.Name == "pineapple" {
			errs = append(errs, field.Forbidden(field.NewPath("spec", "toppings").Index(i), "no pineapple"))
		}
	}
	return errs
}

func toHub(_ context.Context, in *v1alpha1.Pizza, out *v1beta1.Pizza) error {
	for _, name := range in.Spec.Toppings {
		out.Spec.Toppings = append(out.Spec.Toppings, v1beta1.PizzaTopping{Name: name})
	}
	return nil
}

func fromHub(_ context.Context, in *v1beta1.Pizza, out *v1alpha1.Pizza) error {
	for _, topping := range in.Spec.Toppings {
		out.Spec.Toppings = append(out.Spec.Toppings, topping.Name)
	}
	return nil
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// The server of the package documentation, without etcd and cluster.
func Example() {
	ctx, stop := context.WithCancel(context.Background())
	pizzaYAML := pizza.Definitions()[0]

	s, err := scheme.New(
		scheme.Version(v1beta1.GroupVersion, &v1beta1.Pizza{}, &v1beta1.PizzaList{}),
		scheme.Version(v1alpha1.GroupVersion, &v1alpha1.Pizza{}, &v1alpha1.PizzaList{}))
	must(err)
	reg := conversion.NewRegistry(s)
	err = conversion.AddSpoke(reg, toHub, fromHub)
	must(err)
	err = scheme.Install(s, scheme.APIServer(), scheme.Functions(reg.AddToScheme))
	must(err)
	definition, err := schema.Parse(pizzaYAML)
	must(err)
	pizzas, err := resource.New[*v1beta1.Pizza](s, definition,
		resource.Validate(validateV1alpha1),
		resource.Validate(validateV1beta1))
	must(err)

	o := options.NewRecommendedOptions("/registry", nil)
	config := server.NewRecommendedConfig(serializer.NewCodecFactory(s))
	err = aggregated.InProcess(o, config, apiservertest.RESTOptions(ctx, nil))
	must(err)
	err = o.SecureServing.MaybeDefaultWithSelfSignedCerts("localhost", nil, nil)
	must(err)
	config.EffectiveVersion = compatibility.DefaultBuildEffectiveVersion()
	resource.OpenAPI(&config.Config, "pizzas")
	err = o.ApplyTo(config)
	must(err)
	srv, err := config.Complete().New("pizzas", server.NewEmptyDelegate())
	must(err)
	err = resource.Install(srv, &config.Config, pizzas)
	must(err)
	stopped := make(chan error)
	run := func() error {
		return srv.PrepareRun().RunWithContext(ctx)
	}
	go func() { stopped <- run() }()

	must(aggregated.Ready(ctx, srv.LoopbackClientConfig, stopped))
	client := dynamic.NewForConfigOrDie(srv.LoopbackClientConfig).Resource(v1beta1.GroupVersion.WithResource("pizzas")).Namespace("default")
	for _, topping := range []map[string]any{{"name": "ham"}, {"name": "ham", "quantity": int64(0)}, {"name": "pineapple"}} {
		p := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"toppings": []any{topping}}}}
		p.SetGroupVersionKind(v1beta1.GroupVersion.WithKind("Pizza"))
		p.SetName("a")
		created, err := client.Create(ctx, p, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err != nil {
			fmt.Println(err)
		} else {
			fmt.Println(created.Object["spec"])
		}
	}
	stop()
	must(<-stopped)
	// Output:
	// map[toppings:[map[name:ham quantity:1]]]
	// Pizza.restaurant.programming-kubernetes.info "a" is invalid: spec.toppings[0].quantity: Invalid value: 0: spec.toppings[0].quantity in body should be greater than or equal to 1
	// Pizza.restaurant.programming-kubernetes.info "a" is invalid: spec.toppings[0]: Forbidden: no pineapple
}

// Each line of code in the package documentation is in the example.
func TestDoc_IsCompiled(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	expect.NoError(t, err)
	tested, err := os.ReadFile("doc_test.go")
	expect.NoError(t, err)
	lines := 0
	for line := range strings.Lines(string(doc)) {
		code, ok := strings.CutPrefix(line, "//\t")
		if !ok {
			continue
		}
		lines++
		if !strings.Contains(string(tested), "\t"+strings.TrimSpace(code)+"\n") {
			t.Errorf("doc.go has code that is not compiled: %s", code)
		}
	}
	if lines < 15 {
		t.Errorf("found %d lines of code in doc.go", lines)
	}
}
