package breaking

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/crdkit/crdkit/internal/jsondiff"
)

// write is a write of a client: a create, an update if stored is not nil, or a write of the status.
// A version without the status subresource takes the status in an update of the whole object.
type write struct {
	object, stored map[string]any
	status         bool
}

// ofStatus returns the write of the status of an object that was created without it.
func ofStatus(object map[string]any) write { return write{object, withStatus(object, nil), true} }

// withStatus returns an object with the status of another one, which may have none.
func withStatus(object, from map[string]any) map[string]any {
	object = maps.Clone(object)
	delete(object, "status")
	if status, ok := from["status"]; ok {
		object["status"] = status
	}
	return object
}

// verdict is what two definitions make of a write.
type verdict struct {
	write
	refused field.ErrorList // by the old definition
	kept    map[string]any  // what the old definition stores
	others  field.ErrorList // of the new definition, about something else
	errs    field.ErrorList
	altered []jsondiff.Difference
}

func (v verdict) broken() bool {
	return len(v.refused) == 0 && (len(v.errs) > 0 || len(v.altered) > 0)
}

// of returns the part of a verdict that shows a change at some paths, which have dots
// alone.
func (v verdict) of(c *change, paths []string) verdict {
	in := func(path string) bool {
		return slices.ContainsFunc(paths, func(p string) bool { return path == p || c.shown&inside != 0 && under(path, p) })
	}
	var about, others field.ErrorList
	for _, err := range v.errs {
		if c.shown&byError != 0 && in(errorPath(err)) && strings.Contains(err.Error(), c.says) {
			about = append(about, err)
		} else {
			others = append(others, err)
		}
	}
	v.errs, v.others = about, others
	v.altered = slices.DeleteFunc(slices.Clone(v.altered), func(d jsondiff.Difference) bool {
		return c.shown&byData == 0 || !in(dotted(d.Where()))
	})
	return v
}

// inOrder returns errors in the order of their texts: the server has them in an order that changes.
// Errors without a field come last.
func inOrder(errs field.ErrorList) field.ErrorList {
	text := func(err *field.Error) string { return strings.Replace(err.Error(), "<nil>", "~", 1) }
	byText := func(a, b *field.Error) int { return strings.Compare(text(a), text(b)) }
	return slices.SortedStableFunc(slices.Values(errs), byText)
}

func (v verdict) proof() *Proof {
	p := &Proof{Errors: inOrder(v.errs)}
	if v.status {
		p.Subresource = "status"
	}
	p.Object, _ = json.Marshal(v.object) // what was JSON is JSON
	if v.stored != nil {
		p.Stored, _ = json.Marshal(v.stored)
	}
	for _, d := range v.altered {
		text := short(d.After) + ", was " + short(d.Before)
		if !d.Was {
			text = short(d.After) + ", was not there"
		} else if !d.Is {
			text = "removed, was " + short(d.Before)
		}
		p.Altered = append(p.Altered, d.Where()+": "+text)
	}
	return p
}

// judge writes to the same version of both definitions. In a version that is not served in both,
// clients do not write: there, only what is stored counts.
func (up *upgrade) judge(was, is *version, w write) verdict {
	v := verdict{write: w}
	stored := w.stored
	if stored != nil {
		if stored, v.refused = up.run(was, write{object: stored}, nil); len(v.refused) > 0 {
			return v
		}
		if _, ok := w.stored["status"]; ok && was.hasStatus() {
			if stored, v.refused = up.run(was, write{object: w.stored, status: true}, stored); len(v.refused) > 0 {
				return v
			}
		}
	}
	if v.kept, v.refused = up.run(was, w, stored); len(v.refused) > 0 {
		return v
	}
	after, errs := up.run(is, w, stored)
	if bothServed(was, is) {
		v.errs = errs
	}
	if len(v.errs) > 0 {
		return v // nothing is stored
	}
	was.Prune(after) // what a client of the old definition does not see
	jsondiff.Walk(v.kept, after, func(d jsondiff.Difference) {
		if name, _ := d.Path[0].(string); !isMeta(name) {
			v.altered = append(v.altered, d)
		}
	})
	return v
}

// run writes to a version, whatever kind and scope the definition has, and returns the object as it
// is read back. If there are errors, it is as it would be without them.
func (up *upgrade) run(v *version, w write, stored map[string]any) (map[string]any, field.ErrorList) {
	object, old := v.decode(w.object), map[string]any(nil)
	if stored != nil {
		old = v.decode(stored)
	}
	var errs field.ErrorList
	switch {
	case old == nil:
		if v.hasStatus() {
			object = withStatus(object, nil)
		}
		errs = v.Validate(up.ctx, object)
	case !v.hasStatus():
		errs = v.ValidateUpdate(up.ctx, object, old)
	case w.status:
		errs = v.ValidateStatusUpdate(up.ctx, object, old)
		object = withStatus(old, object)
	default:
		errs = v.ValidateUpdate(up.ctx, object, old)
		object = withStatus(object, old)
	}
	if s := v.storage; s != nil {
		s.Prune(object)
		s.Default(object)
		v.Prune(object)
	} else {
		v.Default(object) // of the status
	}
	return object, errs
}

// decode returns a copy of an object as one of this version, whatever its kind and version: it
// is pruned and gets its defaults.
func (v *version) decode(object map[string]any) map[string]any {
	object = runtime.DeepCopyJSON(object)
	object["apiVersion"], object["kind"] = v.gvk.ToAPIVersionAndKind()
	if metadata, ok := object["metadata"].(map[string]any); ok && metadata["generateName"] == "" {
		delete(metadata, "generateName") // as the server decodes it
	}
	v.Prune(object)
	v.Default(object)
	return object
}

func isMeta(name string) bool { return name == "apiVersion" || name == "kind" || name == "metadata" }

// Paths are compared with dots alone: some errors have the keys of maps in brackets.
var bracket = regexp.MustCompile(`\[([^]]*)\]`)

func dotted(path string) string {
	return strings.TrimPrefix(bracket.ReplaceAllString(strings.TrimPrefix(path, "<nil>"), ".$1"), ".")
}

// Some errors have their path in the text alone. Those of compositions: "spec" must
// validate at least one schema (anyOf). And some of numbers: Checked value must be of type
// integer with format int32 in spec.size.
var inText = regexp.MustCompile(`^"([^"]*)" must | in (\S+)$`)

// errorPath is the path of an error, with dots alone.
func errorPath(err *field.Error) string {
	path := dotted(err.Field)
	if m := inText.FindStringSubmatch(err.Detail); path == "" && m != nil {
		path = dotted(m[1] + m[2])
	}
	return path
}
