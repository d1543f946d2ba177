package scheme_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiconversion "k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdkit/crdkit/examples/pizza/api/v1alpha1"
	"github.com/crdkit/crdkit/examples/pizza/api/v1beta1"
	"github.com/crdkit/crdkit/scheme"
	"github.com/crdkit/crdkit/test/expect"
)

var (
	alphaTypes = scheme.Version(v1alpha1.GroupVersion, &v1alpha1.Pizza{}, &v1alpha1.PizzaList{})
	betaTypes  = scheme.Version(v1beta1.GroupVersion, &v1beta1.Pizza{}, &v1beta1.PizzaList{})
	pizzaKind  = v1alpha1.GroupVersion.WithKind("Pizza")
)

func TestAPIServer_AddsStatus(t *testing.T) {
	s, err := scheme.New(alphaTypes, scheme.APIServer())
	expect.NoError(t, err)
	if kinds, unversioned, err := s.ObjectKinds(&metav1.Status{}); err != nil || !unversioned || kinds[0].Version != "v1" {
		t.Errorf("got %v, %t, %v", kinds, unversioned, err)
	}
}

func TestInstall_ExtendsAScheme(t *testing.T) {
	s := runtime.NewScheme()
	expect.NoError(t, scheme.Install(s, betaTypes))
	expect.NoError(t, scheme.Install(s, alphaTypes))
	if !s.Recognizes(v1beta1.GroupVersion.WithKind("Pizza")) || !s.Recognizes(pizzaKind) {
		t.Error("a version is missing")
	}
}

type hub struct {
	metav1.TypeMeta
	metav1.ObjectMeta
}

type hubList struct {
	metav1.TypeMeta
	metav1.ListMeta
	Items []hub
}

func (h *hub) DeepCopyObject() runtime.Object     { c := *h; return &c }
func (l *hubList) DeepCopyObject() runtime.Object { c := *l; return &c }

func TestNew_NamesWhatIsIncomplete(t *testing.T) {
	internal := schema.GroupVersion{Group: v1alpha1.GroupVersion.Group, Version: runtime.APIVersionInternal}
	withHub := scheme.Functions(func(s *runtime.Scheme) error {
		for kind, obj := range map[string]runtime.Object{"Pizza": &hub{}, "PizzaList": &hubList{}} {
			s.AddKnownTypeWithName(internal.WithKind(kind), obj)
		}
		return nil
	})
	convert := func(any, any, apiconversion.Scope) error { return nil }
	for name, c := range map[string]struct {
		opts []scheme.Option
		want string
	}{
		"a conversion": {[]scheme.Option{alphaTypes, withHub, scheme.Functions(func(s *runtime.Scheme) error {
			return s.AddConversionFunc((*hub)(nil), (*v1alpha1.Pizza)(nil), convert)
		})}, "v1alpha1: kind Pizza has no conversion from v1alpha1.Pizza to scheme_test.hub"},
		"an internal kind": {[]scheme.Option{alphaTypes, scheme.Version(v1beta1.GroupVersion, &v1alpha1.Topping{}, &v1alpha1.ToppingList{}), withHub}, "v1beta1: kind Topping is not in the internal version"},
	} {
		_, err := scheme.New(c.opts...)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %s", name, err, c.want)
		}
		if strings.Contains(err.Error(), "from scheme_test.hub to v1alpha1.Pizza") && name == "a conversion" {
			t.Errorf("%s: the conversion that is there is missed: %v", name, err)
		}
	}
}
