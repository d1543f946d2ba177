package roundtrip

import (
	"fmt"
	"strings"

	"github.com/crdkit/crdkit/internal/generate"
)

// coverage counts which leaves and lists of a version are in some object.
type coverage struct {
	targets []generate.Target
	// most has the paths of the targets and of what is around them, with the most elements of a list, one
	// for any other value, or zero if no object has it.
	most    map[string]int
	objects int
}

func newCoverage(targets []generate.Target) *coverage {
	c := &coverage{targets: targets, most: map[string]int{}}
	for _, t := range targets {
		for _, path := range t.Paths {
			c.most[path] = 0
		}
	}
	return c
}

// add counts what an object has.
func (c *coverage) add(object []byte) {
	if v, err := decode(object); err == nil {
		c.objects++
		c.visit("", v)
	}
}

func (c *coverage) visit(path string, v any) {
	most, known := c.most[path]
	if !known {
		return
	}
	size := 1
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			at := join(path, name)
			if _, known := c.most[at]; !known {
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
	c.most[path] = max(most, size)
}

// count returns how many leaves and lists with two elements are in some object, how many there are,
// and which ones are in none.
func (c *coverage) count() (has, all struct{ leaves, lists int }, without []string) {
	for _, t := range c.targets {
		path := t.Paths[len(t.Paths)-1]
		most, n, of := c.most[path], &has.leaves, &all.leaves
		if t.List {
			path += " with two elements"
			most, n, of = most-1, &has.lists, &all.lists
		}
		if *of++; most > 0 {
			*n++
		} else {
			without = append(without, path)
		}
	}
	return has, all, without
}

// report returns how much the objects have, and names what they lack.
func (c *coverage) report() string {
	const most = 10
	has, all, without := c.count()
	text := fmt.Sprintf("leaves %d of %d, lists with two elements %d of %d, in %d objects", has.leaves, all.leaves, has.lists, all.lists, c.objects)
	if more := len(without) - most; more > 0 {
		without = append(without[:most:most], fmt.Sprintf("and %d more", more))
	}
	if len(without) > 0 {
		text += "; no object has " + strings.Join(without, ", ")
	}
	return text
}
