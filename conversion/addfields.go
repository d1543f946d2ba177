package conversion

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdkit/crdkit/internal/rawjson"
)

// AddFields adds the two conversions between a version, the spoke, and the kind's
// hub version, where the two differ only in what the moves say. No Go types are
// needed, and none are decoded: all fields that no move names keep their text,
// known or not.
//
// A field that only one of the two has is another difference, which no move can say: use
// [AddSpoke] or [AddUnstructuredSpoke] for that. Here the field would stay in an object of
// the other version, where the API server prunes it from what clients read, so that what
// they write back lacks it; and since it does not prune what it converts for managedFields,
// server-side apply fails with "field not declared in schema"
// (apimachinery/pkg/util/managedfields/internal/structuredmerge.go). roundtrip.CRD finds
// such fields.
//
// Each move converts in both directions, and is held to that: a value for which the inverse
// would not be exact is an error of the conversion, which names the field. All moves of a
// direction happen at once: two fields may change places.
//
// Paths are names joined by dots, such as spec.hostPort, below the object's root.
// They lead through objects alone; for the elements of a list, see [Each]. The
// field of a path may be absent: then there is nothing to move. An object on the way
// is created where it is needed, and removed when nothing is left in it; this is the
// one thing that is not exact: an object that was there and empty does not come back,
// unless the spoke is [Lossless]. Metadata cannot be moved.
//
// The error joins all mistakes: no moves; an empty [Move]; a path that is empty, leads into
// metadata, apiVersion or kind of the object, or overlaps with that of another move on its
// side; and what is an error of [AddSpoke].
func AddFields(r *Registry, spoke schema.GroupVersionKind, hubVersion string, moves ...Move) error {
	var errs []error
	if spoke.Version == "" || spoke.Kind == "" || hubVersion == "" {
		errs = append(errs, fmt.Errorf("conversion: %s needs a version, a kind and a version of the hub", spoke))
	}
	if len(moves) == 0 {
		errs = append(errs, fmt.Errorf("conversion: %s has no moves", spoke))
	}
	for _, err := range checkMoves(moves, true) {
		errs = append(errs, fmt.Errorf("conversion: %s: %w", spoke, err))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	hub := spoke.GroupKind().WithVersion(hubVersion)
	return r.add(true,
		&step{from: spoke, to: hub, convertPayload: moveAll(moves, true)},
		&step{from: hub, to: spoke, convertPayload: moveAll(moves, false)})
}

// Move is one difference between two versions, made by [Rename], [Enum], [Split] and [Each].
type Move struct {
	spoke, hub []string // paths
	// convert returns the values at the paths of one side, which are made of those of the
	// other, at least one of which is there; nil is an absent one.
	convert func(values [][]byte, toHub bool) ([][]byte, error)
	errs    []error
	nested  []Move
}

// checkMoves returns the mistakes in moves on a whole object, or on an element of a list.
func checkMoves(moves []Move, whole bool) (errs []error) {
	sides := map[string][]string{}
	for _, m := range moves {
		if m.convert == nil {
			errs = append(errs, errors.New("an empty Move: make one with Rename, Enum, Split or Each"))
		}
		errs = append(errs, m.errs...)
		errs = append(errs, checkMoves(m.nested, false)...)
		sides["spoke"] = append(sides["spoke"], m.spoke...)
		sides["hub"] = append(sides["hub"], m.hub...)
	}
	for _, side := range []string{"spoke", "hub"} {
		paths := slices.Sorted(slices.Values(sides[side]))
		for i, path := range paths {
			switch first, _, _ := strings.Cut(path, "."); {
			case path == "" || slices.Contains(strings.Split(path, "."), ""):
				errs = append(errs, fmt.Errorf("the path %q is not a path", path))
			case whole && slices.Contains([]string{"metadata", "apiVersion", "kind"}, first):
				errs = append(errs, fmt.Errorf("%s cannot be moved", path))
			}
			for _, other := range paths[:i] {
				if path == other || strings.HasPrefix(path, other+".") {
					errs = append(errs, fmt.Errorf("two moves overlap on the side of the %s: %s and %s", side, other, path))
				}
			}
		}
	}
	return errs
}

// moveAll returns what does all moves of an object, in one direction.
func moveAll(moves []Move, toHub bool) func(context.Context, *converter, payload) (payload, error) {
	return func(_ context.Context, _ *converter, p payload) (payload, error) {
		var err error
		p.body, err = move(p.body, moves, toHub)
		return p, err
	}
}

// move takes everything out of an object first, and then puts it back, so that moves may
// change places.
func move(object []byte, moves []Move, toHub bool) ([]byte, error) {
	ends := func(m Move) (from, to []string) {
		if toHub {
			return m.spoke, m.hub
		}
		return m.hub, m.spoke
	}
	made := make([][][]byte, len(moves))
	for i, m := range moves {
		from, _ := ends(m)
		values, found := make([][]byte, len(from)), false
		for j, path := range from {
			names := strings.Split(path, ".")
			if values[j] = rawjson.At(object, names...); values[j] == nil {
				continue
			}
			found = true
			var err error
			if object, err = put(object, names, nil); err != nil {
				return nil, err
			}
		}
		if !found {
			continue
		}
		var err error
		if made[i], err = m.convert(values, toHub); err != nil {
			return nil, err
		}
	}
	// A field that is already at the destination would be moved back later, even if nothing
	// is moved now.
	for _, m := range moves {
		_, to := ends(m)
		for _, path := range to {
			if rawjson.At(object, strings.Split(path, ".")...) != nil {
				return nil, fmt.Errorf("%s: %w", path, errThere)
			}
		}
	}
	for i, m := range moves {
		_, to := ends(m)
		for j, value := range made[i] {
			var err error
			if object, err = put(object, strings.Split(to[j], "."), value); err != nil {
				return nil, err
			}
		}
	}
	return object, nil
}

var errThere = errors.New("the destination of a move is already set")

// put returns an object with the value at a path. It creates the objects on the way; with
// nil, it removes the value, and the objects that have nothing else in them.
func put(object []byte, path []string, value []byte) ([]byte, error) {
	if len(path) > 1 {
		inner := rawjson.At(object, path[0])
		if inner == nil {
			inner = []byte("{}")
		}
		if inner[0] != '{' {
			return nil, fmt.Errorf("%s: %w", path[0], errThere)
		}
		changed, err := put(inner, path[1:], value)
		if err != nil {
			return nil, fmt.Errorf("%s.%w", path[0], err)
		}
		if value = changed; string(changed) == "{}" {
			value = nil
		}
	}
	return rawjson.Set(object, path[0], value)
}
