package roundtrip

import (
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/crdkit/crdkit/conversion"
	"github.com/crdkit/crdkit/schema"
)

// Law is a property that every object has if the conversions are correct. The name of a law is
// the last part of the name of each subtest that checks the law.
//
// The laws are described for a path of [Test]. A is the version with which the path begins, B is
// another version, and C is a third version. A→B→A means that an object of A is converted to B,
// and the result is converted back to A.
type Law string

const (
	// RoundTrip requires that A→B→A returns the original object. If A is the internal hub, the law
	// compares Go values, and nil equals empty. RoundTrip and Partial report an error of a
	// conversion, while most other laws ignore the object, so that a failure is not reported
	// several times. A function that changes other metadata than labels and annotations makes the
	// registry return such an error.
	RoundTrip Law = "round-trip"
	// Partial requires that A→B→A returns the original object even if it lacks some of its
	// top-level fields other than apiVersion, kind and metadata. The API server converts such
	// objects when it computes the owners of fields (the structured merge of
	// apiextensions-apiserver).
	Partial Law = "partial"
	// Edited requires that edits are preserved, and take nothing else away. An object of B is
	// converted to A and edited there, as by a client of A that adds, removes, changes or moves one
	// field, one entry of a map or one element of a list, or replaces top-level fields. With a
	// schema, the API server would accept the update.
	//
	// First, A→B→A must return the edited object, except for metadata, of which only a label and an
	// annotation that the client adds must come back. A conversion breaks this if it stores in an
	// annotation what A cannot represent, and later restores the stored values without checking
	// whether the object has been edited.
	//
	// Second, the fields of B that A cannot represent must stay where the edit changes nothing:
	// where the object without labels and annotations converts to the same struct, map or list
	// before and after the edit. An unchanged element of a list is recognized by the keys of the
	// list in the schema of B, or else by strings that no other element has; the order of elements
	// does not matter. The requirement is not checked if A→B does not return the object of B before
	// the edit, nor for fields in the same struct as an edited field, since they may depend on it.
	Edited Law = "edited"
	// Annotations requires that B→A→B succeeds even if a user has overwritten, in A, the
	// annotations that the conversion added, here with strings that begin with { and are hardly
	// ever JSON. The annotation of [conversion.Lossless] is exempt, because
	// [lossless.DropInvalidAnnotation] decides whether an invalid one is an error.
	Annotations Law = "annotations"
	// Determinism requires that A→B always returns the same bytes for the same object. The
	// object is converted 16 times, by two goroutines at the same time.
	Determinism Law = "determinism"
	// InputUntouched requires that no conversion function changes its input.
	InputUntouched Law = "input-untouched"
	// Aliasing requires that the output of a conversion function shares no memory with its input,
	// nor with the output of an earlier call. The registry works even if functions share memory,
	// but another caller that converts an object from an informer's cache and changes the result
	// changes the cache. The functions of [conversion.AddSchemeFunctions] are exempt, because
	// conversion-gen generates functions that share memory on purpose. For other functions that
	// call generated ones, such as ConvertTo methods, use [SkipLaw], or begin with a DeepCopy of
	// the input.
	Aliasing Law = "aliasing"
	// Defaulting requires that defaulting an object of A and converting it to B gives the same
	// result as converting it to B and defaulting the result. The defaults are the defaults of
	// the registry's scheme ([runtime.Scheme.Default]) and of the [CRD]. The annotation of
	// [conversion.Lossless] is not compared.
	Defaulting Law = "defaulting"
	// PathIndependence requires that A→C→B returns the same object as A→B, or as A→B for the JSON that
	// the Go type of A writes after it has decoded the object.
	PathIndependence Law = "path-independence"
	// Acceptance requires that the API server accepts the result of A→B for each object of A that
	// it accepts. The result must be valid for the schema of B in the [CRD], and pruning must not
	// remove any field of the result. A Go type that writes a struct which the object did not have,
	// such as an empty spec, can break the law: declare the field as a pointer, or with omitzero
	// and the marker +optional, without which controller-gen up to v0.19 makes the field required.
	//
	// A null that the schema does not allow breaks the law, too, outside of the status. Clients do
	// not see it, because the API server leaves it out of what it reads and writes, but if a client
	// has applied an object in A, server-side apply in B fails: add omitempty to the field.
	Acceptance Law = "acceptance"
	// OutsideSchema requires, for an object of A that violates the schema in the [CRD], that no
	// function panics, and that the conversions return an error, or A→B→A returns the original
	// object. Such objects may have been stored before the schema became stricter (KEP-4008). The
	// law is only checked with the option [CheckLaw].
	OutsideSchema Law = "outside-schema"
	// Total requires that each object that a release in the [History] may have stored in A converts
	// to B, and is preserved if a client reads it in B and sends it back. The objects contain
	// nulls, values that today's schema rejects, values of other types, and duplicate keys, which
	// the release accepted, or later releases tolerated in updates (ratcheting). [Refuse] declares
	// exceptions.
	Total Law = "total"
	// Decoding requires that the Go type of a version can decode each object that the schema of the
	// version in the [CRD] accepts. A schema of controller-gen may accept more than its Go type can
	// decode, for example any string for a [k8s.io/apimachinery/pkg/apis/meta/v1.Duration], so that
	// webhooks and informers fail for the object of a user; or than it can hold, such as the unknown
	// fields of a struct with x-kubernetes-preserve-unknown-fields, which each conversion loses.
	Decoding Law = "decoding"
	// Drift requires that the Go type of a version and the schema of the version in the [CRD]
	// have the same fields.
	Drift Law = "drift"

	// JSON requires that objects are preserved in JSON, which is the encoding of stored custom
	// objects and of most requests:
	//
	//   - Decoding an encoded object returns an equal object
	//     ([k8s.io/apimachinery/pkg/api/equality.Semantic]). Encoding that object again returns the
	//     same bytes, so nil and empty differ if the encoding can distinguish them.
	//   - Decoding into an existing object returns the same result. The decoder rejects unknown
	//     fields.
	//   - Encoding an object does not change the object.
	//   - Encoding an object twice returns the same bytes.
	//
	// This law and those that follow are the laws of [TestScheme].
	JSON Law = "json"
	// YAML requires the same in YAML, which is the encoding of manifests, except that the order of
	// keys may differ when an object is encoded twice.
	YAML Law = "yaml"
	// CBOR requires the same in CBOR (KEP-4222).
	CBOR Law = "cbor"
	// Protobuf requires the same in Protobuf, which cannot distinguish nil from empty, and whose
	// decoder skips unknown fields. The law is only checked for Go types with the methods that
	// go-to-protobuf generates.
	Protobuf Law = "protobuf"
	// DeepCopy requires that DeepCopyObject returns an equal object that shares no memory with
	// the original. Nil and empty differ.
	DeepCopy Law = "deep-copy"
	// Idempotence requires that defaulting an object twice ([runtime.Scheme.Default]) gives the
	// same result as defaulting it once.
	Idempotence Law = "idempotence"
)

