package registration

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Difference is a field of an object in the cluster that differs from the declaration.
type Difference struct {
	// Kind and Name identify the object.
	Kind, Name string
	// Field is the path of the field, such as webhooks[validate.pizzas.example.com].rules.
	// It is empty if the object is missing.
	Field string
	// Found and Expected are the values as JSON. They are empty if the field is absent.
	Found, Expected string
}

// String returns a message with the object, the field, and both values.
func (d Difference) String() string { return fmt.Sprintf("%s %s: %s", d.Kind, d.Name, d.text()) }

func (d Difference) text() string {
	if d.Field == "" {
		return "not in the cluster: apply the manifests"
	}
	return fmt.Sprintf("%s is %s, expected %s", d.Field, cmp.Or(d.Found, "absent"), cmp.Or(d.Expected, "absent"))
}

// joined returns an error of several lines, nil without differences.
func joined(differences []Difference) error {
	var errs []error
	for _, d := range differences {
		errs = append(errs, errors.New(d.text()))
	}
	return errors.Join(errs...)
}

// differences compares an object of the cluster, or nil, with its declaration. It compares
// the declared webhooks, and other webhooks that point to this operator. Other webhooks and
// CA bundles are not compared.
func (w *Webhooks) differences(o *object, current *unstructured.Unstructured) (all []Difference) {
	add := func(field string, found, expected any) {
		all = append(all, Difference{o.kind, o.name, field, jsonOf(found), jsonOf(expected)})
	}
	if current == nil {
		if o.declaresWebhook || o.guard {
			add("", nil, nil)
		}
		return all
	}
	found := current.Object
	// A later API server may have defaults for fields that are not declared, except for those that must be absent.
	compareFields := func(field string, is, declared map[string]any, absent ...string) {
		fields := maps.Clone(declared)
		for _, name := range absent {
			fields[name] = declared[name]
		}
		for _, name := range slices.Sorted(maps.Keys(fields)) {
			compare(field+"."+name, is[name], fields[name], add)
		}
	}
	if o.guard {
		is, _ := found["spec"].(map[string]any)
		compareFields("spec", is, o.declared["spec"].(map[string]any), "paramKind", "paramRef", "matchResources") // which would limit it
		return all
	}
	if o.kind == definitionKind && o.declaresWebhook {
		is, _, _ := unstructured.NestedFieldNoCopy(found, "spec", "conversion")
		shall, _, _ := unstructured.NestedFieldNoCopy(o.declared, "spec", "conversion")
		compare("spec.conversion", is, shall, add)
		return all
	}
	registered := map[string]entry{}
	for _, e := range entriesOf(found) {
		registered[e.name] = e
	}
	for _, e := range w.entries(&unstructured.Unstructured{Object: o.declared}) {
		is, ok := registered[e.name]
		delete(registered, e.name)
		if !ok {
			add(e.field, nil, e.clientConfig)
			continue
		}
		compareFields(e.field, is.webhook, e.webhook, "matchConditions")
	}
	for _, name := range slices.Sorted(maps.Keys(registered)) {
		if e := registered[name]; w.endpoint.contains(e.clientConfig) {
			config := maps.Clone(e.clientConfig)
			delete(config, "caBundle")
			add(e.field, config, nil)
		}
	}
	return all
}

// compare calls add for each field in which two values differ. A list is one field.
func compare(field string, found, expected any, add func(field string, found, expected any)) {
	a, isObject := found.(map[string]any)
	b, both := expected.(map[string]any)
	if !isObject || !both {
		if jsonOf(found) != jsonOf(expected) {
			add(field, found, expected)
		}
		return
	}
	names := maps.Clone(a)
	maps.Copy(names, b)
	delete(names, "caBundle")
	for _, name := range slices.Sorted(maps.Keys(names)) {
		compare(field+"."+name, a[name], b[name], add)
	}
}

// jsonOf returns the JSON of a value, "" of none: a number may have another Go type.
func jsonOf(value any) string {
	if value == nil {
		return ""
	}
	text, _ := json.Marshal(value) // what comes from JSON can be written
	return string(text)
}
