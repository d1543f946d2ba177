package sequence

import (
	"context"
	"net/http"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/crdkit/crdkit/admission"
	"github.com/crdkit/crdkit/conversion"
	"github.com/crdkit/crdkit/webhook/registration"
)

const group = "sequences.example.com"

// gadgets are a kind with webhooks and policies.
var gadgets = &kind{
	GroupKind: gadget.GroupKind(), plural: "gadgets", versions: []string{"v1", "v1", "v1beta1"},
	watched:   "v1beta1", // which a webhook converts
	selectors: map[string][]string{"v1": {"spec.color=red", "spec.color=green"}},
	fields:    gadgetFields, jsonPatch: gadgetPatch, more: builtins,
}

var gadget = schema.GroupVersionKind{Group: group, Version: "v1", Kind: "Gadget"}

// definition has two versions, which a webhook converts, and what hangs on a definition: status,
// scale, selectable fields, columns, a deprecated version, defaults, lists with keys, and rules.
const definition = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.sequences.example.com}
spec:
  group: sequences.example.com
  names: {kind: Gadget, plural: gadgets}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    additionalPrinterColumns: [{name: Size, type: integer, jsonPath: .spec.size}]
    selectableFields: [{jsonPath: .spec.color}]
    subresources: &subresources
      status: {}
      scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas}
    schema:
      openAPIV3Schema:
        type: object
        x-kubernetes-validations: [{rule: "self.metadata.name != 'forbidden'", message: a bad name}]
        properties:
          spec:
            type: object
            x-kubernetes-validations:
            - {rule: "!has(oldSelf.fixed) || has(self.fixed) && self.fixed == oldSelf.fixed", message: fixed is immutable, fieldPath: .fixed}
            properties:
              color: {type: string, enum: [red, green, blue], default: red}
              size: &size {type: integer, maximum: 9}
              fixed: &fixed {type: string}
              replicas: &replicas {type: integer, default: 1}
              free: &free {type: object, x-kubernetes-preserve-unknown-fields: true}
              tags: &tags {type: array, x-kubernetes-list-type: set, items: {type: string}}
              parts: &parts
                type: array
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [name]
                items:
                  type: object
                  required: [name]
                  properties: {name: {type: string}, count: {type: integer, default: 1}, note: {type: string}}
              whole: &whole {type: object, x-kubernetes-map-type: atomic, additionalProperties: {type: string}}
          status: &status
            type: object
            properties: {replicas: {type: integer}, phase: {type: string}}
  - name: v1beta1
    served: true
    storage: false
    deprecated: true
    additionalPrinterColumns: [{name: Colour, type: string, jsonPath: .spec.colour}]
    subresources: *subresources
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              colour: {type: string, enum: [red, green, blue], default: red}
              size: *size
              fixed: *fixed
              replicas: *replicas
              free: *free
              tags: *tags
              parts: *parts
              whole: *whole
          status: *status
`

const constraints = `{resourceRules: [{apiGroups: [sequences.example.com], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [gadgets]}]}`

// policies deny, warn and change.
const policies = `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: sequences-note}
spec:
  matchConstraints: ` + constraints + `
  variables: [{name: notes, expression: "has(object.spec) && has(object.spec.parts) ? object.spec.parts.filter(p, has(p.note)).size() : 0"}]
  validations: [{expression: variables.notes < 3, messageExpression: "'there are ' + string(variables.notes) + ' notes'", reason: Forbidden}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: sequences-note}
spec: {policyName: sequences-note, validationActions: [Deny]}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: sequences-blue}
spec:
  matchConstraints: ` + constraints + `
  matchConditions: [{name: blue, expression: "has(object.spec) && object.spec.color == 'blue'"}]
  validations: [{expression: "false", message: blue is out of stock}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: sequences-blue}
spec: {policyName: sequences-blue, validationActions: [Warn]}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: sequences-size}
spec:
  reinvocationPolicy: Never
  matchConstraints: ` + constraints + `
  matchConditions: [{name: small, expression: "has(object.spec) && has(object.spec.size) && object.spec.size == 0"}]
  mutations:
  - patchType: ApplyConfiguration
    applyConfiguration: {expression: "Object{spec: Object.spec{size: 1}}"}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: sequences-size}
