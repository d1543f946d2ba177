package generate

// plan is what an object should have: the paths of some leaves and lists, with those around them.
// The plans of successive objects together have all leaves and lists, so that each of them is in
// some object.
type plan struct {
	paths map[string]bool
	lists map[string]bool // with two elements
}

func (p *plan) has(path string) bool { return p != nil && p.paths[path] }

const (
	// usualRoom is how many leaves a value has that is made for itself.
	usualRoom = 48
	// planned is in how many parts the leaves and lists are planned.
	planned = 32
)

// target is a leaf or a list, and the paths from the root to it.
type target struct {
	paths []string
	list  bool
}

// targets returns the leaves and lists below a node, in the order of the schema.
func targets(n *node, around []string, all []target) []target {
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
		all = targets(n.items, around, append(all, target{around, true}))
	}
	if leaf && n.path != "" {
		all = append(all, target{around, false})
	}
	return all
}

// planOf returns the plan of a draw: the targets from one on. It is nil for the smallest draws and a
// quarter of the others.
func (g *Generator) planOf(draw uint64) *plan {
	if draw/unit < named || scatter(draw, 1)%4 == 0 || len(g.targets) == 0 {
		return nil
	}
	p := &plan{map[string]bool{}, map[string]bool{}}
	first := int(fraction(draw) * float64(len(g.targets)))
	for i := range 1 + len(g.targets)/planned {
		t := g.targets[(first+i)%len(g.targets)]
		for _, path := range t.paths {
			p.paths[path] = true
		}
		if t.list {
			p.lists[t.paths[len(t.paths)-1]] = true
		}
	}
	return p
}

// roomOf returns for how many leaves an object has room: for a few dozen most often.
func roomOf(draw uint64) float64 {
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
