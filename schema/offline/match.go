package offline

import (
	"context"
	"maps"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/predicates/object"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/predicates/rules"
)

// invocation is one call of a webhook: the resource and the kind that it is shown.
type invocation struct {
	*hook
	resource runtimeschema.GroupVersionResource
	kind     runtimeschema.GroupVersionKind
}

// versioner returns what admission is told of a request, with the objects in the version of
// a kind.
type versioner func(runtimeschema.GroupVersionKind) (*admission.VersionedAttributes, error)

// match returns the call of a webhook for a request, or nil if it is not called
// (apiserver/pkg/admission/plugin/webhook/generic/webhook.go, ShouldCallHook). Only the
// conditions need the versioned attributes.
func (r *Resource) match(ctx context.Context, k *hook, attr admission.Attributes, versioned versioner) (*invocation, error) {
	if !k.matchesNamespace(attr, r.namespaces) {
		return nil, nil
	}
	if matches, _ := (&object.Matcher{}).MatchObjectSelector(k, attr); !matches { // the selector is parsed already
		return nil, nil
	}
	call := k.matchRules(attr, r.equivalents)
	if call == nil || k.conditions == nil {
		return call, nil
	}
	v, err := versioned(call.kind)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	result := k.conditions.Match(ctx, v, nil, nil)
	if result.Error != nil {
		return nil, apierrors.NewForbidden(attr.GetResource().GroupResource(), attr.GetName(), result.Error)
	}
	if !result.Matches {
		return nil, nil
	}
	return call, nil
}

// matchesNamespace is MatchNamespaceSelector of predicates/namespace, which asks an informer.
// All namespaces exist.
func (k *hook) matchesNamespace(attr admission.Attributes, all map[string]map[string]string) bool {
	name := attr.GetNamespace()
	if name == "" {
		return true
	}
	set := labels.Set{}
	maps.Copy(set, all[name])
	set["kubernetes.io/metadata.name"] = name
	return k.namespaces.Matches(set)
}

// GetParsedObjectSelector is for [object.Matcher].
func (k *hook) GetParsedObjectSelector() (labels.Selector, error) { return k.objects, nil }

var _ object.ObjectSelectorProvider = &hook{}

func (k *hook) matchRules(attr admission.Attributes, equivalents runtime.EquivalentResourceMapper) *invocation {
	for _, rule := range k.Rules {
		if m := (rules.Matcher{Rule: rule, Attr: attr}); m.Matches() {
			return &invocation{hook: k, resource: attr.GetResource(), kind: attr.GetKind()}
		}
	}
	if *k.MatchPolicy != admissionregistrationv1.Equivalent {
		return nil
	}
	for _, rule := range k.Rules {
		for _, other := range equivalents.EquivalentResourcesFor(attr.GetResource(), attr.GetSubresource()) {
			if other == attr.GetResource() {
				continue
			}
			if m := (rules.Matcher{Rule: rule, Attr: otherResource{attr, other}}); m.Matches() {
				return &invocation{hook: k, resource: other, kind: equivalents.KindFor(other, attr.GetSubresource())}
			}
		}
	}
	return nil
}

// otherResource is a request for an equivalent resource.
type otherResource struct {
	admission.Attributes
	resource runtimeschema.GroupVersionResource
}

func (o otherResource) GetResource() runtimeschema.GroupVersionResource { return o.resource }
