package breaking

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
)

// Without a conversion webhook, an object that is stored in another version loses the fields that the
// storage version lacks, and gets its defaults.

// stored adds what another storage version makes of the objects of a version. Versions that lose the
// same are reported once.
func (c *comparison) stored(up *upgrade, was, is *version) {
	storedAs := func(v *version) *version {
		if v.storage != nil {
			return v.storage
		}
		return v
	}
	before, now := storedAs(was), storedAs(is)
	none := up.old.Spec.Conversion.Strategy == apiextensionsv1.NoneConverter && up.new.Spec.Conversion.Strategy == apiextensionsv1.NoneConverter
	if !none || before.name == now.name || before.structural == nil || now.structural == nil {
		return
	}
	known := map[string]bool{}
	for _, change := range c.changes {
		known[change.Path+change.What] = true
	}
	both := &comparison{}
	both.compare(through(was.structural, before.structural, true), through(is.structural, now.structural, true), nil)
	for _, change := range both.changes {
		at := change.Path + change.What
		if change.shown&byData == 0 || change.merged || known[at] || up.lost[at] {
			continue
		}
		up.lost[at] = true
		change.What += ", because the storage version is now " + now.name
		c.changes = append(c.changes, change)
	}
}

// through returns the schema of the objects of a version as they are read back from storage in another
// one.
func through(v, storage *structuralschema.Structural, root bool) *structuralschema.Structural {
	if v == storage {
		return v
	}
	out := *v
	out.Nullable = v.Nullable && (storage.Nullable || typeOf(storage) == "any")
	out.Properties = map[string]structuralschema.Structural{}
	for name, p := range v.Properties {
		if (root || v.XEmbeddedResource) && isMeta(name) {
			out.Properties[name] = p
			continue
		}
		stored := propertyOf(storage, name)
		if stored == nil {
			continue
		}
		both := *through(&p, stored, false)
		if both.Default.Object == nil {
			both.Default = stored.Default
		}
		out.Properties[name] = both
	}
	if v.Items != nil {
		out.Items = through(v.Items, itemsOf(storage), false)
	}
	values, stored := undeclared(v), undeclared(storage)
	switch {
	case values != nil && stored == nil:
		out.AdditionalProperties, out.XPreserveUnknownFields = nil, false
	case values != nil && v.AdditionalProperties != nil && v.AdditionalProperties.Structural != nil:
		out.AdditionalProperties = &structuralschema.StructuralOrBool{Structural: through(values, stored, false)}
	}
	return &out
}
