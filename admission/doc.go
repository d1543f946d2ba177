// Package admission answers one question: may this write pass, and with which
// changes?
//
// An author writes plain functions of a Go type:
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
// The context has the rest of the request ([RequestFrom], [OldFrom]) and takes the rest of
// the answer ([Warn], [AuditAnnotation]). It has the logger of the HTTP request's context
// (klog.FromContext), with the values kind, object, operation, user and uid.
//
// An object is the function's to keep, and the context is good until it returns.
//
// # Nothing lost
//
// A patch is made from what the functions of a webhook changed, for the text that the API
// server sent. Numbers keep their digits. Fields which the Go type does not know stay where
// they are, also in list elements that move, as far as these can be identified.
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
// Without keys, a new element that shares such a value with a removed one is taken for an
// edit of it. So declare the keys of lists in which unknown fields matter.
//
// # Denied, or not decided
//
// The two are never confused:
//
//   - A [k8s.io/apimachinery/pkg/util/validation/field.ErrorList] denies with Status 422
//     Invalid, and one cause for each error; so does an error that is or wraps a field.Error
//     or an aggregate of them, also one of a conversion. An API error with a code from 400 to
//     499, such as [k8s.io/apimachinery/pkg/api/errors.NewForbidden], denies as it is. So does
//     an object that does not fit its Go type, with 400. The answer is a review that is not
//     allowed.
//   - Every other error, and a panic, leaves the request undecided: also an API error
//     with 401, 404, 408, 429, or 500 and above, and one that another error wraps. The
//     answer is an HTTP error with a Status, whose details carry the UID of the request and,
//     in a cause of type ReviewVersion, its version. The API server applies the webhook's
//     failurePolicy; with 429, or 5xx, and retryAfterSeconds in the details it tries again
//     first (client-go/rest/with_retry.go).
//
// Where some functions deny and others cannot decide, the request is denied.
//
// The package does not look into a cluster (see admission/reference), knows no rules for
// fields (see admission/validate), does not listen or register itself (see webhook), keeps
// no metrics (see admission/metrics), and imports no client-go.
package admission
