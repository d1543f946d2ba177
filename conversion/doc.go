// Package conversion answers one question: how does one version of a kind
// become another?
//
// Conversions are plain functions between two Go types. They are added to a
// [Registry], which knows the types from a [k8s.io/apimachinery/pkg/runtime.Scheme]:
//
//	reg := conversion.NewRegistry(s)
//	err := conversion.AddSpoke(reg, pizzaToHub, pizzaFromHub) // the types are inferred
//	mux.Handle("/convert", conversion.NewHandler(reg))
//
// One version of each kind is the hub; the others are its spokes, and convert
// into each other through it. A function fills in the fields that differ
// between the versions, and nothing else:
//
//	func pizzaToHub(ctx context.Context, in *v1alpha1.Pizza, out *v1beta1.Pizza) error
//
// [NewHandler] serves the registry to the API server, as the conversion webhook
// of a CustomResourceDefinition. [Registry.Convert] converts one object, as text.
//
// People have conversions in other forms too; all of them end in the same graph of
// versions, and a conversion takes the shortest way through it:
//
//   - [AddSpoke]: typed functions between a version and the hub;
//   - [AddDirect]: typed functions between any two versions;
//   - [AddSchemeFunctions]: what conversion-gen has generated, or what else is
//     registered in a runtime.Scheme, with an internal hub version if there is one;
//   - [AddUnstructuredSpoke]: functions for a version that has no Go type;
//   - [AddFields]: no functions, but a list of the fields that have moved.
//
// # Nothing lost
//
// Metadata is not part of a conversion. The API server takes labels and
// annotations from a webhook's answer and ignores, or refuses, every other
// change (apiextensions-apiserver/pkg/apiserver/conversion/webhook_converter.go,
// validateConvertedObject and restoreObjectMeta). So the result begins with the
// metadata of the source, and its text passes through byte for byte. A function
// may change labels and annotations; if it changes another field, that is an
// error which names the field. The one part that a function does not see is
// metadata.managedFields. Of a member that is there twice the last one counts, as in
// the API server, which reads custom objects as maps.
//
// The body of an object passes through the Go types: a field that they lack is
// lost, except where [AddFields] moves fields as text. The API server prunes those
// that the schema lacks as well.
//
// A spoke may also be unable to express a field of the hub: on the way
// hub → spoke → hub, the functions drop it. [Lossless] makes a spoke keep it, in an
// annotation, and merges it with the user's edits in between:
//
//	err = conversion.Lossless(reg, v1alpha1.GroupVersion.WithKind("Pizza"), conversion.ListMapKeysOf(crdYAML))
//
// # Mistakes are found at the start
//
// [AddSpoke] refuses types which the scheme does not know and a second
// conversion of one kind and version. [Registry.Check] finds versions that
// cannot be reached, and compares the registry with CustomResourceDefinitions.
// [NewHandler] calls it, and does not return for a registry
// that would fail at some later request.
//
// # Limits
//
// A request may have 256 MiB. It may be nested 10,000 deep, as the
// API server reads no more of an answer; the review takes three of these levels. A long
// list takes as many goroutines as there are processors. Conversion stops when the
// request's context ends: the API server sets no time limit for a conversion, and hangs up
// when that of its own request is over (webhook_converter.go). Failures are logged by the
// logger of the request's context (klog.FromContext), successes are not.
//
// One thing has no limit here: a field of type resource.Quantity. resource.ParseQuantity
// takes a second for 1e-7620000, a hundred times longer for an exponent with one digit
// more, and the pattern that controller-gen writes for quantities allows both. These markers
// keep such text away, and what ParseQuantity refuses:
//
//	// +kubebuilder:validation:XIntOrString
//	// +kubebuilder:validation:MaxLength=20
//	// +kubebuilder:validation:Pattern=`^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]{1,2})?$`
//
// The package does not default, validate or store objects, and does not talk to
// a cluster: it imports no client-go.
package conversion
