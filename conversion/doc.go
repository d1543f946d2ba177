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
// One version of each kind is the hub. The other versions are its spokes, which are converted
// into each other through the hub. Your function copies all fields from in to out, except for
// apiVersion, kind and metadata. This includes the fields that are the same in both versions:
//
//	func pizzaToHub(ctx context.Context, in *v1alpha1.Pizza, out *v1beta1.Pizza) error
//
// [NewHandler] serves the registry to the API server, as the conversion webhook of a
// CustomResourceDefinition (CRD). [Registry.Convert] converts one object, given as JSON.
//
// There are several ways to add conversions, and a registry can combine them. An object is
// converted in as few steps as possible.
//
//   - [AddSpoke] adds typed functions between a version and the hub.
//   - [AddDirect] adds typed functions between any two versions.
//   - [AddSchemeFunctions] adds functions of the scheme, such as functions that
//     conversion-gen generated. The hub may be an internal version.
//   - [AddUnstructuredSpoke] adds functions for a version that has no Go type.
//   - [AddFields] adds a list of the fields that differ, instead of functions.
//
// # What is preserved
//
// The metadata of the source is copied byte for byte. Your function may change labels and
// annotations. If it changes another metadata field, the conversion fails with an error that
// names the field. The API server ignores or rejects such changes as well
// (apiextensions-apiserver/pkg/apiserver/conversion/webhook_converter.go,
// validateConvertedObject and restoreObjectMeta). Functions do not see
// metadata.managedFields. If a JSON key occurs twice, the last value is used, as in the API
// server.
//
// All other fields pass through the Go types. A field that a Go type lacks is dropped. The
// API server prunes fields that the schema lacks as well. [AddFields] preserves unknown
// fields, because it moves fields as JSON.
//
// If a spoke cannot express a field of the hub, the field is dropped on the way hub → spoke →
// hub. [Lossless] stores such fields in an annotation of the spoke. On the way back it
// restores them, and preserves the edits that a user made to the spoke:
//
//	err = conversion.Lossless(reg, v1alpha1.GroupVersion.WithKind("Pizza"), conversion.ListMapKeysOf(crdYAML))
//
// A field that only the spoke has needs a place in the hub. See the example of [AddSpoke], which
// stores it in an annotation.
//
// # Errors at startup
//
// The functions that add conversions return an error if the scheme does not know a type, or
// if a conversion was added before. [Registry.Check] finds versions that cannot be converted
// into each other, and compares the registry with CRDs. [NewHandler] calls Check without
// CRDs, and panics if Check returns an error.
//
// # Limits
//
// The memory of the process limits the size of a request; see package webhook. Its JSON, and
// the JSON of the answer, may be nested at most 10,000 levels deep, because the API server reads
// no deeper answer. Three of these levels belong to the ConversionReview. Up to GOMAXPROCS
// goroutines, and at most eight, convert a request of more than 256 KiB.
//
// Conversion stops when the context of the request is done. The API server has no time limit
// for a conversion. It closes the connection when the client's request, for which it needs the
// conversion, times out. The logger of the context (klog.FromContext) logs failures, but not
// successes.
//
// The time to parse a resource.Quantity is not limited. resource.ParseQuantity takes one
// second for 1e-7620000, and a hundred times longer if the exponent has one more digit. The
// pattern that controller-gen generates for quantities allows both. Put these markers on each
// field of type resource.Quantity. The API server then rejects values that are slow to parse,
// and values that ParseQuantity rejects:
//
//	// +kubebuilder:validation:XIntOrString
//	// +kubebuilder:validation:MaxLength=20
//	// +kubebuilder:validation:Pattern=`^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]{1,2})?$`
//
// The package does not default, validate or store objects. It does not connect to a cluster.
package conversion
