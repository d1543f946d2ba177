package schema

import (
	"fmt"
	"reflect"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// names compares what is not in a version.
func (b *breaking) names() {
	before, now := &b.old.crd.Spec, &b.new.crd.Spec
	const immutable = "the API server refuses the update, and "
	for _, n := range []struct{ path, before, now, why string }{
		{"spec.group", before.Group, now.Group, "to the API server it is another resource: its objects, URLs and RBAC rules are not those of before"},
		{"spec.names.plural", before.Names.Plural, now.Names.Plural, "to the API server it is another resource: its objects, URLs and RBAC rules are not those of before"},
		{"spec.names.kind", before.Names.Kind, now.Names.Kind, immutable + "stored objects and clients say the old kind"},
		{"spec.scope", string(before.Scope), string(now.Scope), immutable + "objects are stored, and asked for, with a namespace or without one"},
		{"spec.names.listKind", before.Names.ListKind, now.Names.ListKind, "clients that go by the kind of a list do not know the new one"},
		{"spec.names.singular", before.Names.Singular, now.Names.Singular, "kubectl no longer knows " + before.Names.Singular},
	} {
		if n.before != n.now {
			b.add(EffectClients, "", n.path, fmt.Sprintf("%s is now %s", n.before, n.now), n.why)
		}
	}
	for _, name := range missing(before.Names.ShortNames, now.Names.ShortNames) {
		b.add(EffectClients, "", "spec.names.shortNames", name+" is removed", "kubectl get "+name+" fails")
	}
	for _, name := range missing(before.Names.Categories, now.Names.Categories) {
		b.add(EffectClients, "", "spec.names.categories", name+" is removed", "kubectl get "+name+" no longer shows these objects")
	}
	if before.Conversion.Strategy == apiextensionsv1.WebhookConverter && now.Conversion.Strategy != before.Conversion.Strategy && len(b.old.names) > 1 {
		b.add(EffectAltered, "", "spec.conversion.strategy", "Webhook is now None", "objects get another apiVersion, but are not converted: fields that the other version has elsewhere are pruned")
	}
	if before.PreserveUnknownFields && !now.PreserveUnknownFields {
		c := b.add(EffectAltered, "", "spec.preserveUnknownFields", "true is now false", "fields that the schema does not have are pruned")
		c.Proof = b.unknownField()
		c.Unproven = c.Proof == nil
	}
}

// unknownField proves that fields are pruned which were not.
func (b *breaking) unknownField() *Proof {
	for _, name := range b.old.names {
		was, is := b.old.versions[name], b.new.versions[name]
		if is == nil {
			continue
		}
		object := map[string]any{"apiVersion": was.apiVersion(), "kind": b.old.crd.Spec.Names.Kind, "metadata": map[string]any{"name": "x"}, "unknown": "field"}
		if proof := b.judge(was, is, object).proof(); proof != nil {
			return proof
		}
	}
	return nil
}

// version compares which versions there are, and what becomes of them.
func (b *breaking) version(was *Version) {
	name := was.name
	is := b.new.versions[name]
	path := "spec.versions[" + name + "]"
	stored := b.mayBeStored(name)
	switch {
	case is == nil && (was.spec.Served || stored):
		why := "clients of that version find nothing"
		if stored {
			why = "objects may be stored in it, which nobody can read then; the API server refuses the update as long as it is in status.storedVersions"
			if was.spec.Served {
				why += "; and clients of that version find nothing"
			}
		}
		c := b.add(EffectClients, name, path, "the version is removed", why)
		if object := b.least(was); object != nil {
			c.Proof = &Proof{Object: object, Errors: b.new.Version(name).Validate(b.ctx, nil)}
		}
	case is != nil && was.spec.Served && !is.spec.Served:
		b.add(EffectClients, name, path+".served", "true is now false", "clients of that version find nothing")
	}
}

// serving compares how a version is served, apart from its objects.
func (b *breaking) serving(was, is *Version) {
	if was.hasStatus && !is.hasStatus {
		b.add(EffectClients, was.name, "subresources.status", "the subresource is removed", "clients that write the status find no such URL, and any other write changes the status too")
	}
	if !was.hasStatus && is.hasStatus {
		b.add(EffectClients, was.name, "subresources.status", "the subresource is added", "a write to the object no longer changes its status, and a write to the status nothing else")
	}
	switch before, now := was.scale, is.scale; {
	case before != nil && now == nil:
		b.add(EffectClients, was.name, "subresources.scale", "the subresource is removed", "kubectl scale and autoscalers fail")
	case before != nil && !reflect.DeepEqual(before, now):
		b.add(EffectClients, was.name, "subresources.scale", "other fields are read", "kubectl scale and autoscalers read and write other fields than before")
	}
	columns := map[string]apiextensionsv1.CustomResourceColumnDefinition{}
	for _, column := range is.spec.AdditionalPrinterColumns {
		columns[column.Name] = column
	}
	for _, column := range was.spec.AdditionalPrinterColumns {
		path := "additionalPrinterColumns[" + column.Name + "]"
		switch now, ok := columns[column.Name]; {
		case !ok:
			b.add(EffectClients, was.name, path, "the column is removed", "clients that read it from a table do not find it")
		case now.Type != column.Type || now.JSONPath != column.JSONPath:
			b.add(EffectClients, was.name, path, fmt.Sprintf("%s %s is now %s %s", column.Type, column.JSONPath, now.Type, now.JSONPath), "clients that read it from a table find something else")
		}
	}
	var before, now []string
	for _, f := range was.spec.SelectableFields {
		before = append(before, f.JSONPath)
	}
	for _, f := range is.spec.SelectableFields {
		now = append(now, f.JSONPath)
	}
	for _, path := range missing(before, now) {
		b.add(EffectClients, was.name, "selectableFields["+path+"]", "the field is removed", "requests with a field selector for it are refused")
	}
}

// missing returns what the old list has and the new one has not.
func missing(before, now []string) (gone []string) {
	for _, name := range before {
		if !slices.Contains(now, name) {
			gone = append(gone, name)
		}
	}
	return gone
}
