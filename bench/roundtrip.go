package main

import (
	"math/rand"
	goruntime "runtime"
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

// objects is how many objects either side makes and checks in a call.
const objects = 200

// roundtrip measures how many checks in a second roundtrip.TestScheme makes, and how many
// the round-trip tests of k8s.io/apimachinery do. It ends the program, as [testing.Main]
// does: either side needs a *testing.T.
//
// A check is one law for one object. The peer has six: a deep copy is equal; it shares no
// memory; encoding leaves the object alone, and has one result; decoding, and decoding
// into an object, give it back. These are two of the laws here, deep-copy and json, which
// hold the strict decoder as well; only the six are counted. Either side makes as many
// objects, of the same type, by the same functions with the same settings and seed: the
// peer's own. So all objects are the same, and the ratio of checks is that of the times.
//
// TestScheme checks objects on all processors, and the peer on one. The ratio on one is
// smaller, because both sides spend most of the time in randfill and the serializers.
func (b bench) roundtrip() {
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
			roundtrip.TestScheme(t, s, roundtrip.Funcs(fill), roundtrip.Iterations(objects),
				roundtrip.Without(roundtrip.YAML, "the peer does not check it"),
				roundtrip.Without(roundtrip.CBOR, "the peer does not check it"),
				roundtrip.Without(roundtrip.Protobuf, "the peer is told not to check it"),
				roundtrip.Without(roundtrip.Idempotence, "the peer does not check it"))
		})
		theirs := each(func(t *testing.T) {
			peer.RoundTripExternalTypesWithoutProtobuf(t, s, codecs, randfill.New().Funcs(fill), nil)
		})
		faster := func(ours, theirs float64) float64 { return theirs / ours }
		goruntime.GOMAXPROCS(1)
		b.compare("roundtrip/throughput/1cpu", ours, theirs, faster)
		goruntime.GOMAXPROCS(2)
		b.compare("roundtrip/throughput", ours, theirs, faster)
	}
	all := func(string, string) (bool, error) { return true, nil }
	testing.Main(all, []testing.InternalTest{{Name: "throughput", F: throughput}}, nil, nil)
}
