package scheme_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/crdkit/crdkit/examples/pizza/api/v1alpha1"
	"github.com/crdkit/crdkit/examples/pizza/api/v1beta1"
	"github.com/crdkit/crdkit/scheme"
	"github.com/crdkit/crdkit/test/expect"
)

var (
	alphaTypes = scheme.Version(v1alpha1.GroupVersion, &v1alpha1.Pizza{}, &v1alpha1.PizzaList{})
	betaTypes  = scheme.Version(v1beta1.GroupVersion, &v1beta1.Pizza{}, &v1beta1.PizzaList{})
)

var gv = schema.GroupVersion{Group: "example.com", Version: "v1"}

// A scheme knows its kinds and prefers the newest version.
func TestNew_KindsAndVersions(t *testing.T) {
	s, err := scheme.New(alphaTypes, betaTypes)
	expect.NoError(t, err)
	for _, gv := range []schema.GroupVersion{v1alpha1.GroupVersion, v1beta1.GroupVersion} {
		for _, kind := range []string{"Pizza", "PizzaList", "ListOptions", "WatchEvent"} {
			if !s.Recognizes(gv.WithKind(kind)) {
				t.Errorf("%s %s is not known", gv, kind)
			}
		}
	}
	want := []schema.GroupVersion{v1beta1.GroupVersion, v1alpha1.GroupVersion}
	if diff := cmp.Diff(want, s.PrioritizedVersionsForGroup(v1beta1.GroupVersion.Group)); diff != "" {
		t.Errorf("preferred versions (-want +got):\n%s", diff)
	}
}

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
	if !s.Recognizes(v1beta1.GroupVersion.WithKind("Pizza")) || !s.Recognizes(v1alpha1.GroupVersion.WithKind("Pizza")) {
		t.Error("a version is missing")
	}
}

// versions are three versions of a kind, each with its types.
func versions() map[string][]runtime.Object {
	all := map[string][]runtime.Object{}
	{
		type Good struct{ goodMeta }
		type GoodList struct {
			goodListMeta
			Items []Good `json:"items"`
		}
		all["v10"] = []runtime.Object{&Good{}, &GoodList{}}
	}
	{
		type Good struct{ goodMeta }
		type GoodList struct {
			goodListMeta
			Items []Good `json:"items"`
		}
		all["v2"] = []runtime.Object{&Good{}, &GoodList{}}
	}
	{
		type Good struct{ goodMeta }
		type GoodList struct {
			goodListMeta
			Items []Good `json:"items"`
		}
		all["v11beta2"] = []runtime.Object{&Good{}, &GoodList{}}
	}
	return all
}

func of(version string) schema.GroupVersion {
	return schema.GroupVersion{Group: "example.com", Version: version}
}

// A function may be given before the versions, or after them.
func TestNew_VersionPriority(t *testing.T) {
	own := scheme.Functions(func(s *runtime.Scheme) error { return s.SetVersionPriority(of("v2"), of("v11beta2"), of("v10")) })
	var opts []scheme.Option
	for version, objects := range versions() {
		opts = append(opts, scheme.Version(of(version), objects...))
	}
	for _, c := range []struct {
		opts []scheme.Option
		want []schema.GroupVersion
	}{
		{opts, []schema.GroupVersion{of("v10"), of("v2"), of("v11beta2")}}, // as the API server lists them
		{slices.Concat(opts, []scheme.Option{own}), []schema.GroupVersion{of("v2"), of("v11beta2"), of("v10")}},
		{slices.Concat([]scheme.Option{own}, opts), []schema.GroupVersion{of("v2"), of("v11beta2"), of("v10")}},
	} {
		s, err := scheme.New(c.opts...)
		expect.NoError(t, err)
		if diff := cmp.Diff(c.want, s.PrioritizedVersionsForGroup("example.com")); diff != "" {
			t.Errorf("preferred versions (-want +got):\n%s", diff)
		}
	}
}

// Every fault is named at once.
func TestNew_EveryFault(t *testing.T) {
	s, err := scheme.New(
		scheme.Version(schema.GroupVersion{Group: "example.com"}, &Good{}, &GoodList{}),
		scheme.Functions(
			func(*runtime.Scheme) error { return errors.New("out of flour") },
			func(*runtime.Scheme) error { panic("oven on fire") },
		),
		scheme.Version(of("v2"), &GoodList{}, &Alone{}),
		scheme.Version(of("v3"), &Untagged{}, &UntaggedList{}),
		scheme.Version(of("v4"), &Confused{}, &ConfusedList{}, &Good{}),
	)
	if s != nil || err == nil {
		t.Fatalf("got scheme %v and error %v, want no scheme and an error", s, err)
	}
	want := []string{
		"scheme: version is required on all types: example.com/, Kind=Good *scheme_test.Good",
		"scheme: out of flour",
		"scheme: oven on fire",
		"scheme: example.com/v2: kind Alone has no list: register AloneList too",
		"scheme: example.com/v2: GoodList is a list of scheme_test.Good, which is not registered",
		"scheme: example.com/v3: Untagged.Spec has no name in its JSON tag",
		"scheme: example.com/v3: Untagged.deep.Deeper has no name in its JSON tag",
		"scheme: example.com/v3: Untagged.Half has no name in its JSON tag",
		"scheme: example.com/v4: ConfusedList is not a list of scheme_test.Confused",
		"scheme: example.com/v4: kind Good has no list: register GoodList too",
	}
	if diff := cmp.Diff(want, strings.Split(err.Error(), "\n")); diff != "" {
		t.Errorf("faults (-want +got):\n%s", diff)
	}
}

