package roundtrip

import (
	"context"
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
	// RoundTrip requires that A→B→A returns the original object. If A is the internal hub, the
	// law compares Go values, and nil equals empty. RoundTrip and Partial report an error of a
	// conversion. Most other laws ignore such an object, so that a failure is not reported
	// several times.
	RoundTrip Law = "round-trip"
	// Partial requires that A→B→A returns the original object even if some of its top-level
	// fields are missing. Only apiVersion, kind and metadata are always present. The API server
	// converts such objects when it computes the owners of fields (the structured merge of
	// apiextensions-apiserver).
	Partial Law = "partial"
	// Edited requires that edits are preserved, and take nothing else away. An object of B is
	// converted to A and edited there, as a client of A does: it adds, removes, changes or moves one
	// field, one entry of a map or one element of a list, or replaces top-level fields. With a schema,
	// the API server would accept the update.
	//
	// First, A→B→A must return the edited object, but metadata is not compared. The law is broken by a
	// conversion that stores in an annotation what A cannot represent, and later restores the stored
	// values without checking whether the object has been edited.
	//
	// Second, the fields of B that A cannot represent must stay where the edit changes nothing. To
	// find these places, the object is also converted to B without its labels and annotations, before and after
	// the edit. A struct, map or list that has the same value both times must then also be the same, before
	// and after the edit, in the conversions with annotations. So must an element of a list that the edit
	// does not change. It is recognized by the keys of the list in the schema of B, or else by strings that
	// no other element has. The order of elements does not matter. The requirement is not
	// checked if A→B does not return the object of B before the edit, nor for fields in the same struct
	// as an edited field, since they may depend on it.
	Edited Law = "edited"
	// Annotations requires that B→A→B succeeds even if a user has overwritten, in A, the
	// annotations that the conversion added. The law replaces their values with strings that
	// begin with { and are hardly ever JSON. A single object that does not convert makes each
	// list of its kind fail. The annotation of [conversion.Lossless] is exempt. The option
	// [conversion.DropInvalidAnnotation] decides whether an invalid annotation is an error.
	Annotations Law = "annotations"
	// Metadata requires that A→B does not change the JSON of any field of metadata except labels
	// and annotations. The registry enforces the law: if a conversion function changes another
	// field, the conversion returns an error, which RoundTrip reports.
	Metadata Law = "metadata"
	// Determinism requires that A→B always returns the same bytes for the same object. The
	// object is converted 16 times, by two goroutines at the same time.
	Determinism Law = "determinism"
	// InputUntouched requires that no conversion function changes its input.
	InputUntouched Law = "input-untouched"
	// Aliasing requires that the output of a conversion function shares no memory with its
	// input, nor with the output of an earlier call. The registry works even if functions share
	// memory. Other callers of your functions may not: if such a caller converts an object from
	// an informer's cache and changes the result, it changes the cache. The functions of
	// [conversion.AddSchemeFunctions] are exempt, because conversion-gen generates functions
	// that share memory on purpose.
	Aliasing Law = "aliasing"
	// Defaulting requires that defaulting an object of A and converting it to B gives the same
	// result as converting it to B and defaulting the result. The defaults are the defaults of
	// the registry's scheme ([runtime.Scheme.Default]) and of the [CRD].
	Defaulting Law = "defaulting"
	// PathIndependence requires that A→C→B returns the same object as A→B.
	PathIndependence Law = "path-independence"
	// Acceptance requires that the API server accepts the result of A→B for each object of A
	// that it accepts. The result must be valid for the schema of B in the [CRD], and pruning
	// must not remove any field of the result. A Go type can break the law if it writes a struct
	// that the object did not have, such as an empty spec: declare the field as a pointer, or
	// with omitzero and the marker +optional. Without the marker, controller-gen up to v0.19 makes a
	// field with omitzero required.
	Acceptance Law = "acceptance"
	// OutsideSchema requires that no function panics for an object of A that violates the
	// schema in the [CRD]. The conversions must return an error, or A→B→A must return the
	// original object. Such objects may have been stored before the schema became stricter
	// (KEP-4008). The law is only checked with the option [With].
	OutsideSchema Law = "outside-schema"
	// Total requires that each object that a release in the [History] may have stored in A
	// converts to B, and is preserved if a client reads it in B and sends it back. The objects
	// contain nulls, values that today's schema rejects, values of other types, and duplicate
	// keys. The release accepted them, or later releases tolerated them in updates
	// (ratcheting). A single object that does not convert makes each list and watch of its kind
	// fail. [Refuse] declares exceptions.
	Total Law = "total"
	// Decoding requires that the Go type of a version can decode each object that the schema of
	// the version in the [CRD] accepts. A schema of controller-gen may accept more than its Go
	// type can decode, for example any string for a
	// [k8s.io/apimachinery/pkg/apis/meta/v1.Duration]. If a user writes such an object, each
	// webhook fails to decode it, and informers stop.
	Decoding Law = "decoding"
	// Drift requires that the Go type of a version and the schema of the version in the [CRD]
	// have the same fields.
	Drift Law = "drift"
)

