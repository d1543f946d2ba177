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

// AddFields adds the two conversions between a version, the spoke, and the kind's hub version, as a
// list of the fields that differ. It needs no Go types: fields that no move mentions, even unknown
// ones, are copied as JSON.
//
// Each [Move] converts in both directions. A value that the inverse would not restore exactly, and
// a destination that is set, are errors of the conversion, which name the field. All moves of a
// direction happen at once, so two fields can change places.
//
// A path is the names of fields joined by dots, such as spec.hostPort, from the root of the
// object. A path cannot lead into a list: to convert list elements, use [AddUnstructuredSpoke]. If
// the field at a path is absent, nothing is moved.
//
// Missing objects on the path of a destination are created, and an object on its path that a move
// leaves empty is removed. A round trip therefore loses a destination object that was empty before,
// unless the spoke is [Lossless].
//
// No move expresses a field that only one of the versions has. For such a field, which the option
// roundtrip.CRD finds, use [AddSpoke] or [AddUnstructuredSpoke], because AddFields leaves it in the
// converted object:
//
//   - The API server prunes the field from its answers, so a client that writes the object back
//     removes it.
//   - Server-side apply fails with "field not declared in schema", because the API server does not
//     prune the objects that it converts to track managedFields
//     (apimachinery/pkg/util/managedfields/internal/structuredmerge.go).
//
// AddFields returns an error that joins all mistakes:
//
//   - The version or the kind of the spoke, or hubVersion, is empty.
//   - There are no moves, or a [Move] is empty.
//   - A path is empty, or starts at apiVersion, kind or metadata.
//   - A path overlaps with the path of another move on the same side.
//   - A move is invalid, such as a [Split] with an empty separator.
//   - The kind has another hub, or conversions between the versions were added before.
func AddFields(r *Registry, spoke schema.GroupVersionKind, hubVersion string, moves ...Move) error {
	var errs []error
	if spoke.Version == "" || spoke.Kind == "" || hubVersion == "" {
		errs = append(errs, fmt.Errorf("conversion: %s needs a version, a kind and a version of the hub", spoke))
	}
	if len(moves) == 0 {
		errs = append(errs, fmt.Errorf("conversion: %s has no moves", spoke))
	}
	for _, err := range checkMoves(moves) {
		errs = append(errs, fmt.Errorf("conversion: %s: %w", spoke, err))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	hub := spoke.GroupKind().WithVersion(hubVersion)
	return r.graph.add(
		&step{from: spoke, to: hub, transform: moveAll(moves, true)},
		&step{from: hub, to: spoke, transform: moveAll(moves, false)})
}

// Move is a difference between two versions. [Rename] and [Split] return moves.
type Move struct {
	spoke, hub []string // paths
	// convert gets the values at the paths of one side, of which at least one is present,
	// and returns the values for the other side. An absent value is nil.
	convert func(values [][]byte, toHub bool) ([][]byte, error)
	err     error // a mistake of the move
}

// checkMoves returns the mistakes in moves.
func checkMoves(moves []Move) (errs []error) {
	sides := map[string][]string{}
	for _, m := range moves {
		if m.convert == nil {
			errs = append(errs, errors.New("empty Move, expected the result of Rename or Split"))
		}
		if m.err != nil {
			errs = append(errs, m.err)
		}
		sides["spoke"] = append(sides["spoke"], m.spoke...)
		sides["hub"] = append(sides["hub"], m.hub...)
	}
	for _, side := range []string{"spoke", "hub"} {
		paths := slices.Sorted(slices.Values(sides[side]))
		for i, path := range paths {
			switch first, _, _ := strings.Cut(path, "."); {
			case path == "" || slices.Contains(strings.Split(path, "."), ""):
				errs = append(errs, fmt.Errorf("path %q, expected names joined by dots", path))
			case slices.Contains([]string{"metadata", "apiVersion", "kind"}, first):
				errs = append(errs, fmt.Errorf("path %q: metadata, apiVersion and kind cannot be moved", path))
			}
			for _, other := range paths[:i] {
				if path == other || strings.HasPrefix(path, other+".") {
					errs = append(errs, fmt.Errorf("paths %s and %s of the %s overlap", other, path, side))
				}
			}
		}
	}
	return errs
}

// moveAll returns a function that makes all moves of an object in one direction.
func moveAll(moves []Move, toHub bool) func(context.Context, *converter, payload) (payload, error) {
	return func(_ context.Context, _ *converter, p payload) (payload, error) {
		var err error
		p.Body, err = move(p.Body, moves, toHub)
		return p, err
	}
}

// move takes everything out of an object first, and then puts it back, so that moves may
// change places.
func move(object []byte, moves []Move, toHub bool) (_ []byte, err error) {
	made := make([][][]byte, len(moves))
	for i, m := range moves {
		from, _ := m.ends(toHub)
		var values [][]byte
		if object, values, err = take(object, from); err != nil {
			return nil, err
		}
		if values == nil {
			continue
		}
		if made[i], err = m.convert(values, toHub); err != nil {
			return nil, err
		}
	}
	// A field that is already at the destination would be moved back later, even if nothing is
	// moved now.
	for _, m := range moves {
		_, to := m.ends(toHub)
		for _, path := range to {
			if rawjson.At(object, strings.Split(path, ".")...) != nil {
				return nil, fmt.Errorf("%s: %w", path, errThere)
			}
		}
	}
	for i, m := range moves {
		_, to := m.ends(toHub)
		for j, value := range made[i] {
			if object, err = put(object, strings.Split(to[j], "."), value); err != nil {
				return nil, err
			}
		}
	}
	return object, nil
}

// ends returns the paths from which and to which a move leads.
func (m Move) ends(toHub bool) (from, to []string) {
	if toHub {
		return m.spoke, m.hub
	}
	return m.hub, m.spoke
}

// take removes the values at some paths from an object. The values are nil if none is there.
func take(object []byte, paths []string) (rest []byte, values [][]byte, err error) {
	at := make([][]byte, len(paths))
	for i, path := range paths {
		names := strings.Split(path, ".")
		if at[i] = rawjson.At(object, names...); at[i] == nil {
			continue
		}
		values = at
		if object, err = put(object, names, nil); err != nil {
			return nil, nil, err
		}
	}
	return object, values, nil
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
