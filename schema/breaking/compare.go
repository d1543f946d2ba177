package breaking

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
)

// change is a breaking change of a schema, and how to find an object that shows it.
type change struct {
	Change
	steps []string // to the value
	// child is the field of the value that errors and alterations are about, if not the
	// value itself.
	child string
	// narrow changes the old schema of the value so that its objects are likely to show the
	// change. put returns what to try in the place of a value. Either may be nil.
	narrow func(s *structuralschema.Structural)
	put    func(value any) []any
	shown  evidence
	says   string // an error has these words of the server; "" for any error
	rule   string // the new CEL rule, if it is one
	merged bool   // it is about how objects are merged, not about what they may be
	// certain reports that it breaks what is there, whether or not an object is found.
	certain bool
	// harmless reports that it breaks nothing unless an object is found: an expression also fails if what a
	// field is in is absent.
	harmless bool
	// updates reports that an update shows it, and creates that creating an object does, too.
	updates, creates bool
	created          bool // only creating an object shows it
	// strings are those that a new pattern or length allows, and only is the one value that a change
	// is about.
	strings *texts
	only    *structuralschema.JSON
}

// evidence is what shows a change.
type evidence int

const (
	byError evidence = 1 << iota // an error at the place
	byData                       // what is stored there
	inside                       // and either below the place, too
)

// effect is what the proof shows, or what is expected without a proof.
func (c *change) effect() Effect {
	switch {
	case c.merged:
		return Clients
	case c.Proof != nil && len(c.Proof.Errors) > 0, c.Proof == nil && c.shown&byError != 0:
		return Refused
	}
	return Altered
}

// comparison collects the breaking changes between two schemas.
type comparison struct{ changes []*change }

func (c *comparison) add(steps []string, what, why string) *change {
	added := &change{Change: Change{Path: pathOf(steps), What: what, Why: why}, steps: slices.Clone(steps), shown: byError, creates: true}
	c.changes = append(c.changes, added)
	return added
}

// compare compares what is at a place.
func (c *comparison) compare(was, is *structuralschema.Structural, steps []string) {
	if reflect.DeepEqual(was, is) {
		return // also where both allow anything, all the way down
	}
	if typeOf(was) != typeOf(is) && !widerType(was, is) {
		c.otherType(was, is, steps)
		return
	}
	if was.Nullable && !is.Nullable {
		nullable := c.add(steps, "it is no longer nullable", "null is removed, replaced by the default, or refused in a list")
		nullable.shown = byError | byData
		nullable.put = func(any) []any { return []any{nil} }
	}
	c.constraints(was, is, steps)
	if was.Items == nil || is.Items == nil || typeOf(was.Items) == typeOf(is.Items) || widerType(was.Items, is.Items) || ofType(was.Items, is.Items) != nil {
		c.topology(was, is, steps) // items of another type are merged otherwise in any case
	}
	if is.XEmbeddedResource && !was.XEmbeddedResource {
		c.add(steps, "it is now an embedded resource"+metadataText(is, ", with "), "values without apiVersion, kind and valid metadata are refused").shown |= inside
	}
	if was.Items != nil || is.Items != nil {
		before, now, at := itemsOf(was), itemsOf(is), below(steps, anyItem)
		if before.Default.Object != nil { // else null was refused
			c.nullable(before, now, at)
		}
		c.compare(before, now, at)
	}
	c.fields(was, is, steps)
}

func typeOf(s *structuralschema.Structural) string {
	switch {
	case s.XIntOrString:
		return "integer or string"
	case s.Type == "":
		return "any"
	}
	return s.Type
}

// widerType reports whether values of the old type are of the new type too.
func widerType(was, is *structuralschema.Structural) bool {
	switch from, to := typeOf(was), typeOf(is); to {
	case "any":
		return true
	case "number":
		return from == "integer"
	case "integer or string":
		return from == "integer" || from == "string"
	}
	return false
}

// ofType returns the old schema of those values that are of the new type, too, or nil if there are none. The
// types are different, and the new one is not wider.
func ofType(was, is *structuralschema.Structural) *structuralschema.Structural {
	typed := structuralschema.Structural{ValidationExtensions: was.ValidationExtensions, ValueValidation: was.ValueValidation}
	switch from, to := typeOf(was), typeOf(is); {
	case from == "any" && to == "object":
		typed = *was // with its fields
		typed.Type = to
	case from == "any", from == "integer or string" && to == "string":
		typed.Type, typed.XIntOrString = is.Type, is.XIntOrString
	case from == "number" && (to == "integer" || to == "integer or string"), from == "integer or string" && (to == "integer" || to == "number"):
		typed.Type = "integer"
	default:
		return nil
	}
	return &typed
}

