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
// A function is called for objects of the kind and version of its Go type. [ConvertWith] adds
// the other versions of the kind. A function of *unstructured.Unstructured or
// *metav1.PartialObjectMetadata is called for objects of every kind. A [Filter] restricts the
// requests for which a function is called:
//
//	admission.Validate(knownToppings, admission.IfChanged("spec"), admission.UnlessDeleting())
//	admission.Validate(smallScale, admission.Subresource("scale"))
//
// [RequestFrom] and [OldFrom] give your function the rest of the request. [Warn] and
// [AuditAnnotation] add to the response. The logger of the context (klog.FromContext) has the
// values kind, object, operation, user and uid. Your function may retain the object, but later
// functions may change it. The context is valid until your function returns.
//
// # What is preserved
//
// A patch has only the changes that your functions made to the object that the API server
// sent. Numbers keep their digits. Fields that the Go type does not have (unknown fields) are
// preserved.
//
// To preserve the unknown fields of list elements that a function edits or moves, the handler
// compares the list before and after your functions. Elements that are equal match, and so do
// elements with equal declared keys. Elements with different declared keys never match.
// [ListMapKeys] and [ListMapKeysOf] declare keys; the keys of Kubernetes' own types are known.
//
// Without declared keys, matching is heuristic; declare ListMapKeys wherever unknown fields
// matter. An edited element is recognized in these cases:
//
//   - It stayed in its place, and one value in it changed, or it only gained or only lost values.
//   - It kept a value that no other element has at the same path, and most of its fields.
//
// A list, or an object of which no value stayed, counts as one value. If several matches are
// equally likely, none is chosen.
//
// An unmatched element is written as the Go type encodes it, and its unknown fields are
// dropped. A new element that has nearly all values of a removed one gets its unknown fields.
//
// # Denied and undecided requests
//
// A request is denied if a function returns one of these errors, or if the converter of
// [ConvertWith] returns one for the new object. Each part of an [errors.Join] is treated as an
// error of its own. If any part denies, the request is denied.
//
//   - A [k8s.io/apimachinery/pkg/util/validation/field.ErrorList], a field.Error or an
//     aggregate of field errors, even if another error wraps it. The code is 422, with one
//     cause for each field error.
//   - An unwrapped API error with a code from 400 to 499, except 401, 404, 408 and 429. The
//     response has the Status of this error. If another error wraps it, the request is left
//     undecided. [k8s.io/apimachinery/pkg/api/errors.NewForbidden] returns such an error.
//
// An object from the user that does not fit its Go type is denied with code 400. Every other
// error, and a panic, leaves the request undecided. The response is an HTTP error with a
// Status (see [NewHandler]), and the API server applies the webhook's failurePolicy. If some
// functions deny a request and others leave it undecided, it is denied.
//
// For checks of other objects, see admission/reference; for rules of fields,
// admission/validate; for a server and the registration, webhook; for metrics,
// admission/metrics. This package does not import client-go.
package admission
