// Package roundtrip answers one question: does conversion lose nothing?
//
// It is for the tests of conversion functions:
//
//	func TestConversion(t *testing.T) {
//		roundtrip.Test(t, reg, roundtrip.CRD(crd), roundtrip.History("testdata/history"))
//	}
//	func FuzzConversion(f *testing.F) { roundtrip.Fuzz(f, reg, roundtrip.CRD(crd)) }
//	func TestStored(t *testing.T)     { roundtrip.Golden(t, reg, "testdata/golden", "v1.2.0") }
//
// [Test] makes random objects of each version of each kind in a registry of package
// conversion, converts them, and checks each [Law]. [Fuzz] checks the same laws under
// go test -fuzz, [Golden] keeps what releases have promised, and [TestScheme] checks the
// encodings of a plain runtime.Scheme.
//
// With a CustomResourceDefinition, see [CRD], the objects are what the API server would accept.
// Without it, they are made of the Go types, and functions add what these do not express: see
// [Funcs]. Values at which conversions fail come early and often: lists and maps that are nil,
// empty or long, strings with a length next to a usual bound or with a meaning in YAML, numbers
// of any magnitude and sign, old times. With a schema, so do values at the bounds of each
// version and next to them.
//
// With the definitions of earlier releases, see [History], the objects are also what clusters may
// still store: what any of these releases accepted, with what later ones have let pass since. One
// object that does not convert makes each list and watch of its kind fail.
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
// The smallest object too is one that the functions of [Funcs] would make, or that the API
// server would accept. CATALOGUE.md has the mistakes that the tests of this package plant, and
// how soon each is found.
//
// [Normalize] declares what two objects may differ in, [Refuse] what old objects do not
// convert, and [Without] leaves a law out. Each needs a reason, which the output shows.
//
// # Environment
//
// For one run, CRDKIT_ROUNDTRIP_SEED and CRDKIT_ROUNDTRIP_ITERATIONS override the options, and
// CRDKIT_ROUNDTRIP_UPDATE=true writes golden files.
//
// # What it does not do
//
// It does not ask an API server: what it knows about definitions is what package schema
// knows. It compares a Go type with a schema field by field, but not the ranges of numbers,
// and nothing that a type decodes by itself.
package roundtrip
