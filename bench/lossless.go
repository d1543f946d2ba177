package main

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdkit/crdkit/conversion"
	"github.com/crdkit/crdkit/conversion/lossless"
)

// A fleet has members, and the spoke lacks some fields of a member.
type (
	hubFleet struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata"`
		Members           []hubMember `json:"members"`
	}
	hubMember struct {
		Name  string `json:"name"`
		Size  int64  `json:"size"`
		Exact int64  `json:"exact,omitempty"` // the spoke shows it as the size
		Note  string `json:"note,omitempty"`
	}
	oldFleet struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata"`
		Members           []oldMember `json:"members"`
	}
	oldMember struct {
		Name string `json:"name"`
		Size int64  `json:"size"`
	}
)

func (*hubFleet) DeepCopyObject() runtime.Object { panic("conversion does not copy") }
func (*oldFleet) DeepCopyObject() runtime.Object { panic("conversion does not copy") }

var fleets = schema.GroupVersionKind{Group: "example.com", Version: "v2", Kind: "Fleet"}

const fleetCRD = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: fleets.example.com}
spec:
  group: example.com
  names: {kind: Fleet, plural: fleets}
  scope: Namespaced
  versions:
  - name: v2
    schema: {openAPIV3Schema: {type: object, properties: {members: {type: array, x-kubernetes-list-map-keys: [name]}}}}
`

// lossless prints the time to convert a lossless spoke to the hub. Before the conversion, a user
// has edited each element of its list, and each edit conflicts with a field that only the hub has.
func (b *bench) lossless() error {
	s := runtime.NewScheme()
	spoke := fleets.GroupKind().WithVersion("v1")
	s.AddKnownTypeWithName(fleets, &hubFleet{})
	s.AddKnownTypeWithName(spoke, &oldFleet{})
	reg := conversion.NewRegistry(s)
	if err := conversion.AddSpoke(reg, func(_ context.Context, in *oldFleet, out *hubFleet) error {
		for _, m := range in.Members {
			out.Members = append(out.Members, hubMember{Name: m.Name, Size: m.Size})
		}
		return nil
	}, func(_ context.Context, in *hubFleet, out *oldFleet) error {
		for _, m := range in.Members {
			if m.Exact != 0 {
				m.Size = m.Exact
			}
			out.Members = append(out.Members, oldMember{m.Name, m.Size})
		}
		return nil
	}); err != nil {
		return err
	}
	if err := conversion.Lossless(reg, spoke, lossless.ListMapKeys([]byte(fleetCRD))); err != nil {
		return err
	}
	edited := func(n int) ([]byte, error) {
		hub := hubFleet{TypeMeta: metav1.TypeMeta{APIVersion: "example.com/v2", Kind: "Fleet"}, ObjectMeta: metav1.ObjectMeta{Name: "f"}}
		for i := range n {
			hub.Members = append(hub.Members, hubMember{fmt.Sprintf("member-%05d", i), 1, int64(i + 1), fmt.Sprintf("note %d", i)})
		}
		text, err := json.Marshal(hub)
		if err != nil {
			return nil, err
		}
		if text, err = reg.Convert(context.Background(), text, spoke.GroupVersion()); err != nil {
			return nil, err
		}
		var old oldFleet
		if err := json.Unmarshal(text, &old); err != nil {
			return nil, err
		}
		for i := range old.Members {
			old.Members[i].Size += 100_000
		}
		return json.Marshal(old)
	}
	fmt.Println("a lossless spoke of which each list element was edited, to the hub:")
	times := map[int]float64{}
	for _, n := range []int{100, 400, 800, 5_000} {
		text, err := edited(n)
		if err != nil {
			return err
		}
		times[n] = b.median(func() {
			if _, err := reg.Convert(context.Background(), text, fleets.GroupVersion()); err != nil {
				panic(err)
			}
		})
		fmt.Printf("  %6d elements, %5d KiB  %8.2f ms\n", n, len(text)>>10, times[n]*1e3)
	}
	ratio("lossless/growth", times[800]/times[100])
	return nil
}
