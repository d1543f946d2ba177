package conversion

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// AddFields adds the two conversions between a version, the spoke, and the kind's
// hub version, where the two differ only in what the moves say. No Go types are
// needed, and none are decoded: all fields that no move names keep their text,
// known or not.
//
// A field that only one of the two has is another difference, which no move can say: use
// [AddSpoke] or [AddUnstructuredSpoke] for that. Here the field would stay in an object of
// the other version, where the API server prunes it from what clients read, so that what
// they write back lacks it; and since it does not prune what it converts for managedFields, server-side
// apply fails with "field not declared in schema"
// (apimachinery/pkg/util/managedfields/internal/structuredmerge.go). roundtrip.CRD finds
// such fields.
//
// Each move converts in both directions, and is held to that: a value for which the inverse
// would not be exact is an error of the conversion, which names the field. All moves of a
// direction happen at once: two fields may change places.
//
// Paths are names joined by dots, such as spec.hostPort, below the object's root.
// They lead through objects alone; for the elements of a list, see [Each]. What a
// path leads to may be absent: then there is nothing to move. An object on the way
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
		&step{from: spoke, to: hub, convertPayload: move(moves, true)},
		&step{from: hub, to: spoke, convertPayload: move(moves, false)})
}

// Move is one difference between two versions, made by [Rename], [Enum], [Split] and [Each].
type Move struct {
	spoke, hub []string // paths
	// take removes the move's values from an object and returns what puts them where
	// they go; nil if there is nothing to move.
	take   func(doc *node, toHub bool) (put func(doc *node) error, err error)
	errs   []error
	nested []Move
}

// checkMoves returns the mistakes in moves on a whole object, or on an element of a list.
func checkMoves(moves []Move, whole bool) (errs []error) {
	sides := map[string][]string{}
	for _, m := range moves {
		if m.take == nil {
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

// move returns what does all moves, in one direction.
func move(moves []Move, toHub bool) func(context.Context, *converter, payload) (payload, error) {
	return func(_ context.Context, _ *converter, p payload) (payload, error) {
		doc, err := parseNode(p.body)
		if err != nil {
			return p, err
		}
		err = doc.move(moves, toHub)
		p.body = doc.append(nil)
		return p, err
	}
}

// move takes everything first, and then puts it, so that moves may change places.
func (n *node) move(moves []Move, toHub bool) error {
	var puts []func(*node) error
	for _, m := range moves {
		put, err := m.take(n, toHub)
		if err != nil {
			return err
		}
		if put != nil {
			puts = append(puts, put)
		}
	}
	// What is already where a move leads would be moved back later, even if nothing
	// is moved now.
	for _, m := range moves {
		targets := m.hub
		if !toHub {
			targets = m.spoke
		}
		for _, path := range targets {
			if there, err := n.has(path); err != nil {
				return err
			} else if there {
				return fmt.Errorf("%s: %w", path, errThere)
			}
		}
	}
	for _, put := range puts {
		if err := put(n); err != nil {
			return err
		}
	}
	return nil
}