func (c *comparison) otherType(was, is *structuralschema.Structural, steps []string) {
	what, why := fmt.Sprintf("the type %s is now %s", typeOf(was), newType(was, is)), "new and changed values of the old type are refused"
	typed := ofType(was, is)
	if typeOf(was) == "any" {
		what, why = "the type is "+newType(was, is)+" now", "it could be of any type: other new and changed values are refused"
		if is.Type == "object" && undeclared(is) == nil {
			why += ", and fields that it does not have are pruned"
		}
		if is.Type == "array" || is.Type == "object" && len(was.Properties) == 0 {
			what += restText(is, ", with ") // rather than a change for each field
			typed = nil
		}
	}
	added := c.add(steps, what, why)
	added.shown, added.says = byError|byData|inside, "must be of type"
	switch typeOf(was) {
	case "any":
		added.put = func(value any) []any { return []any{"", int64(0), false, value} }
	case "integer or string":
		added.put = func(value any) []any { return []any{value, "a"} }
	case "number":
		added.put = func(value any) []any { return []any{0.5, value} }
	}
	if typed == nil {
		return
	}
	begin := len(c.changes)
	c.compare(typed, is, steps) // values of the new type may be refused, too
	for _, added := range c.changes[begin:] {
		if narrow := added.narrow; len(added.steps) == len(steps) {
			added.narrow = func(s *structuralschema.Structural) {
				s.Type, s.XIntOrString = typed.Type, typed.XIntOrString
				if narrow != nil {
					narrow(s)
				}
			}
		}
	}
}

// fields compares the fields of objects, declared or not.
func (c *comparison) fields(before, now *structuralschema.Structural, steps []string) {
	fields := maps.Collect(maps.All(before.Properties))
	maps.Copy(fields, now.Properties)
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		was, is, at := propertyOf(before, name), propertyOf(now, name), below(steps, name)
		switch {
		case was == nil: // objects do not have it
			if limit := validationOrNone(now.ValueValidation).MaxProperties; is.Default.Object != nil && limit != nil && *limit < int64(len(now.Properties)) {
				added := c.add(steps, "the new field "+name+" has a default", fmt.Sprintf("maxProperties %d counts it: new and changed objects with as many other fields are refused", *limit))
				added.says = boundWords["maxProperties"]
				added.narrow = func(s *structuralschema.Structural) { atLeast(&validationOf(s).MinProperties, *limit) }
			}
		case isMeta(name) && now.XEmbeddedResource && !before.XEmbeddedResource:
			// That it is an embedded resource now says all.
		case is == nil:
			removed := c.add(at, "the field is removed", "it is pruned: its value is lost")
			removed.shown, removed.certain = byData, true
		default:
			c.defaults(was, is, steps, name, before, now)
			if declares(now, name) && (!requires(before, name) || was.Default.Object != nil) {
				c.nullable(was, is, at)
			}
			c.compare(was, is, at)
		}
	}
	switch was, is := undeclared(before), undeclared(now); {
	case was == nil: // they were pruned before, too
	case is != nil:
		c.nullable(was, is, below(steps, anyValue))
		c.compare(was, is, below(steps, anyValue))
	case before.AdditionalProperties == nil:
		unknown := c.add(steps, "unknown fields"+newFields(before, now, " other than ")+" are no longer preserved", "they are pruned: their values are lost")
		unknown.shown = byData | inside
		unknown.put = func(value any) []any {
			fields, _ := value.(map[string]any)
			object := maps.Collect(maps.All(fields))
			object["unknown"] = "field"
			return []any{object}
		}
	default:
		removed := c.add(steps, "it is no longer a map"+newFields(before, now, ", and has the fields "), "keys that are no fields are pruned: their values are lost")
		removed.narrow, removed.shown = nonempty, byData|inside
	}
}

// nullable compares what happens to null in a field that may be absent, in the value of a map, or in an item
// that has a default. A null that is not allowed is replaced by the default, or removed; in a list without a
// default it is refused (apiextensions-apiserver/pkg/apiserver/schema/defaulting).
func (c *comparison) nullable(was, is *structuralschema.Structural, steps []string) {
	what, why := "it is nullable now", "null was removed or replaced by the default: it is stored, or refused by an enum"
	switch step := steps[len(steps)-1]; {
	case was.Nullable:
		return // see compare
	case !is.Nullable:
		if step != anyItem && step != anyValue || reflect.DeepEqual(was.Default, is.Default) {
			return // see defaults
		}
		what, why = defaultText(was.Default.Object, is.Default.Object), "it replaces null; without it, null is removed, or refused in a list"
	case typeOf(is) == "any":
		return
	}
	added := c.add(steps, what, why)
	added.shown = byError | byData
	added.put = func(any) []any { return []any{nil} }
}

// defaults compares the defaults of a field of an object.
func (c *comparison) defaults(was, is *structuralschema.Structural, steps []string, name string, object, newObject *structuralschema.Structural) {
	before, now := was.Default.Object, is.Default.Object
	if reflect.DeepEqual(before, now) {
		return
	}
	what, why := defaultText(before, now), "objects without the field get another value than before"
	refused := now == nil && requires(object, name) && requires(newObject, name)
	switch {
	case before == nil && requires(object, name):
		return // there are no objects without the field
	case before == nil:
		why = "objects without the field get one that nobody wrote"
	case refused:
		what, why = "the default "+exact(before)+" of the required field is removed", "new objects without the field are refused, and updates that change what it is in"
	case now == nil:
		why = "new objects without the field stay without it"
	}
	added := c.add(below(steps, name), what, why)
	added.steps, added.child, added.shown = slices.Clone(steps), name, byData|inside
	added.narrow = without(name)
	if refused {
		added.shown, added.says = byError, "Required value"
	}
}