spec: {policyName: sequences-size}
`

// newHooks returns the webhooks of gadgets. At a URL they are called through the network.
func newHooks(endpoint registration.Option) (*registration.Webhooks, error) {
	reg := conversion.NewRegistry(runtime.NewScheme())
	beta := gadget.GroupKind().WithVersion("v1beta1")
	if err := conversion.AddFields(reg, beta, gadget.Version, conversion.Rename("spec.colour", "spec.color")); err != nil {
		return nil, err
	}
	mutate := admission.Mutate(func(_ context.Context, u *unstructured.Unstructured) error {
		if fixed, _, _ := unstructured.NestedString(u.Object, "spec", "fixed"); fixed == "mutate" {
			return unstructured.SetNestedField(u.Object, "by a webhook", "spec", "free", "changed")
		}
		return nil
	}, admission.ForKind(gadget))
	validate := admission.Validate(func(_ context.Context, u *unstructured.Unstructured) (field.ErrorList, error) {
		if replicas, _, _ := unstructured.NestedInt64(u.Object, "spec", "replicas"); replicas > 50 {
			return field.ErrorList{field.Invalid(field.NewPath("spec", "replicas"), replicas, "at most 50")}, nil
		}
		return nil, nil
	}, admission.ForKind(gadget))
	refuse := admission.ValidateDelete(func(_ context.Context, u *unstructured.Unstructured) (field.ErrorList, error) {
		if u.GetAnnotations()["keep"] != "" {
			return field.ErrorList{field.Forbidden(field.NewPath("metadata", "annotations").Key("keep"), "to be kept")}, nil
		}
		return nil, nil
	}, admission.ForKind(gadget))
	handler := func(opts ...admission.Option) http.Handler {
		return admission.NewHandler(runtime.NewScheme(), append(opts, admission.ConvertWith(reg))...)
	}
	return registration.New("sequences",
		registration.CRDs([]byte(definition)),
		registration.Conversion("/convert", conversion.NewHandler(reg)),
		registration.Mutating("mutate.sequences.example.com", "/mutate", handler(mutate), func(w *admissionregistrationv1.MutatingWebhook) {
			w.ReinvocationPolicy = new(admissionregistrationv1.IfNeededReinvocationPolicy)
		}),
		registration.Validating("validate.sequences.example.com", "/validate", handler(validate, refuse)),
		endpoint)
}

func gadgetFields(m maker, version string) map[string]any {
	fields := map[string]any{}
	if !m.oneIn(10) {
		fields["spec"] = gadgetSpec(m, version)
	}
	if m.oneIn(3) {
		fields["status"] = gadgetStatus(m)
	}
	if m.oneIn(20) {
		fields["unknown"] = true
	}
	return fields
}

func gadgetStatus(m maker) map[string]any {
	return pick(m.Rand, map[string]any{"phase": "Done"}, map[string]any{"replicas": m.IntN(3)}, map[string]any{"phase": 5}, nil)
}

func gadgetSpec(m maker, version string) map[string]any {
	spec := map[string]any{}
	set := func(key string, value any) {
		if m.oneIn(3) {
			spec[key] = value
		}
	}
	color := "color"
	if version == "v1beta1" {
		color = "colour"
	}
	set(color, pick[any](m.Rand, "red", "green", "blue", "pink", nil))
	set("size", pick[any](m.Rand, 0, 3, 12, "3", nil))
	set("fixed", pick[any](m.Rand, "x", "mutate", nil))
	set("replicas", pick[any](m.Rand, 0, 2, 60))
	set("free", pick[any](m.Rand, map[string]any{"a": map[string]any{"b": 1}}, map[string]any{"c": []any{1, "x", nil}}))
	set("tags", pick[any](m.Rand, []any{"t"}, []any{"t", "u"}, []any{"u", "u"}, []any{}))
	set("whole", pick[any](m.Rand, map[string]any{"k": "v"}, map[string]any{"l": "w"}))
	set("extra", 1)
	var parts []any
	for range m.IntN(4) {
		part := map[string]any{"name": pick(m.Rand, "p", "q", "r", "s")}
		if m.oneIn(2) {
			part["note"] = pick(m.Rand, "n", "o")
		}
		if m.oneIn(3) {
			part["count"] = m.IntN(3)
		}
		parts = append(parts, part)
	}
	set("parts", parts)
	return spec
}

func gadgetPatch(m maker, _ string) map[string]any {
	return pick(m.Rand,
		map[string]any{"op": "add", "path": "/spec/size", "value": m.IntN(12)},
		map[string]any{"op": "remove", "path": "/spec/parts/0"},
		map[string]any{"op": "test", "path": "/spec/replicas", "value": 1},
		map[string]any{"op": "replace", "path": "/metadata/labels/team", "value": "y"},
		map[string]any{"op": "remove", "path": "/metadata/finalizers"},
		map[string]any{"op": "add", "path": "/spec/tags/-", "value": "v"},
		map[string]any{"op": "copy", "from": "/spec/replicas", "path": "/spec/size"},
	)
}
