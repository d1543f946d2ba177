// Package conversion converts objects between the versions of a kind.
//
// A conversion is a plain function between two Go types. You add your functions to a
// [Registry], which looks up the kind and version of each Go type in a
// [k8s.io/apimachinery/pkg/runtime.Scheme]:
//
//	reg := conversion.NewRegistry(s)
//	err := conversion.AddSpoke(reg, pizzaToHub, pizzaFromHub) // the types are inferred
//	mux.Handle("/convert", conversion.NewHandler(reg))
//
// One version of each kind is the hub. The other versions are its spokes, which are converted into
// each other through the hub. Your function copies all fields from in to out, also those that are
// the same in both versions, but not apiVersion, kind and metadata:
//
//	func pizzaToHub(ctx context.Context, in *v1alpha1.Pizza, out *v1beta1.Pizza) error
//
// [NewHandler] serves the registry to the API server, as the conversion webhook of a
// CustomResourceDefinition (CRD). [Registry.Convert] converts one object, given as JSON.
//
// A registry can combine several ways to add conversions:
//
//   - [AddSpoke] adds typed functions between a version and the hub.
//   - [AddSchemeFunctions] adds functions of the scheme, such as functions that
//     conversion-gen generated. The hub may be an internal version.
//   - [AddUnstructuredSpoke] adds functions for a version that has no Go type.
//   - [AddFields] adds a list of the fields that differ, instead of functions.
//
// # What is preserved
//
// The package copies the metadata of the source byte for byte. Your function may change labels and
// annotations; if it changes another metadata field, which the API server would ignore or reject,
// the conversion fails with an error that names the field
// (apiextensions-apiserver/pkg/apiserver/conversion/webhook_converter.go, validateConvertedObject
// and restoreObjectMeta). Functions do not see metadata.managedFields. Of a JSON key that occurs
// twice, the last value is used, as in the API server.
//
// All other fields pass through the Go types, so a field that a Go type lacks is dropped, as the
// API server prunes fields that the schema lacks. [AddFields] preserves unknown fields, because it
// moves fields as JSON.
//
// A field of the hub that a spoke cannot express is dropped on the way hub → spoke → hub, unless
// [Lossless] stores it in an annotation of the spoke. On the way back, Lossless restores the field,
// and preserves the edits that a user made to the spoke:
//
//	err = conversion.Lossless(reg, v1alpha1.GroupVersion.WithKind("Pizza"), lossless.ListMapKeys(crdYAML))
//
// A field that only the spoke has needs a place in the hub, such as the annotation in the example
// of [AddSpoke].
//
// # Errors at startup
//
// The functions that add conversions return an error if the scheme does not know a type, or
// if a conversion was added before. [Registry.Check] finds versions without conversions, and
// compares the registry with CRDs. [NewHandler] calls Check without CRDs, and panics if Check
// returns an error.
//
// # Limits
//
// The memory of the process limits the size of a request; see package webhook. Objects may nest
// 9,997 levels. Up to GOMAXPROCS goroutines, and at most eight, convert a request of more than 256
// KiB.
//
// The API server waits 30 seconds for a conversion (apiserver/pkg/util/webhook/webhook.go). One second before, the
// context of your functions is done; return then, so that the error names the object. Go cannot stop a function that does
// not return: the handler logs it, and until it returns, refuses to convert the same objects. The logger of the context
// (klog.FromContext) logs failures, but not successes.
//
// A resource.Quantity may take long to parse: resource.ParseQuantity takes one second for
// 1e-7620000, and a hundred times longer if the exponent has one more digit. The pattern that
// controller-gen generates for quantities allows both. With these markers on each field of type
// resource.Quantity, the API server rejects values that are slow to parse, and values that
// ParseQuantity rejects:
//
//	// +kubebuilder:validation:XIntOrString
//	// +kubebuilder:validation:MaxLength=32
//	// +kubebuilder:validation:Pattern=`^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]{1,2})?$`
//
// The package does not default, validate or store objects, and does not connect to a cluster.
package conversion
