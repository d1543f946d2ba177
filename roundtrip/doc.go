// Package roundtrip answers one question: does conversion lose nothing?
//
// It is for the tests of conversion functions:
//
//	func TestConversion(t *testing.T) { roundtrip.Test(t, reg, roundtrip.CRD(crd)) }
//	func FuzzConversion(f *testing.F) { roundtrip.Fuzz(f, reg, roundtrip.CRD(crd)) }
//	func TestStored(t *testing.T)     { roundtrip.Golden(t, reg, "testdata/golden", "v1.2.0") }
//
// [Test] makes random objects of each version of each kind in a registry of package
// conversion, converts them, and checks the laws of conversion:
//
//   - [RoundTrip]: there and back gives the object;
//   - [Partial]: also if spec, status or both are missing;
//   - [Edited]: what is edited on the way stays so;
//   - [Annotations]: other text in the annotations of a conversion does not stop it;
//   - [PathIndependence]: a detour by a third version makes no difference;
//   - [Metadata]: only labels and annotations may change;
//   - [Determinism]: the same object gives the same bytes;
//   - [InputUntouched]: a function leaves its input alone;
//   - [Aliasing]: what it makes shares no memory with the input, nor with other results;
//   - [Defaulting]: it does not matter whether defaults come before or after;
//   - [Acceptance]: the API server would accept the result, and prune nothing;
//   - [Drift]: the Go types have the fields of the schema.
//
// The last two need the CustomResourceDefinition, see [CRD]. With it, the objects are what the
// API server would accept. Without it, they are made of the Go types, and functions add what
// these do not express: see [Funcs].
//
// [Fuzz] checks the same laws under go test -fuzz, [Golden] keeps what releases have
// promised, and [TestScheme] checks the encodings of a plain runtime.Scheme.
//
// # What the objects are made of
//
// Values at which conversions fail come early and often: lists and maps that are nil, empty or
// long, strings with a length next to a usual bound or with a meaning in YAML, numbers of any
// magnitude and sign, times in the years 1000 to 2099.
//
// With a schema, bounds in any of its versions give other lengths, sizes and numbers: those
// at a bound and next to it. Only a schema or a function gives the values of an enum.
//
// # When a law is broken
//
// The failure shows the smallest object that breaks it, and how to have it again:
//
//	Job v1alpha1→v1→v1alpha1: the law round-trip does not hold for this object:
//
//		apiVersion: batch.example.com/v1alpha1
//		kind: Job
//		metadata:
//		  name: x
//		spec:
//		  memory: "0"
//		  replicas: 0
//
//	the difference (-want +got):
//
//		- spec.replicas: 0
//
// The difference has 20 lines at most. An object is made of random draws. Shrinking takes
// those of whole fields and list elements away, makes the rest smaller, and makes the object
// again, so that the smallest object too is one that the functions of [Funcs] would make, or
// that the API server would accept. CATALOGUE.md has the mistakes that the tests of this
// package plant, and how soon each is found.
//
// # When a law need not hold
//
// [Normalize] declares what two objects may differ in, and [Without] leaves a law out. Each
// needs a reason, which the output shows.
//
// # Environment
//
// For one run, CRDKIT_ROUNDTRIP_SEED, CRDKIT_ROUNDTRIP_ITERATIONS and CRDKIT_ROUNDTRIP_TIME
// override the options, and CRDKIT_ROUNDTRIP_UPDATE=true writes golden files:
//
//	CRDKIT_ROUNDTRIP_TIME=1m go test -run Conversion .
//
// # What it does not do
//
// It does not ask an API server: what it knows about definitions is what package schema
// knows. It compares a Go type with a schema field by field, but not the ranges of numbers,
// and nothing that a type decodes by itself.
package roundtrip
