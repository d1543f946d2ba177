package generate

import (
	"slices"

	"github.com/crdkit/crdkit/internal/choices"
)

// Plan has the paths of the leaves and lists that an object should have, and of the values around
// them. The plans of successive objects together have all leaves and lists, so that each is in some
// object.
type Plan struct {
	paths map[string]int // to the least number of elements, or one
	long  string         // the path of the long list, or ""
}

// Has reports whether an object should have something at a path. A nil plan has nothing.
func (p *Plan) Has(path string) bool { return p.Elements(path) > 0 }

// Elements returns how many elements the list at a path should have at least.
func (p *Plan) Elements(path string) int {
	if p == nil {
		return 0
	}
	return p.paths[path]
}

// draw returns a draw for the value at a path, which is less often zero if the value is planned.
func (p *Plan) draw(src *choices.Source, path string) uint64 {
	if p.Has(path) {
		return src.Full()
	}
	return src.Uint64()
}

// Length draws how many elements the list or map at a path has, for [Count]: usual draws, unless the
// plan has a long list there. The draw alone makes a list long, so that a long list shrinks.
func (p *Plan) Length(src *choices.Source, path string, usual func() uint64) uint64 {
	if p.Has(path) && path == p.long {
		return src.Put(longList * unit)
	}
	return usual()
}

const (
	// usualBudget is the number of leaves of a value that is made alone.
	usualBudget = 48
	// planned is the number of parts into which plans divide the leaves and lists.
	planned = 32
	// longList is one more than the largest size to which lists are often cut.
	longList = 65
)

// Target is a leaf, or a list that may have two elements, and the paths from the root to it.
type Target struct {
	Paths []string
	List  bool
	Long  bool // a list that may be long
}

// targets returns the leaves and lists below a node, in the order of the schema.
func targets(n *node, around []string, all []Target) []Target {
	if n == nil || n.err != nil {
		return all
	}
	around = append(around[:len(around):len(around)], n.path)
	leaf := true
	for _, p := range n.properties {
		if n.path == "" && isMeta(p.name) {
			continue
		}
		leaf = false
		all = targets(p.node, around, all)
	}
	if n.entries != nil {
		leaf = false
		all = targets(n.entries, around, all)
	}
	if n.items != nil {
		leaf = false
		if n.mostOf > 1 {
			all = append(all, Target{around, true, n.mostOf >= longList && n.items.size*longList <= large})
		}
		all = targets(n.items, around, all)
	}
	if leaf && n.path != "" {
		all = append(all, Target{Paths: around})
	}
	return all
}

// PlanOf returns the plan of a draw: the targets from one on, or a long list for one of 16 draws. It is
// nil for the smallest draws and three of 16 others.
func PlanOf(targets []Target, draw uint64) *Plan {
	n, p := 1+len(targets)/planned, &Plan{paths: map[string]int{}}
	isLong := scatter(draw, 1)%16 == 0
	if isLong {
		n, targets = 1, slices.DeleteFunc(slices.Clone(targets), func(t Target) bool { return !t.Long })
	}
	if draw/unit < named || !isLong && scatter(draw, 1)%4 == 0 || len(targets) == 0 {
		return nil
	}
	first := int(fraction(draw) * float64(len(targets)))
	for i := range n {
		t := targets[(first+i)%len(targets)]
		for _, path := range t.Paths {
			p.paths[path] = max(p.paths[path], 1)
		}
		if path := t.Paths[len(t.Paths)-1]; t.List {
			p.paths[path] = 2
			if isLong {
				p.long = path
			}
		}
	}
	return p
}

// Budget returns how many leaves an object should have at most: most often a few dozen.
func Budget(draw uint64) float64 {
	f := fraction(draw)
	switch {
	case draw/unit < named:
		return float64(draw / unit)
	case f < 0.6:
		return 8 + f*40
	case f < 0.95:
		return 32 + (f-0.6)*180
	}
	return 96 + (f-0.95)*8000
}

// Share returns, for a budget of leaves, the share of objects that have each optional field, and
// the budget of each field.
func Share(budget float64, optional, required int) (share, inside float64) {
	share = min(usualShare, budget/max(1, float64(optional)))
	return share, budget / max(1, share*float64(optional)+float64(required))
}

// usualShare is the share of objects that have an optional field if the budget suffices for all.
const usualShare = 0.75

// Some draws whether the optional field at a path is present, which is planned, or in a share of all
// objects.
func (p *Plan) Some(src *choices.Source, path string, share float64) bool {
	draw := p.draw(src, path)
	return present(draw, share) || p.Has(path) && draw/unit >= named
}
