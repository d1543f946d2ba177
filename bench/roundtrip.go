package main

import (
	"math/rand"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	peer "k8s.io/apimachinery/pkg/api/apitesting/roundtrip"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"sigs.k8s.io/randfill"

	"github.com/crdkit/crdkit/roundtrip"
)

// objects is the number of objects that each side generates and checks in a call.
const objects = 200

// roundtrip measures the checks per second of roundtrip.TestScheme, and of the round-trip tests
// of k8s.io/apimachinery. It ends the program, as [testing.Main] does, because both sides need a
// *testing.T.
//
// A check is one law for one object. The peer checks six laws:
//
//   - A deep copy is equal.
//   - A deep copy shares no memory.
//   - Encoding does not change the object.
//   - Encoding has one result.
//   - Decoding returns the object.
//   - Decoding into an object returns the object.
//
// TestScheme checks these as the two laws deep-copy and json, which also check the strict decoder;
// only the six are counted. Both sides generate the same objects, because they use the functions,
// the settings and the seed of the peer. The ratio of checks is therefore the ratio of times.
//
// Both sides spend most of the time in randfill and the serializers.
func (b bench) roundtrip() error {
	s := runtime.NewScheme()
	s.AddKnownTypes(appsv1.SchemeGroupVersion, &appsv1.Deployment{})
	codecs := serializer.NewCodecFactory(s)
	source := rand.NewSource(0)
	filler := fuzzer.FuzzerFor(metafuzzer.Funcs, source, codecs)
	fill := func(d *appsv1.Deployment, _ randfill.Continue) { filler.Fill(d) }
	*peer.FuzzIters = objects

	throughput := func(t *testing.T) {
		each := func(test func(t *testing.T)) func() {
			return func() {
				source.Seed(1)
				if !t.Run("", test) {
					t.FailNow()
				}
			}
		}
		ours := each(func(t *testing.T) {
			roundtrip.TestScheme(t, s, roundtrip.Funcs(fill), roundtrip.Seed(1), roundtrip.Iterations(objects),
				roundtrip.SkipLaw(roundtrip.YAML, "the peer does not check it"),
				roundtrip.SkipLaw(roundtrip.CBOR, "the peer does not check it"),
				roundtrip.SkipLaw(roundtrip.Protobuf, "the peer is told not to check it"),
				roundtrip.SkipLaw(roundtrip.Idempotence, "the peer does not check it"))
		})
		theirs := each(func(t *testing.T) {
			peer.RoundTripExternalTypesWithoutProtobuf(t, s, codecs, randfill.New().Funcs(fill), nil)
		})
		faster := func(ours, theirs float64) float64 { return theirs / ours }
		b.compare("roundtrip/throughput", ours, theirs, faster)
	}
	all := func(string, string) (bool, error) { return true, nil }
	testing.Main(all, []testing.InternalTest{
		{Name: "throughput", F: throughput},
		{Name: "objects", F: b.podTemplates},
		{Name: "real", F: realKinds},
	}, nil, nil) // exits
	return nil
}
