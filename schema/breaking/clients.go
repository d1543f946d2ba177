package breaking

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/utils/ptr"
)

// names compares what the definitions have for all versions alike.
func (up *upgrade) names() {
	before, now := &up.old.Spec, &up.new.Spec
	const (
		another   = "to the API server it is another resource: its objects, URLs and RBAC rules are not those of before"
		immutable = "the API server refuses the update, and "
	)
	for _, n := range []struct{ path, before, now, why string }{
		{"spec.group", before.Group, now.Group, another},
		{"spec.names.plural", before.Names.Plural, now.Names.Plural, another},
		{"spec.names.kind", before.Names.Kind, now.Names.Kind, immutable + "stored objects and clients say the old kind"},
		{"spec.scope", string(before.Scope), string(now.Scope), immutable + "objects are stored, and asked for, with a namespace or without one"},
		{"spec.names.listKind", before.Names.ListKind, now.Names.ListKind, "clients that go by the kind of a list do not know the new one"},
		{"spec.names.singular", before.Names.Singular, now.Names.Singular, "kubectl no longer knows " + before.Names.Singular},
	} {
		if n.before != n.now {
			up.add(Clients, "", n.path, fmt.Sprintf("%s is now %s", n.before, n.now), n.why)
		}
	}
	for _, name := range missing(before.Names.ShortNames, now.Names.ShortNames) {
		up.add(Clients, "", "spec.names.shortNames", name+" is removed", "kubectl get "+name+" fails")
	}
	for _, name := range missing(before.Names.Categories, now.Names.Categories) {
		up.add(Clients, "", "spec.names.categories", name+" is removed", "kubectl get "+name+" no longer shows these objects")
	}
	if before.Conversion.Strategy == apiextensionsv1.WebhookConverter && now.Conversion.Strategy != before.Conversion.Strategy && len(before.Versions) > 1 {
		up.add(Altered, "", "spec.conversion.strategy", "Webhook is now None", "objects get another apiVersion, but are not converted: fields that the other version has elsewhere are pruned")
	}
	if before.PreserveUnknownFields && !now.PreserveUnknownFields {
		up.add(Altered, "", "spec.preserveUnknownFields", "true is now false", "fields that the schema does not have are pruned")
	}
}

// presence compares whether a version exists and is served. The new one is nil if it does not.
func (up *upgrade) presence(was, is *version) {
	name := was.name
	path := "spec.versions[" + name + "]"
	stored := up.mayBeStored(was)
	switch {
	case is == nil && (was.Served() || stored):
		why := "clients of that version find nothing"
		if stored {
			why = "objects may be stored in it, which nobody can read then; the API server refuses the update as long as it is in status.storedVersions"
			if was.Served() {
				why += "; and clients of that version find nothing"
			}
		}
		up.add(Clients, name, path, "the version is removed", why)
	case is != nil && was.Served() && !is.Served():
		up.add(Clients, name, path+".served", "true is now false", "clients of that version find nothing")
	}
}

// serving compares how a version is served, apart from its objects.
func (up *upgrade) serving(was, is *version) {
	before, now := subresources(was), subresources(is)
	if before.Status != nil && now.Status == nil {
		up.add(Clients, was.name, "subresources.status", "the subresource is removed", "clients that write the status find no such URL, and any other write changes the status too")
	}
	switch {
	case before.Scale != nil && now.Scale == nil:
		up.add(Clients, was.name, "subresources.scale", "the subresource is removed", "kubectl scale and autoscalers fail")
	case before.Scale != nil && scaleText(before.Scale, now.Scale) != "":
		up.add(Clients, was.name, "subresources.scale", scaleText(before.Scale, now.Scale), "kubectl scale and autoscalers read and write other fields than before")
	}
	columns := map[string]apiextensionsv1.CustomResourceColumnDefinition{}
	for _, column := range is.spec.AdditionalPrinterColumns {
		columns[column.Name] = column
	}
	for _, column := range was.spec.AdditionalPrinterColumns {
		path := "additionalPrinterColumns[" + column.Name + "]"
		switch now, ok := columns[column.Name]; {
		case !ok:
			up.add(Clients, was.name, path, "the column is removed", "clients that read it from a table do not find it")
		case now.Type != column.Type || now.JSONPath != column.JSONPath:
			up.add(Clients, was.name, path, fmt.Sprintf("%s %s is now %s %s", column.Type, column.JSONPath, now.Type, now.JSONPath), "clients that read it from a table find something else")
		}
	}
	for _, f := range missing(was.spec.SelectableFields, is.spec.SelectableFields) {
		up.add(Clients, was.name, "selectableFields["+f.JSONPath+"]", "the field is removed", "requests with a field selector for it are refused")
	}
}

// subresources returns the subresources of a version, which may be none.
func subresources(v *version) apiextensionsv1.CustomResourceSubresources {
	return *cmp.Or(v.spec.Subresources, &apiextensionsv1.CustomResourceSubresources{})
}

// scaleText describes which other fields are read. It is empty if they are the same.
func scaleText(before, now *apiextensionsv1.CustomResourceSubresourceScale) string {
	var all []string
	for _, path := range []struct{ name, before, now string }{
		{"specReplicasPath", before.SpecReplicasPath, now.SpecReplicasPath},
		{"statusReplicasPath", before.StatusReplicasPath, now.StatusReplicasPath},
		{"labelSelectorPath", ptr.Deref(before.LabelSelectorPath, ""), ptr.Deref(now.LabelSelectorPath, "")},
	} {
		if path.before != path.now {
			all = append(all, becomes(path.name, path.before, path.now))
		}
	}
	return strings.Join(all, ", ")
}

// missing returns what the old list has and the new one does not.
func missing[T any](before, now []T) []T {
	return slices.DeleteFunc(slices.Clone(before), func(was T) bool {
		return slices.ContainsFunc(now, func(is T) bool { return reflect.DeepEqual(was, is) })
	})
}
