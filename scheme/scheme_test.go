package scheme_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdkit/crdkit/examples/pizza/api/v1alpha1"
	"github.com/crdkit/crdkit/examples/pizza/api/v1beta1"
	"github.com/crdkit/crdkit/scheme"
)

var gv = schema.GroupVersion{Group: "example.com", Version: "v1"}

func TestASchemeKnowsItsKindsAndPrefersTheNewestVersion(t *testing.T) {
	s, err := scheme.New(
		scheme.Version(v1alpha1.GroupVersion, &v1alpha1.Pizza{}, &v1alpha1.PizzaList{}),
		scheme.Version(v1beta1.GroupVersion, &v1beta1.Pizza{}, &v1beta1.PizzaList{}),
	)
	if err != nil {
		t.Fatal(err)
	}
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

func TestVersionsAreOrderedAsTheAPIServerOrdersThem(t *testing.T) {
	var opts []scheme.Option
	var want []schema.GroupVersion
	for _, v := range []string{"v10", "v2", "v1", "v11beta2", "v10beta3", "v3beta1", "v12alpha1", "v11alpha2", "foo1", "foo10"} {
		gv := schema.GroupVersion{Group: "example.com", Version: v}
		want = append(want, gv)
		opts = append([]scheme.Option{scheme.Version(gv, &Good{}, &GoodList{})}, opts...)
	}
	s, err := scheme.New(opts...)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, s.PrioritizedVersionsForGroup("example.com")); diff != "" {
		t.Errorf("preferred versions (-want +got):\n%s", diff)
	}
}

func TestEveryFaultIsNamedAtOnce(t *testing.T) {
	s, err := scheme.New(
		scheme.Version(schema.GroupVersion{Group: "example.com"}, &Good{}, &GoodList{}),
		scheme.Version(gv),
		scheme.Version(gv, nil, &Good{}, &Good{}),
		scheme.Version(gv, &GoodList{}),
		scheme.Version(gv, &Untagged{}, &UntaggedList{}),
		scheme.Version(gv, &Confused{}, &ConfusedList{}, &Good{}, &GoodList{}),
		scheme.Functions(
			func(*runtime.Scheme) error { return errors.New("out of flour") },
			func(*runtime.Scheme) error { panic("oven on fire") },
		),
	)
	if s != nil || err == nil {
		t.Fatalf("got scheme %v and error %v, want no scheme and an error", s, err)
	}
	want := []string{
		"scheme: example.com/: has no version",
		"scheme: example.com/v1: has no types",
		"scheme: example.com/v1: type 1, <nil>, is not a pointer to a struct",
		"scheme: example.com/v1: kind Good is given twice",
		"scheme: example.com/v1: kind Good has no list: give &GoodList{} too",
		"scheme: example.com/v1: GoodList is a list of *scheme_test.Good, which is not given",
		"scheme: example.com/v1: Untagged.Spec has no name in its JSON tag",
		"scheme: example.com/v1: Untagged.deep.Deeper has no name in its JSON tag",
		"scheme: example.com/v1: Untagged.Half has no name in its JSON tag",
		"scheme: example.com/v1: ConfusedList is not a list of *scheme_test.Confused",
		"scheme: out of flour",
		"scheme: oven on fire",
	}
	if diff := cmp.Diff(want, strings.Split(err.Error(), "\n")); diff != "" {
		t.Errorf("faults (-want +got):\n%s", diff)
	}
}

func TestTwoTypesForOneKindAreAFault(t *testing.T) {
	_, err := scheme.New(
		scheme.Version(v1beta1.GroupVersion, &v1beta1.Pizza{}, &v1beta1.PizzaList{}),
		scheme.Version(v1beta1.GroupVersion, &v1alpha1.Pizza{}, &v1alpha1.PizzaList{}),
	)
	if err == nil || !strings.Contains(err.Error(), "Double registration of different types") {
		t.Errorf("got error %v, want a double registration", err)
	}
}

func TestAnInternalVersionNeedsNoTags(t *testing.T) {
	internal := schema.GroupVersion{Group: "example.com", Version: runtime.APIVersionInternal}
	s, err := scheme.New(scheme.Version(internal, &Untagged{}, &UntaggedList{}))
	if err != nil {
		t.Fatal(err)
	}
	if !s.Recognizes(internal.WithKind("Untagged")) {
		t.Error("the internal kind is not known")
	}
}

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
