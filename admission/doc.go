// Package admission serves admission webhooks, which validate and change objects.
//
// You write plain functions of a Go type:
//
//	func defaultToppings(ctx context.Context, pizza *v1beta1.Pizza) error
//	func knownToppings(ctx context.Context, pizza *v1beta1.Pizza) (field.ErrorList, error)
//
// [NewHandler] returns a handler that calls them for the requests of the API server:
//
//	mux.Handle("/admit", admission.NewHandler(s, admission.Mutate(defaultToppings)))
//	mux.Handle("/validate", admission.NewHandler(s, admission.Validate(knownToppings)))
//
// # Versions, kinds and filters
//
// A function is called for objects of the kind and version of its Go type, and with [ConvertWith],
// of the other versions too. A function of *unstructured.Unstructured or
// *metav1.PartialObjectMetadata is called for objects of every kind. A [Filter] restricts the
// requests:
//
//	admission.Validate(knownToppings, admission.IfChanged("spec"), admission.UnlessDeleting())
//	admission.Validate(smallScale, admission.Subresource("scale"))
//
// [RequestFrom] and [OldFrom] give your function the rest of the request. [Warn] and
// [AuditAnnotation] add to the response. The logger of the context (klog.FromContext) has the
// values kind, object, operation, user and uid. The context is valid until your function returns.
// Your function may retain the object, but later functions may change it.
//
// # What is preserved
//
// A patch has only the changes that your functions made to the object that the API server sent.
// Integers above 2^53 are not rounded, and fields that the Go type does not have (unknown fields)
// are preserved.
//
// To preserve the unknown fields of list elements that a function edits or moves, the handler
// matches the elements before and after your functions by the list-map keys of the CRDs that
// [ListMapKeys] gets; the keys of Kubernetes' own types are known.
//
// Without keys, matching is heuristic; give keys to all lists in which unknown fields matter.
// An edited element is recognized by the values that it kept. A new element that has nearly all
// values of a removed one gets its unknown fields, and an unmatched element loses them.
//
// # Denied and undecided requests
//
// A request is denied if a function returns one of these errors, alone or in an [errors.Join], or
// if the converter of [ConvertWith] returns one for the new object:
//
//   - A [k8s.io/apimachinery/pkg/util/validation/field.ErrorList], a field.Error or an
//     aggregate of field errors, even if another error wraps it. The code is 422, with one
//     cause for each field error.
//   - An API error with a code from 400 to 499, except 401, 404, 408 and 429, such as
//     [k8s.io/apimachinery/pkg/api/errors.NewForbidden] returns. The response has the Status of
//     this error. If another error wraps it, the request is left undecided.
//
// An object from the user that does not fit its Go type is denied with code 400. Every other error,
// and a panic, leaves the request undecided: the response is an HTTP error with a Status (see
// [NewHandler]), and the API server applies the webhook's failurePolicy. A denial takes precedence
// over an undecided function.
//
// The context of a function is done a tenth of the webhook's timeout, and at most a second, before that passes. Return then,
// so that the user sees your error.
//
// For checks of other objects, see admission/reference; for rules of fields, such as immutability,
// [k8s.io/apimachinery/pkg/api/validation]; for a server and the registration, webhook; for
// metrics, admission/metrics. This package does not import client-go.
package admission
