package roundtrip

import (
	"fmt"
	"strings"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"

	"github.com/crdkit/crdkit/internal/generate"
)

// coverage counts which leaves and lists of a version are in some object.
type coverage struct {
	targets []generate.Target
	root    *covered
	missing int // targets
	objects int
}

// covered is a part of a version.
type covered struct {
	parts      map[string]*covered // by the names of fields; each is for elements and entries
	leaf, list bool                // see lacks
}

func newCoverage(targets []generate.Target) *coverage {
	c := &coverage{targets: targets, root: &covered{}}
	for _, t := range targets {
		if lacks := c.lacks(t); !*lacks {
			*lacks = true
			c.missing++
		}
	}
	return c
}

// steps returns the names of the fields that lead to a target, and each for elements and entries.
func steps(t generate.Target) (steps []string) {
	before := ""
	for _, path := range t.Paths {
		if step := strings.TrimPrefix(strings.TrimPrefix(path, before), "."); step != "" {
			steps = append(steps, step)
		}
		before = path
	}
	return steps
}

// lacks returns whether a target is counted, and in no object yet.
func (c *coverage) lacks(t generate.Target) *bool {
	n := c.root
	for _, step := range steps(t) {
		if n.parts == nil {
			n.parts = map[string]*covered{}
		}
		if n.parts[step] == nil {
			n.parts[step] = &covered{}
		}
		n = n.parts[step]
	}
	if t.List {
		return &n.list
	}
	return &n.leaf
}

// add counts what an object has, as long as anything is missing.
func (c *coverage) add(object []byte) {
	if c == nil {
		return
	}
	if c.objects++; c.missing == 0 {
		return
	}
	if v, err := decode(object); err == nil {
		c.visit(c.root, v)
	}
}

func (c *coverage) visit(n *covered, v any) {
	if n == nil {
		return
	}
	if n.leaf {
		n.leaf = false
		c.missing--
	}
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			if part := n.parts[name]; part != nil {
				c.visit(part, member)
			} else {
				c.visit(n.parts[each], member)
			}
		}
	case []any:
		if n.list && len(v) > 1 {
			n.list = false
			c.missing--
		}
		for _, element := range v {
			c.visit(n.parts[each], element)
		}
	}
}

// report returns how much the objects have, and names what they lack. s is the schema of the
// version, or nil; where it allows one element at most, a list is not expected to have two.
func (c *coverage) report(s *structuralschema.Structural) string {
	const most = 10
	var leaves, allLeaves, lists, allLists int
	var without []string
	for _, t := range c.targets {
		lacks, path := *c.lacks(t), t.Paths[len(t.Paths)-1]
		switch {
		case !t.List:
			if allLeaves++; lacks {
				without = append(without, path)
			} else {
				leaves++
			}
		case !lacks:
			allLists++
			lists++
		case !single(s, t):
			allLists++
			without = append(without, path+" with two elements")
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

// single reports whether the schema of a list allows one element at most.
func single(s *structuralschema.Structural, t generate.Target) bool {
	for _, step := range steps(t) {
		if s != nil && step == each && s.Items != nil {
			s = s.Items
		} else {
			s = property(s, step)
		}
	}
	return s != nil && s.ValueValidation != nil && s.ValueValidation.MaxItems != nil && *s.ValueValidation.MaxItems < 2
}