// Types that a function adds, and those in a scheme of another origin, are checked like the
// arguments of Version.
func TestCheck_TypesOfFunctions(t *testing.T) {
	install := func(s *runtime.Scheme) error {
		s.AddKnownTypes(of("v1"), &Good{}, &GoodList{})
		s.AddKnownTypes(of("v2"), &Alone{})
		s.AddKnownTypeWithName(of("v2").WithKind("Well"), &Good{})
		s.AddKnownTypeWithName(of("v2").WithKind("WellList"), &GoodList{})
		s.AddKnownTypes(schema.GroupVersion{Group: "internal.example.com", Version: runtime.APIVersionInternal}, &Untagged{}, &UntaggedList{})
		metav1.AddToGroupVersion(s, of("v2"))
		return nil
	}
	const names = "example.com/v1, Kind=Good%s; example.com/v2, Kind=Well%s: give each a type of its own"
	want := []string{
		"scheme: example.com/v1: the type scheme_test.Good of kind Good has several names: " + fmt.Sprintf(names, "", ""),
		"scheme: example.com/v1: the type scheme_test.GoodList of kind GoodList has several names: " + fmt.Sprintf(names, "List", "List"),
		"scheme: example.com/v1: has no ListOptions: call metav1.AddToGroupVersion",
		"scheme: example.com/v2: kind Alone has no list: register AloneList too",
		"scheme: example.com/v2: the type scheme_test.Good of kind Well has several names: " + fmt.Sprintf(names, "", ""),
		"scheme: example.com/v2: the type scheme_test.GoodList of kind WellList has several names: " + fmt.Sprintf(names, "List", "List"),
	}
	s := runtime.NewScheme()
	expect.NoError(t, install(s))
	_, err := scheme.New(scheme.Functions(install))
	for name, err := range map[string]error{"New": err, "Check": scheme.Check(s)} {
		if err == nil {
			t.Errorf("%s accepts them", name)
		} else if diff := cmp.Diff(want, strings.Split(err.Error(), "\n")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// Of Kubernetes' own kinds, many have no lists.
func TestCheck_TypesOfKubernetes(t *testing.T) {
	s, err := scheme.New(
		scheme.Functions(clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme),
		scheme.Version(gv, &Good{}, &GoodList{}),
	)
	expect.NoError(t, err)
	if err := scheme.Check(s); err != nil {
		t.Error(err)
	}
}

// Two types for one kind are a fault.
func TestNew_TwoTypesForOneKind(t *testing.T) {
	_, err := scheme.New(
		betaTypes,
		scheme.Version(v1beta1.GroupVersion, &v1alpha1.Pizza{}, &v1alpha1.PizzaList{}),
	)
	expect.ErrorContains(t, err, "Double registration of different types")
}

func TestNew_InternalVersionNeedsNoTags(t *testing.T) {
	internal := schema.GroupVersion{Group: "example.com", Version: runtime.APIVersionInternal}
	s, err := scheme.New(scheme.Version(internal, &Untagged{}, &UntaggedList{}))
	expect.NoError(t, err)
	if !s.Recognizes(internal.WithKind("Untagged")) {
		t.Error("the internal kind is not known")
	}
}

type (
	goodMeta struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata,omitempty"`
		noCopy            `json:"-"`
	}
	goodListMeta struct {
		metav1.TypeMeta `json:",inline"`
		metav1.ListMeta `json:"metadata,omitempty"`
		noCopy          `json:"-"`
	}
	Alone struct{ goodMeta }
)

type noCopy struct{}

func (noCopy) DeepCopyObject() runtime.Object { panic("not copied in these tests") }

type (
	Good struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata,omitempty"`
		noCopy            `json:"-"`
		// A type that encodes itself is not looked into.
		When metav1.Time `json:"when"`
	}
	GoodList struct {
		metav1.TypeMeta `json:",inline"`
		metav1.ListMeta `json:"metadata,omitempty"`
		noCopy          `json:"-"`
		Items           []Good `json:"items"`
	}
	Untagged struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata,omitempty"`
		noCopy            `json:"-"`
		Spec              struct{}
		Deep              []struct{ Deeper map[string]string } `json:"deep"`
		Half              string                               `json:",omitempty"`
	}
	UntaggedList struct {
		metav1.TypeMeta `json:",inline"`
		metav1.ListMeta `json:"metadata,omitempty"`
		noCopy          `json:"-"`
		Items           []Untagged `json:"items"`
	}
	Confused struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata,omitempty"`
		noCopy            `json:"-"`
	}
	ConfusedList struct {
		metav1.TypeMeta `json:",inline"`
		metav1.ListMeta `json:"metadata,omitempty"`
		noCopy          `json:"-"`
		Items           []Good `json:"items"`
	}
)
