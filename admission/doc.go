// Package admission answers one question: may this write pass, and with which
// changes?
//
// What an author writes are plain functions of a Go type:
//
//	func defaultToppings(ctx context.Context, pizza *v1beta1.Pizza) error
//	func knownToppings(ctx context.Context, pizza *v1beta1.Pizza) (field.ErrorList, error)
//
// [NewHandler] serves them to the API server as an admission webhook:
//
//	mux.Handle("/admit", admission.NewHandler(s, admission.Mutate(defaultToppings)))
//	mux.Handle("/validate", admission.NewHandler(s, admission.Validate(knownToppings)))
//
// # Every version, and every kind
//
// A function sees the objects of its own type. With [ConvertWith], one that is
// written for one version of a kind serves all: an object of another version is
// converted to it, and what the function changed is converted back. A function of
// *unstructured.Unstructured or *metav1.PartialObjectMetadata sees objects of every
// kind. A [Filter] narrows down what a function is called for:
//
//	admission.Validate(knownToppings, admission.IfChanged("spec"), admission.UnlessDeleting())
//	admission.Validate(smallScale, admission.Subresource("scale"))
//
// What else there is to know about a request is in the context: see [RequestFrom] and
// [OldFrom]; and what else there is to say goes there: see [Warn] and
// [AuditAnnotation]. The context has a logger (klog.FromContext), that of the HTTP request's
// context with the values kind, object, operation, user and uid, which is that of the request.
//
// An object is the function's to keep, and the context is good until it returns. The
// strings of an object share memory in pieces of up to 16 KiB: clone a short one that is
// kept for long.
//
// # Nothing lost
//
// A patch is made from what the functions changed, and applied to the text that
// the API server sent. Fields which the Go type does not know stay where they are, also
// within list elements that move, as far as these can be identified (see the next section);
// numbers keep their digits. The functions of
// one webhook make one patch; if they change nothing there is none.
//
// # Which list element is which
//
// A list element that a function edits or moves keeps what the Go type does not know. To
// identify it, the handler compares the list before and after the functions:
//
//   - Equal elements are the same, and so are elements with equal keys. The keys are those
//     of [ListMapKeys], [ListMapKeysOf] and the patchMergeKey tags of the Go type.
//   - Elements whose keys differ are never the same.
//   - Of the others, those are the same that share the most values at equal paths, at any
//     depth; values that no other element has count first. An edited element that was moved
//     too must share such a value, or only have gained or lost fields.
//   - Where nothing is shared, the only element that changed between two unchanged
//     neighbors is the same, unless a string in it was replaced.
//   - Where two elements are equally likely, neither gets the unknown fields.
//
// A change of case, white space or punctuation does not make another string, and a zero
// value counts as absent.
//
// Without keys, two things cannot be told: a new element that shares such a value with a
// removed one from an edit of that one, and an element edited to resemble a removed one from the removed
// one. So declare the keys of lists in which unknown fields matter.
//
// # Denied, or not decided
//
// The two are never confused:
//
//   - A [field.ErrorList] denies with Status 422 Invalid, and one cause for each
//     error; so does an error that is or wraps a [field.Error] or an aggregate of
//     them, also one of a conversion, and the message has the text around them. An API error with a code from 400 to 499, such as that of
//     [k8s.io/apimachinery/pkg/api/errors.NewForbidden], denies as it is. So does
//     an object that does not fit its Go type, with 400. The answer is a review
//     that is not allowed.
//   - Every other error, and a panic, means that the question was not decided: an
//     API error with 401, 404, 408, 429, or 500 and above, and one that is wrapped
//     by another error. Those happened to the function, and are not what it says. The
//     answer is then an HTTP error with a Status. The API server applies the
//     webhook's failurePolicy; with 429, or 5xx, and retryAfterSeconds in the
//     details it tries again first (client-go/rest/with_retry.go). A review that
//     is not allowed would be a denial, whatever its code (apiserver/pkg/
//     admission/plugin/webhook/errors.ToStatusErr). The details of the Status
//     carry the UID of the request, and a cause of type ReviewVersion its version.
//
// Where some functions deny and others cannot decide, the request is denied: it would be
// in any case.
//
// The package does not look into a cluster (see admission/reference), knows no rules for
// fields (see admission/validate), does not listen and does not register itself with the
// API server (see webhook), and imports no client-go. It keeps no metrics, but see
// admission/metrics.
package admission

import "k8s.io/apimachinery/pkg/util/validation/field"

var _ field.ErrorList // for the documentation's link