// allLaws are the laws that users can name. A new law also needs its check, in laws or in subjects, and a
// bug in the catalogue of catalogue_test.go.
var allLaws = append([]Law{RoundTrip, Partial, Edited, Annotations, Determinism, InputUntouched, Aliasing, Defaulting, PathIndependence, Acceptance, OutsideSchema, Total, Decoding, Drift}, schemeLaws...)

// check returns how an object breaks a law, or nil.
type check func(ctx context.Context, s *subject, object []byte) *failure

// lawOnPath is the check of a law. If back is set, the path leads back to its first version. The objects are
// stored ones if make is nil.
type lawOnPath struct {
	law   Law
	back  bool
	check check
	make  maker
}

// laws are the laws that need two versions, or one version and an internal hub.
var laws = []lawOnPath{
	{RoundTrip, true, roundTrip, nil},
	{Partial, true, roundTrip, partial},
	{Edited, true, fresh(edited), changed},
	{Annotations, true, fresh(converts), annotated},
	{Determinism, false, determinism, nil},
	{InputUntouched, false, inputUntouched, nil},
	{Aliasing, false, aliasing, nil},
	{Defaulting, false, defaulting, withoutDefaults},
}

// subject is one law on one path, and therefore one subtest.
type subject struct {
	registry *conversion.Registry
	cfg      *config
	kind     conversion.Kind
	path     []string // versions
	law      Law
	check    check
	// checkValue is the check of a law about Go values; nil for others. See [TestScheme].
	checkValue checkValue
	make       maker // nil for stored objects, or Go values
	// definition is that of the kind, or nil.
	definition *schema.Definition
	origins    []origin // see [Total]
	// tried and checked are the numbers of objects in the last search, of which not all can be
	// made. stopped reports whether the time was over before enough of them were checked.
	tried, checked int
	stopped        bool
	// coverage counts what the objects have; nil for laws that change them.
	coverage *coverage
	// reported are the causes that earlier tests have reported, or nil to look for the first
	// failure.
	reported causes
}

// subjects returns the subjects of a kind, those of one path together.
func subjects(reg *conversion.Registry, cfg *config, kind conversion.Kind) (all []*subject) {
	definition := cfg.definition(kind.GroupKind)
	add := func(law Law, check check, make maker, path ...string) *subject {
		s := &subject{registry: reg, cfg: cfg, kind: kind, path: path, law: law, check: check, make: make, definition: definition}
		all = append(all, s)
		return s
	}
	for _, a := range kind.Versions {
		if definition != nil && reg.Scheme().Recognizes(kind.WithVersion(a)) {
			add(Drift, nil, nil, a)
			if definition.Version(a).Structural() != nil {
				add(Decoding, decoding, nil, a)
			}
		}
		if kind.Hub == runtime.APIVersionInternal {
			for _, l := range laws {
				if !slices.Contains([]Law{Defaulting, Edited, Annotations}, l.law) {
					add(l.law, l.check, l.make, a, kind.Hub, a)
				}
			}
			if f, ok := findHubFunctions(reg, cfg, kind, a); ok {
				add(RoundTrip, nil, nil, kind.Hub, a, kind.Hub).checkValue = throughOther(f.convert)
			}
		}
		for _, b := range kind.Versions {
			if a == b {
				continue
			}
			for _, l := range laws {
				path := []string{a, b}
				if l.back {
					path = append(path, a)
				}
				add(l.law, l.check, l.make, path...)
			}
			if definition != nil {
				add(Acceptance, acceptance, nil, a, b)
			}
			if origins := cfg.origins(kind, a); len(origins) > 0 {
				add(Total, total, earlier, a, b, a).origins = origins
			}
			if definition != nil && cfg.outside && definition.Version(a).Structural() != nil {
				add(OutsideSchema, outside, outsideSchema, a, b, a)
			}
			for _, c := range kind.Versions {
				if c != a && c != b {
					add(PathIndependence, pathIndependence, nil, a, c, b)
				}
			}
		}
	}
	return all
}

// route is the path as a subtest is named.
func (s *subject) route() string { return strings.Join(s.path, "→") }

// String names a subject as its subtest is named.
func (s *subject) String() string {
	return s.kind.GroupKind.String() + "/" + s.route() + "/" + string(s.law)
}
