package equivalence

import (
	"cmp"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/google/cel-go/common/ast"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"
)

// property is what requests have beside their objects.
type property string

const (
	objectName property = "name"
	namespace  property = "namespace"
	username   property = "username"
	group      property = "group"
)

// propertyOf returns the property that an expression selects.
func propertyOf(path string) property {
	switch {
	case path == "request.namespace" || path == "namespaceObject.metadata.name" || strings.HasSuffix(path, ".metadata.namespace"):
		return namespace
	case path == "request.name" || strings.HasSuffix(path, ".metadata.name"):
		return objectName
	case path == "request.userInfo.username":
		return username
	case path == "request.userInfo.groups":
		return group
	}
	return ""
}

// with returns a value of the property that an expression with a text decides about: for a name, that may be its prefix or its suffix.
func (p property) with(text string) []string {
	if p == username || p == group {
		return []string{text}
	}
	for _, name := range []string{text, text + "a", "a" + text} {
		if len(validation.IsDNS1123Label(name)) == 0 {
			return []string{name}
		}
	}
	return nil
}

// selected returns the fields that an expression selects one after another.
func selected(e ast.Expr) string {
	switch e.Kind() {
	case ast.IdentKind:
		return e.AsIdent()
	case ast.SelectKind:
		return selected(e.AsSelect().Operand()) + "." + e.AsSelect().FieldName()
	}
	return ""
}

// readManifests finds the names, the namespaces and the users that policies and webhooks tell from others, and returns the hints of
// their expressions and selectors.
func (c *comparison) readManifests() (all []hint) {
	users := []rest.ImpersonationConfig{{}}
	addUser := func(user rest.ImpersonationConfig) {
		if !slices.ContainsFunc(users, func(u rest.ImpersonationConfig) bool { return reflect.DeepEqual(u, user) }) {
			users = append(users, user)
		}
	}
	for _, s := range c.sides {
		for _, m := range s.manifests {
			if m.GroupVersionKind().Group != admissionregistrationv1.GroupName {
				continue
			}
			parameters := s.parameters(m)
			for _, expression := range expressions(m.Object) {
				hints, texts := expressionHints(expression)
				for i := range hints {
					hints[i].literal(parameters)
				}
				all = append(all, hints...)
				c.objectNames = append(c.objectNames, texts[objectName]...)
				for _, name := range texts[namespace] {
					c.addNamespace(map[string]string{corev1.LabelMetadataName: name})
				}
				for _, name := range texts[username] {
					addUser(rest.ImpersonationConfig{UserName: name})
				}
				for _, name := range texts[group] {
					addUser(rest.ImpersonationConfig{UserName: "equivalence", Groups: []string{name}})
				}
			}
			for _, list := range fields(m.Object, "resourceNames") {
				names, _ := list.([]any)
				for _, name := range names {
					text, _ := name.(string)
					c.objectNames = append(c.objectNames, objectName.with(text)...)
				}
			}
			for _, selector := range selectors(m.Object, "objectSelector") {
				h := hint{names: []string{"labels"}}
				for _, r := range selector {
					for _, value := range valuesOf(r) {
						h.values = append(h.values, map[string]any{r.Key(): value})
						c.objectLabels = append(c.objectLabels, [2]string{r.Key(), value})
					}
				}
				all = append(all, h)
			}
			for _, selector := range selectors(m.Object, "namespaceSelector") {
				c.addNamespaces(selector)
			}
		}
	}
	if c.users == nil {
		c.users = users
	}
	return all
}

// selectors returns the requirements of the label selectors in all fields with a name.
func selectors(object map[string]any, name string) (all []labels.Requirements) {
	for _, value := range fields(object, name) {
		var s metav1.LabelSelector
		text, _ := json.Marshal(value) // what was JSON is JSON
		if json.Unmarshal(text, &s) != nil {
			continue // the server refuses it
		}
		if selector, err := metav1.LabelSelectorAsSelector(&s); err == nil {
			requirements, _ := selector.Requirements()
			all = append(all, requirements)
		}
	}
	return all
}

// valuesOf returns the values of a requirement, or one that any label may have.
func valuesOf(r labels.Requirement) []string {
	if all := sorted(r.Values()); len(all) > 0 {
		return all
	}
	return []string{"true"}
}

// addNamespaces adds namespaces that a selector selects, one for each value of a label, and one for each value that it excludes.
func (c *comparison) addNamespaces(selector labels.Requirements) {
	matching := map[string]string{}
	for _, r := range selector {
		if r.Operator() != selection.NotIn && r.Operator() != selection.DoesNotExist {
			matching[r.Key()] = valuesOf(r)[0]
		}
	}
	for _, r := range selector {
		for _, value := range valuesOf(r) {
			labels := maps.Clone(matching)
			labels[r.Key()] = value
			c.addNamespace(labels)
		}
	}
}

// addNamespace adds a namespace with labels, unless there is one.
func (c *comparison) addNamespace(labels map[string]string) {
	name := cmp.Or(labels[corev1.LabelMetadataName], "equivalence-"+strconv.Itoa(len(c.namespaces)))
	like := func(n *corev1.Namespace) bool { return n.Name == name || maps.Equal(n.Labels, labels) }
	declared := slices.Concat(c.sides[0].namespaces(), c.sides[1].namespaces())
	if len(validation.IsDNS1123Label(name)) == 0 && !slices.Contains(declared, name) && !slices.ContainsFunc(c.namespaces, like) {
		c.namespaces = append(c.namespaces, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}})
	}
}

// namespaceNames returns the namespaces of requests.
func (c *comparison) namespaceNames() []string {
	all := c.sides[0].namespaces()
	for _, n := range c.namespaces {
		all = append(all, n.Name)
	}
	return all
}
