package roundtrip

import (
	"fmt"
	"strings"

	"github.com/crdkit/crdkit/internal/generate"
)

// coverage counts which leaves and lists of a version are in some object.
type coverage struct {
	targets []generate.Target
	known   map[string]bool // the paths of the targets, and of what is around them
	most    map[string]int  // by path: the most elements of a list, or one for any other value
	objects int
}

func newCoverage(targets []generate.Target) *coverage {
	c := &coverage{targets: targets, known: map[string]bool{}, most: map[string]int{}}
	for _, t := range targets {
		for _, path := range t.Paths {
			c.known[path] = true
		}
	}
	return c
}

// add counts what an object has.
func (c *coverage) add(object []byte) {
	if c == nil {
		return
	}
	c.objects++
	if v, err := decode(object); err == nil {
		c.visit("", v)
	}
}

func (c *coverage) visit(path string, v any) {
	if !c.known[path] {
		return
	}
	size := 1
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			at := join(path, name)
			if !c.known[at] {
				at = path + each
			}
			c.visit(at, member)
		}
	case []any:
		size = max(size, len(v))
		for _, element := range v {
			c.visit(path+each, element)
		}
	}
	c.most[path] = max(c.most[path], size)
}

// lacks reports whether no object has a target.
func (c *coverage) lacks(t generate.Target) bool {
	most := c.most[t.Paths[len(t.Paths)-1]]
	return most == 0 || t.List && most < 2
}

// leaves returns how many leaves are in some object.
func (c *coverage) leaves() (n int) {
	for _, t := range c.targets {
		if !t.List && !c.lacks(t) {
			n++
		}
	}
	return n
}

// report returns how much the objects have, and names what they lack.
func (c *coverage) report() string {
	const most = 10
	var leaves, allLeaves, lists, allLists int
	var without []string
	for _, t := range c.targets {
		has, all, what := &leaves, &allLeaves, ""
		if t.List {
			has, all, what = &lists, &allLists, " with two elements"
		}
		*all++
		if c.lacks(t) {
			without = append(without, t.Paths[len(t.Paths)-1]+what)
		} else {
			*has++
		}
	}
	text := fmt.Sprintf("leaves %d of %d, lists with two elements %d of %d, in %d objects", leaves, allLeaves, lists, allLists, c.objects)
	if more := len(without) - most; more > 0 {
		without = append(without[:most:most], fmt.Sprintf("and %d more", more))
	}
	if len(without) > 0 {
		text += "; no object has " + strings.Join(without, ", ")
	}
	return text
}
