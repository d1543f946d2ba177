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
// compares the list before and after your functions. It matches elements by these rules, in
// order:
//
//  1. Equal elements match.
//  2. Elements match if their keys are equal and no other element has these keys. Elements
//     with different keys never match. [ListMapKeys], [ListMapKeysOf] and the patchMergeKey
//     tags of the Go type declare keys.
//  3. Elements that share the most values at equal paths, at any depth, match. Values that only
//     these two elements share are counted first. Other shared values break ties. A match needs
//     more shared values than replaced strings, which are strings that differ at an equal path.
//     If a shared value is unique, equal numbers suffice. In addition, an element that was
//     edited and moved must share a unique value, unless its fields were only added or removed.
//  4. A single element between two unchanged neighbors matches the single element that was
//     there before, unless a string in it was replaced.
//
// In these rules, a string does not count as replaced if only its case, white space or
// punctuation changes. A zero value counts as absent. If several matches are equally likely,
// all elements in the tie stay unmatched.
//
// An unmatched element is written as the Go type encodes it, and its unknown fields are
// dropped. Without keys, a new element may match a removed element with which it shares a
// value, and get its unknown fields. Therefore, declare the keys of lists in which unknown
// fields matter.
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
