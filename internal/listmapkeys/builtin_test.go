package listmapkeys

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	smd "sigs.k8s.io/structured-merge-diff/v6/schema"
)

// mapList is what is known of a list whose elements have keys.
type mapList struct {
	Keys     []string
	Defaults []string
}

// The keys of the built-in types are those of the schema that server-side apply uses.
func TestOfType_BuiltinKeys(t *testing.T) {
	converter := applyconfigurations.NewTypeConverter(scheme.Scheme)
	lists, several := 0, 0
	for kind, goType := range scheme.Scheme.AllKnownTypes() {
		if !strings.HasPrefix(goType.PkgPath(), "k8s.io/api/") {
			continue
		}
		object := reflect.New(goType).Interface().(runtime.Object)
		object.GetObjectKind().SetGroupVersionKind(kind)
		typed, err := converter.ObjectToTyped(object)
		if err != nil {
			continue // it has no schema: nothing can apply it
		}
		seen := map[string]bool{}
		var walk func(ref smd.TypeRef, tree *Tree, path string)
		walk = func(ref smd.TypeRef, tree *Tree, path string) {
			if name := ref.NamedType; name != nil {
				if seen[*name] {
					return
				}
				seen[*name] = true
				defer delete(seen, *name)
			}
			atom, ok := typed.Schema().Resolve(ref)
			if !ok {
				t.Fatalf("%s: %s has no type", kind, path)
			}
			switch {
			case atom.List != nil:
				if len(atom.List.Keys) > 0 {
					lists++
					want, got := mapList{Keys: atom.List.Keys}, mapList{Keys: slices.Clone(tree.Keys())}
					slices.Sort(got.Keys)
					slices.Sort(want.Keys)
					element, _ := typed.Schema().Resolve(atom.List.ElementType)
					for _, key := range want.Keys {
						field, _ := element.FindField(key)
						value := ""
						if field.Default != nil && field.Default != "" && field.Default != 0 { // a zero value is like an absent one
							value = fmt.Sprintf("%q", field.Default)
						}
						want.Defaults, got.Defaults = append(want.Defaults, value), append(got.Defaults, tree.Default(key))
					}
					if len(want.Keys) > 1 {
						several++
					}
					if diff := cmp.Diff(want, got); diff != "" {
						t.Errorf("%s: %s (-want +got):\n%s", kind, path, diff)
					}
				}
				walk(atom.List.ElementType, tree, path)
			case atom.Map != nil:
				for _, field := range atom.Map.Fields {
					walk(field.Type, tree.Field([]byte(field.Name)), path+"."+field.Name)
				}
				if of := atom.Map.ElementType; of.NamedType != nil || of.Inlined != (smd.Atom{}) {
					walk(of, tree.Field([]byte("*")), path+".*")
				}
			}
		}
		walk(typed.TypeRef(), OfType(goType), "")
	}
	if t.Logf("%d lists have keys, %d of them several", lists, several); several == 0 {
		t.Error("no list with several keys was compared")
	}
}
