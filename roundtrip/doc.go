// Package roundtrip answers one question: does conversion lose nothing?
//
// It is for the test file of who writes conversions:
//
//	func TestConversion(t *testing.T) { roundtrip.Test(t, reg) }
//
// [Test] makes random objects of each version of each kind in a registry of package
// conversion, converts them, and checks the laws of conversion:
//
//   - [RoundTrip]: there and back gives the object;
//   - [Partial]: also if spec, status or both are missing;
//   - [PathIndependence]: a detour by a third version makes no difference;
//   - [Metadata]: only labels and annotations may change;
//   - [Determinism]: the same object gives the same bytes;
//   - [InputUntouched]: a function leaves its input alone.
//
// What the Go types do not say about valid objects, functions do: see [Funcs].
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
// An object is made of a stream of random draws. Shrinking makes the stream smaller and
// the object again, so that also the smallest object is one that the functions of [Funcs]
// would make.
//
// # What it does not do
//
// It compares conversions with each other, and not with a CustomResourceDefinition: it
// does not notice that a converted object is not valid, or that a Go type lacks a field of
// the schema. It does not look for aliases between what a function gets and what it makes:
// the registry gives no caller the same memory twice. It does not check a conversion to
// the internal version by itself, only as a part of the way between two others. It knows
// no equality but that of JSON, and does not keep what it has found for the next run.
package roundtrip
