package breaking

import (
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/crdkit/crdkit/internal/jsondiff"
)

// verdict is what two definitions make of an object.
type verdict struct {
	object   map[string]any
	stored   map[string]any // what object replaces in an update; nil if it is created
	accepted bool           // by the old definition
	errs     field.ErrorList
	altered  []alteration
}

// alteration is a difference in what is stored.
type alteration struct{ path, text string }

func (v verdict) broken() bool { return v.accepted && (len(v.errs) > 0 || len(v.altered) > 0) }

// of returns the part of a verdict that shows a change at some paths, which have dots
// alone.
func (v verdict) of(c *change, paths []string) verdict {
	in := func(path string) bool {
		return slices.ContainsFunc(paths, func(p string) bool { return path == p || c.shown&inside != 0 && under(path, p) })
	}
	v.errs = slices.DeleteFunc(slices.Clone(v.errs), func(err *field.Error) bool {
		return c.shown&byError == 0 || !in(errorPath(err)) || !strings.Contains(err.Error(), c.says)
	})
	v.altered = slices.DeleteFunc(slices.Clone(v.altered), func(a alteration) bool {
		return c.shown&byData == 0 || !in(dotted(a.path))
	})
	return v
}

// proof is nil if nothing is broken.
func (v verdict) proof() *Proof {
	if !v.broken() {
		return nil
	}
	// The server has them in an order that changes. Errors without a field come last.
	text := func(err *field.Error) string { return strings.Replace(err.Error(), "<nil>", "~", 1) }
	byText := func(a, b *field.Error) int { return strings.Compare(text(a), text(b)) }
	p := &Proof{Errors: slices.SortedStableFunc(slices.Values(v.errs), byText)}
	p.Object, _ = json.Marshal(v.object) // what was JSON is JSON
	if v.stored != nil {
		p.Stored, _ = json.Marshal(v.stored)
	}
	for _, a := range v.altered {
		p.Altered = append(p.Altered, a.path+": "+a.text)
	}
	return p
}

// judge creates an object in the same version of both definitions. In a version that is
// not served in both, clients do not create objects: there, only what is stored counts.
func (up *upgrade) judge(was, is *version, object map[string]any) verdict {
	v := verdict{object: object}
	before, errs := up.store(was, object)
	if len(errs) > 0 {
		return v
	}
	v.accepted = true
	after, errs := up.store(is, object)
	if bothServed(was, is) {
		v.errs = errs
	}
	if len(v.errs) > 0 {
		return v // nothing is stored
	}
	was.Prune(after) // what a client of the old definition does not see
	differ(before, after, func(path, text string) { v.altered = append(v.altered, alteration{path, text}) })
	return v
}

// judgeUpdate lets an object replace a stored one, in the same version of both definitions.
// Only errors are looked at. The old definition must accept both objects. Its stored
// objects are there, whether or not the new one would accept them.
func (up *upgrade) judgeUpdate(was, is *version, object, stored map[string]any) verdict {
	v := verdict{object: object, stored: stored}
	update := func(in *version) (stands bool, errs field.ErrorList) {
		old, errs := up.store(in, stored)
		return len(errs) == 0, in.ValidateUpdate(up.ctx, in.decode(object), old)
	}
	stands, errs := update(was)
	if v.accepted = stands && len(errs) == 0; v.accepted {
		_, v.errs = update(is)
	}
	return v
}

// store creates an object, whatever kind and scope the definition has. If there are errors, the
// object is as it would be without them.
func (up *upgrade) store(v *version, object map[string]any) (map[string]any, field.ErrorList) {
	object = v.decode(object)
	return object, v.Validate(up.ctx, object)
}

// decode returns a copy of an object as one of this version, whatever its kind and version: it
// is pruned and gets its defaults.
func (v *version) decode(object map[string]any) map[string]any {
	object = runtime.DeepCopyJSON(object)
	object["apiVersion"], object["kind"] = v.gvk.ToAPIVersionAndKind()
	v.Prune(object)
	v.Default(object)
	return object
}

// differ reports the differences between two objects, except in apiVersion, kind and metadata.
func differ(before, after map[string]any, report func(path, text string)) {
	jsondiff.Walk(before, after, func(d jsondiff.Difference) {
		if name, _ := d.Path[0].(string); isMeta(name) {
			return
		}
		path := ""
		for _, step := range d.Path {
			if index, ok := step.(int); ok {
				path += "[" + strconv.Itoa(index) + "]"
			} else {
				path += "." + step.(string)
			}
		}
		path = strings.TrimPrefix(path, ".")
		switch {
		case !d.Was:
			report(path, short(d.After)+", was not there")
		case !d.Is:
			report(path, "removed, was "+short(d.Before))
		default:
			report(path, short(d.After)+", was "+short(d.Before))
		}
	})
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
