// Package roundtrip tests that conversions between the versions of a kind preserve all data.
//
// Add these functions to the tests of your conversions, where reg is a registry of package
// conversion, and crd contains your CustomResourceDefinitions (CRDs):
//
//	func TestConversion(t *testing.T) {
//		roundtrip.Test(t, reg, roundtrip.CRD(crd), roundtrip.History("testdata/history"))
//	}
//	func FuzzConversion(f *testing.F) { roundtrip.Fuzz(f, reg, roundtrip.CRD(crd)) }
//	func TestStored(t *testing.T)     { roundtrip.Golden(t, reg, "testdata/golden", "v1.2.0") }
//
// The package provides these functions:
//
//   - [Test] generates random objects of each version, converts them, and checks each [Law].
//   - [Fuzz] checks the same laws with go test -fuzz.
//   - [Golden] checks that stored objects convert exactly as in earlier releases.
//   - [TestScheme] checks the encodings, deep copies and defaults of the Go types of a
//     runtime.Scheme.
//
// # Generated objects
//
// With the option [CRD], objects are generated from the schema, and the API server would accept
// them. Without it, they are generated from the Go types, and the option [Funcs] adds rules that Go
// types do not express.
//
// Objects often contain values that break conversions:
//
//   - lists and maps that are nil, empty or long.
//   - strings that have a special meaning in YAML, or a length near a usual limit.
//   - numbers of any magnitude and sign.
//   - times long ago.
//   - with a schema, values at and next to the limits of each version.
//
// With the option [History], Test also generates the objects that earlier releases of your operator
// may have stored, because a single stored object that does not convert makes each list and watch
// of its kind fail.
//
// See [Iterations] for the number of objects and the time. With go test -v, the tests log what the
// generated objects of each version had:
//
//	v1: leaves 1304 of 1304, lists with two elements 187 of 187, in 652 objects
//
// The line names each field or list that no object had. The tests stop in time for go test
// -timeout, so that no report is lost.
//
// # Failures
//
// A failure shows the smallest object that was found, and the command that reproduces the
// failure:
//
//	Job v1alpha1→v1→v1alpha1: the round-trip law does not hold for this object:
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
//	The object is the smallest of 67 objects that were tried. It was made from object 3 of seed 25844. To reproduce the failure, run:
//
//		CRDKIT_ROUNDTRIP_SEED=25844 CRDKIT_ROUNDTRIP_ITERATIONS=3 go test -run '^TestConversion$/^Job$/^v1alpha1→v1→v1alpha1$/^round-trip$' .
//
// The smallest object also satisfies the functions of [Funcs], or the schema. CATALOGUE.md lists
// the mistakes that the laws find, and how many objects it takes to find each mistake.
//
// Most faults break several laws, on several paths. Only the first test that fails has the report.
// Later tests that fail in the same fields, or with the same error, and share a conversion function
// with the first, name its report in one line, and go on searching for other faults.
//
// To accept a failure, declare a difference with [Normalize], an error with [Refuse], or skip a law
// with [SkipLaw]. The test's output includes the reason that you give.
//
// # Environment variables
//
// CRDKIT_ROUNDTRIP_SEED overrides [Seed], and CRDKIT_ROUNDTRIP_ITERATIONS overrides [Iterations].
// With CRDKIT_ROUNDTRIP_UPDATE=true, Golden writes golden files.
//
// A conversion function that does not return, or takes all memory, ends the test without a report.
// To find the object that is to blame, print the input of the function, and repeat the test with
// the seed, which is printed to standard error at the start.
//
// # Limitations
//
// The tests do not know what a field means: they find no mistake that the way back repeats, such as
// two fields that both functions swap. They do not send objects to an API server: package schema
// validates, prunes and defaults them. [Drift] compares the fields of a Go type and a schema, but
// neither the ranges of numbers nor the contents of types with UnmarshalJSON or UnmarshalText.
//
// Unless the schema has other bounds, lists have up to 65 elements, maps up to 17, and strings up to 256
// characters. A value that only the code of a conversion names, such as the type
// Ready of a condition or port 8080, is hardly ever generated, unless it is in an enum or a default
// of the schema, or a function of [Funcs] makes it.
package roundtrip
