package sequence

import (
	"net/http"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
)

// builtins makes requests about built-in kinds, or nil.
func builtins(m maker) *request {
	switch m.IntN(8) {
	case 0:
		return m.builtin("/api/v1/namespaces/"+m.namespace+"/configmaps", map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{pick(m.Rand, "k", "l"): pick(m.Rand, "1", "2")}})
	case 1:
		return m.registration()
	}
	return nil
}

// registration returns a request about a kind whose generation and managedFields depend on
// defaults. Nothing is registered for gadgets.
func (m maker) registration() *request {
	maybe := func(fields, more map[string]any) map[string]any {
		for key, value := range more {
			if m.oneIn(2) {
				fields[key] = value
			}
		}
		return fields
	}
	rule := maybe(map[string]any{"apiGroups": []any{"nothing.example.com"}, "apiVersions": []any{"v1"}, "operations": []any{"CREATE"}, "resources": []any{"things"}}, map[string]any{"scope": "Namespaced"})
	matching := map[string]any{"matchPolicy": pick(m.Rand, "Exact", "Equivalent"), "objectSelector": map[string]any{"matchLabels": map[string]any{"a": "b"}}}
	service := maybe(map[string]any{"namespace": "a", "name": "b"}, map[string]any{"port": 8443, "path": "/c"})
	hook := maybe(map[string]any{"name": "a.example.com", "clientConfig": map[string]any{"service": service}, "rules": []any{rule}, "sideEffects": "None", "admissionReviewVersions": []any{"v1"}},
		map[string]any{"failurePolicy": "Ignore", "timeoutSeconds": 5, "matchPolicy": "Exact", "objectSelector": matching["objectSelector"]})
	policy := maybe(map[string]any{"matchConstraints": maybe(map[string]any{"resourceRules": []any{rule}}, matching)}, map[string]any{"failurePolicy": "Ignore"})
	kind := pick(m.Rand, "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration", "ValidatingAdmissionPolicy", "MutatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "MutatingAdmissionPolicyBinding")
	gvk := admissionregistrationv1.SchemeGroupVersion.WithKind(kind)
	fields := map[string]any{"apiVersion": gvk.GroupVersion().String(), "kind": kind}
	switch kind {
	case "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration":
		fields["webhooks"] = []any{hook}
	case "ValidatingAdmissionPolicy":
		policy["validations"] = []any{map[string]any{"expression": pick(m.Rand, "true", "false")}}
		fields["spec"] = policy
	case "MutatingAdmissionPolicy":
		policy["reinvocationPolicy"] = pick(m.Rand, "Never", "IfNeeded")
		policy["mutations"] = []any{map[string]any{"patchType": "JSONPatch", "jsonPatch": map[string]any{"expression": "[JSONPatch{op: 'remove', path: '/a'}]"}}}
		fields["spec"] = policy
	case "ValidatingAdmissionPolicyBinding":
		fields["spec"] = maybe(map[string]any{"policyName": m.object(), "validationActions": []any{pick(m.Rand, "Deny", "Audit")}}, map[string]any{"matchResources": maybe(map[string]any{}, matching)})
	default:
		fields["spec"] = maybe(map[string]any{"policyName": m.object()}, map[string]any{"matchResources": maybe(map[string]any{}, matching)})
	}
	plural, _ := meta.UnsafeGuessKindToResource(gvk)
	return m.builtin("/apis/"+gvk.GroupVersion().String()+"/"+plural.Resource, fields)
}

// builtin returns a request about a built-in kind with these fields.
func (m maker) builtin(base string, fields map[string]any) *request {
	name := m.object()
	fields["metadata"] = m.metadata(map[string]any{"name": name})
	body := mustJSON(fields)
	manager := "?fieldManager=" + m.manager()
	r := &request{accept: "application/json", contentType: "application/json", body: body}
	switch m.IntN(7) {
	case 0:
		r.method, r.path = http.MethodPost, base+manager
	case 1, 2:
		r.method, r.path, r.contentType = http.MethodPatch, base+"/"+name+manager, string(types.ApplyPatchType)
	case 3:
		r.method, r.path, r.contentType = http.MethodPatch, base+"/"+name+manager, pick(m.Rand, string(types.StrategicMergePatchType), string(types.MergePatchType))
	case 4:
		r.method, r.path = http.MethodPut, base+"/"+name+manager
	case 5:
		r.method, r.path, r.body, r.contentType = pick(m.Rand, http.MethodGet, http.MethodHead), base+"/"+name, nil, ""
	default:
		r.method, r.path, r.body, r.contentType = http.MethodDelete, base+"/"+name, nil, ""
	}
	return r
}