var allLaws = append([]Law{RoundTrip, Partial, Edited, Annotations, Metadata, Determinism, InputUntouched, Aliasing, Defaulting, PathIndependence, Acceptance, OutsideSchema, Total, Decoding, Drift}, schemeLaws...)

// check returns how an object breaks a law, or nil.
type check func(ctx context.Context, s *subject, object []byte) *failure

// lawOnPath is the check of a law. If back is set, the path leads back to its first version.
type lawOnPath struct {
	law   Law
	back  bool
	check check
}

// laws are the laws that need two versions, or one version and an internal hub.
var laws = []lawOnPath{
	{RoundTrip, true, roundTrip},
	{Partial, true, roundTrip},
	{Edited, true, fresh(withoutMetadata)},
	{Annotations, true, fresh(converts)},
	{Metadata, false, metadata},
	{Determinism, false, determinism},
	{InputUntouched, false, inputUntouched},
	{Aliasing, false, aliasing},
	{Defaulting, false, defaulting},
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
	pool       *pool
	// start makes objects of the path's first version; via makes those of its second that
	// objects of [Edited] and [Annotations] were before.
	start, via generator
	// definition is that of the kind, or nil.
	definition *schema.Definition
	origins    []origin // see [Total]
	// tried and checked are the numbers of objects in the last search; not all that are tried can be made. stopped
	// reports whether the time was over before enough of them.
	tried, checked int
	stopped        bool
	// coverage counts what the objects have; nil for laws that change them.
	coverage *coverage
	// reported are the causes of which the tests before have reports; nil to look for the first failure.
	reported *causes
}

// subjects returns the subjects of a kind, those of one path together.
func subjects(reg *conversion.Registry, cfg *config, kind conversion.Kind) (all []*subject) {
	definition := cfg.definition(kind.GroupKind)
	add := func(law Law, check check, path ...string) {
		all = append(all, &subject{registry: reg, cfg: cfg, kind: kind, path: path, law: law, check: check, definition: definition})
	}
	for _, a := range kind.Versions {
		if definition != nil && reg.Scheme().Recognizes(kind.WithVersion(a)) {
			add(Drift, nil, a)
			if definition.Version(a).Structural() != nil {
				add(Decoding, decoding, a)
			}
		}
		if kind.Hub == runtime.APIVersionInternal {
			for _, l := range laws {
				if l.law != Defaulting && l.law != Edited && l.law != Annotations {
					add(l.law, l.check, a, kind.Hub, a)
				}
			}
			if f, ok := findHubFunctions(reg, cfg, kind, a); ok {
				add(RoundTrip, nil, kind.Hub, a, kind.Hub)
				all[len(all)-1].checkValue = throughOther(f.convert)
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
				add(l.law, l.check, path...)
			}
			if definition != nil {
				add(Acceptance, acceptance, a, b)
			}
			if origins := cfg.origins(kind, a); len(origins) > 0 {
				add(Total, total, a, b, a)
				all[len(all)-1].origins = origins
			}
			if definition != nil && cfg.outside {
				add(OutsideSchema, outside, a, b, a)
			}
			for _, c := range kind.Versions {
				if c != a && c != b {
					add(PathIndependence, pathIndependence, a, c, b)
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
