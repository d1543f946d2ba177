package generate_test

import (
	"encoding/json"
	"fmt"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/crdkit/crdkit/internal/choices"
	"github.com/crdkit/crdkit/internal/generate"
)

func Example() {
	most := 10.0
	s := &structuralschema.Structural{
		Generic: structuralschema.Generic{Type: "object"},
		Properties: map[string]structuralschema.Structural{"replicas": {
			Generic:         structuralschema.Generic{Type: "integer"},
			ValueValidation: &structuralschema.ValueValidation{Maximum: &most},
		}},
		ValueValidation: &structuralschema.ValueValidation{Required: []string{"replicas"}},
	}
	even := func(object map[string]any) (errs field.ErrorList) {
		if n := object["replicas"].(int64); n%2 != 0 {
			errs = append(errs, field.Invalid(field.NewPath("replicas"), n, "must be even"))
		}
		return errs
	}
	g, err := generate.New(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Web"}, s, even)
	if err != nil {
		fmt.Println(err)
		return
	}
	least, err := g.Object(choices.New(1, "", 0))
	text, _ := json.Marshal(least)
	fmt.Println(string(text), err)
	refused, err := g.Outside(choices.New(1, "", 14))
	fmt.Println(refused["replicas"], err)
	// Output:
	// {"apiVersion":"example.com/v1","kind":"Web","metadata":{"name":"a"},"replicas":0} <nil>
	// 11 <nil>
}
