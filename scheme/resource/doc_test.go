package resource_test

import (
	"context"
	"net"
	"os"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/options"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/apiserver/pkg/util/compatibility"
	"k8s.io/client-go/tools/cache"

	"github.com/crdkit/crdkit/conversion"
	"github.com/crdkit/crdkit/examples/pizza"
	"github.com/crdkit/crdkit/examples/pizza/api/v1alpha1"
	"github.com/crdkit/crdkit/examples/pizza/api/v1beta1"
	"github.com/crdkit/crdkit/scheme"
	"github.com/crdkit/crdkit/scheme/resource"
)

func cells(p *v1beta1.Pizza) []any                                                       { return []any{p.Status.Cost} }
func validateV1alpha1(context.Context, *v1alpha1.Pizza, *v1alpha1.Pizza) field.ErrorList { return nil }
func validateV1beta1(context.Context, *v1beta1.Pizza, *v1beta1.Pizza) field.ErrorList    { return nil }
func setDefaults(*v1beta1.Pizza)                                                         {}
func toHub(context.Context, *v1alpha1.Pizza, *v1beta1.Pizza) error                       { return nil }
func fromHub(context.Context, *v1beta1.Pizza, *v1alpha1.Pizza) error                     { return nil }

// outsideACluster leaves out what needs a cluster.
func outsideACluster(t *testing.T, o *options.RecommendedOptions) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	o.CoreAPI, o.Authentication, o.Authorization, o.Admission = nil, nil, nil, nil
	o.Features.EnablePriorityAndFairness = false
	o.SecureServing.Listener = listener
	o.SecureServing.ServerCert.CertDirectory = t.TempDir()
	o.Etcd.StorageConfig.Transport.ServerList = []string{"http://127.0.0.1:1"}
}

// withoutEtcd leaves out the storage, which waits for etcd.
type withoutEtcd struct{ generic.RESTOptionsGetter }

func (w withoutEtcd) GetRESTOptions(resource schema.GroupResource, example runtime.Object) (generic.RESTOptions, error) {
	opts, err := w.RESTOptionsGetter.GetRESTOptions(resource, example)
	opts.CountMetricPollPeriod = 0
	opts.Decorator = func(*storagebackend.ConfigForResource, string, func(runtime.Object) (string, error), func() runtime.Object, func() runtime.Object,
		storage.AttrFunc, storage.IndexerFuncs, *cache.Indexers) (storage.Interface, factory.DestroyFunc, error) {
		return nil, func() {}, nil
	}
	return opts, err
}

// The code of the package documentation makes a server.
func TestDoc_MakesAServer(t *testing.T) {
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	crds := pizza.Definitions()[:1] // of pizzas
	s, err := scheme.New(
		scheme.Version(v1beta1.GroupVersion, &v1beta1.Pizza{}, &v1beta1.PizzaList{}),
		scheme.Version(v1alpha1.GroupVersion, &v1alpha1.Pizza{}, &v1alpha1.PizzaList{}))
	check(err)
	reg := conversion.NewRegistry(s)
	err = conversion.AddSpoke(reg, toHub, fromHub)
	check(err)
	err = scheme.Install(s, scheme.APIServer(), scheme.Default(setDefaults), scheme.Functions(reg.AddToScheme))
	check(err)

	pizzas, err := resource.New[*v1beta1.Pizza](s, "pizzas",
		resource.ShortNames("pz"),
		resource.Columns(cells, metav1.TableColumnDefinition{Name: "Cost", Type: "number"}),
		resource.Validate(validateV1alpha1),
		resource.Validate(validateV1beta1))
	check(err)

	codec, versions := resource.Codec(s)
	o := options.NewRecommendedOptions("/registry", codec)
	o.Etcd.StorageConfig.EncodeVersioner = versions
	outsideACluster(t, o)
	config := server.NewRecommendedConfig(serializer.NewCodecFactory(s))
	config.EffectiveVersion = compatibility.DefaultBuildEffectiveVersion()
	err = resource.OpenAPI(&config.Config, s, "pizzas", crds...)
	check(err)
	err = o.ApplyTo(config)
	check(err)
	config.RESTOptionsGetter = withoutEtcd{config.RESTOptionsGetter}
	srv, err := config.Complete().New("pizzas", server.NewEmptyDelegate())
	check(err)
	err = resource.Install(srv, config.RESTOptionsGetter, s, pizzas)
	check(err)
	defer srv.Destroy()
	if got := strings.Join(srv.ListedPaths(), " "); !strings.Contains(got, "/apis/"+v1beta1.GroupVersion.String()) {
		t.Errorf("the server has the paths %s", got)
	}
}

// Each line of code in the package documentation is in this file.
func TestDoc_IsCompiled(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	tested, err := os.ReadFile("doc_test.go")
	if err != nil {
		t.Fatal(err)
	}
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
	if lines < 20 {
		t.Errorf("found %d lines of code in doc.go", lines)
	}
}
