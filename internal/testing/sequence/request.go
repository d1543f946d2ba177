package sequence

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
)

// request is sent to both servers.
type request struct {
	method, path, contentType, accept string
	body                              []byte
}

func (r request) String() string {
	return fmt.Sprintf("%s %s (%s; accept %s)\n%s", r.method, r.path, r.contentType, r.accept, r.body)
}

// maker makes the requests of one sequence. Its objects have names of their own.
type maker struct {
	*rand.Rand
	namespace, prefix string
}

func pick[T any](r *rand.Rand, values ...T) T { return values[r.IntN(len(values))] }

func (m maker) oneIn(n int) bool { return m.IntN(n) == 0 }

func (m maker) object() string { return m.prefix + "-" + pick(m.Rand, "a", "b", "c") }

func (m maker) make() request {
	switch m.IntN(8) {
	case 0:
		return m.builtin("/api/v1/namespaces/"+m.namespace+"/configmaps", map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{pick(m.Rand, "k", "l"): pick(m.Rand, "1", "2")}})
	case 1:
		return m.registration()
	}
	version := pick(m.Rand, "v1", "v1", "v1beta1")
	query := url.Values{}
	if m.oneIn(3) {
		query.Set("fieldValidation", pick(m.Rand, "Strict", "Warn", "Ignore"))
	}
	if m.oneIn(10) {
		query.Set("dryRun", "All")
	}
	base := "/apis/" + group + "/" + version + "/namespaces/" + m.namespace + "/gadgets"
	name := m.object()
	r := request{accept: "application/json"}
	switch m.IntN(20) {
	case 0, 1, 2, 3:
		query.Set("fieldManager", m.manager())
		r.method, r.path, r.contentType, r.body = http.MethodPost, base, "application/json", m.gadget(version, name)
	case 4, 5, 6, 7:
		query.Set("fieldManager", m.manager())
		if m.oneIn(3) {
			query.Set("force", "true")
		}
		r.method, r.path, r.contentType, r.body = http.MethodPatch, base+"/"+name+m.subresource(), string(types.ApplyPatchType), m.gadget(version, name)
	case 8, 9, 10:
		query.Set("fieldManager", m.manager())
		r.method, r.path, r.contentType = http.MethodPatch, base+"/"+name+m.subresource(), string(types.MergePatchType)
		r.body = mustJSON(map[string]any{"metadata": m.metadata(nil), "spec": m.spec(version), "status": m.status()})
	case 11:
		query.Set("fieldManager", m.manager())
		r.method, r.path, r.contentType, r.body = http.MethodPatch, base+"/"+name, string(types.JSONPatchType), m.jsonPatch()
	case 12:
		query.Set("fieldManager", m.manager())
		r.method, r.path, r.contentType, r.body = http.MethodPut, base+"/"+name+m.subresource(), "application/json", m.gadget(version, name)
	case 13, 14:
		query = url.Values{}
		if m.oneIn(10) {
			query.Set("dryRun", "All")
		}
		options := map[string]any{"apiVersion": "v1", "kind": "DeleteOptions"}
		if m.oneIn(3) {
			options["propagationPolicy"] = pick(m.Rand, "Background", "Orphan", "Foreground", "Never")
		}
		if m.oneIn(4) {
			options["preconditions"] = map[string]any{"uid": "00000000-0000-0000-0000-000000000000"}
		}
		r.method, r.path, r.contentType, r.body = http.MethodDelete, base+"/"+name, "application/json", mustJSON(options)
	case 15:
		query = url.Values{"labelSelector": {"sequence=" + m.prefix + ",team=" + pick(m.Rand, "x", "y")}}
		r.method, r.path = http.MethodDelete, base
	case 16:
		r.method, r.path, r.accept, query = pick(m.Rand, http.MethodGet, http.MethodGet, http.MethodHead), base+"/"+name+pick(m.Rand, "", "", "/status", "/scale"), m.accept(), nil
	case 17:
		scale := map[string]any{"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": map[string]any{"name": name, "namespace": m.namespace}, "spec": map[string]any{"replicas": m.IntN(60)}}
		r.method, r.path, r.contentType, r.body = http.MethodPut, base+"/"+name+"/scale", "application/json", mustJSON(scale)
	default:
		query = url.Values{"labelSelector": {pick(m.Rand, "sequence="+m.prefix, "sequence="+m.prefix+",team=x", "sequence in ("+m.prefix+",other),team")}}
		if version == "v1" && m.oneIn(2) {
			query.Set("fieldSelector", "spec.color="+pick(m.Rand, "red", "green"))
		}
		if m.oneIn(3) {
			query.Set("limit", "1")
		}
		r.method, r.path, r.accept = http.MethodGet, base, m.accept()
	}
	if len(query) > 0 {
		r.path += "?" + query.Encode()
	}
	return r
}

func (m maker) manager() string { return pick(m.Rand, "ann", "bob", "cid") }

func (m maker) subresource() string { return pick(m.Rand, "", "", "", "/status") }

func (m maker) accept() string {
	return pick(m.Rand, "application/json", "application/json", "application/yaml",
		"application/json;as=Table;v=v1;g=meta.k8s.io", "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io")
}

// registration returns a request about a kind whose generation and managedFields depend on
// defaults. Nothing is registered for gadgets.
func (m maker) registration() request {
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
func (m maker) builtin(base string, fields map[string]any) request {
	name := m.object()
	fields["metadata"] = m.metadata(map[string]any{"name": name})
	body := mustJSON(fields)
	manager := "?fieldManager=" + m.manager()
	r := request{accept: "application/json", contentType: "application/json", body: body}
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

func (m maker) gadget(version, name string) []byte {
	metadata := map[string]any{"name": name}
	switch m.IntN(30) {
	case 0:
		metadata["name"] = "Not a name"
	case 1:
		metadata["name"] = "forbidden"
	case 2:
		metadata["resourceVersion"] = "1"
	case 3:
		metadata["namespace"] = "elsewhere"
	case 4:
		metadata["uid"] = "00000000-0000-0000-0000-000000000000"
	}
	u := map[string]any{"apiVersion": group + "/" + version, "kind": "Gadget", "metadata": m.metadata(metadata)}
	if !m.oneIn(10) {
		u["spec"] = m.spec(version)
	}
	if m.oneIn(3) {
		u["status"] = m.status()
	}
	if m.oneIn(20) {
		u["unknown"] = true
	}
	return mustJSON(u)
}

func (m maker) metadata(out map[string]any) map[string]any {
	if out == nil {
		out = map[string]any{}
	}
	labels := map[string]any{"sequence": m.prefix}
	if m.oneIn(2) {
		labels["team"] = pick(m.Rand, "x", "y")
	}
	out["labels"] = labels
	if m.oneIn(6) {
		out["annotations"] = map[string]any{pick(m.Rand, "keep", "note"): pick[any](m.Rand, "yes", "")}
	}
	if m.oneIn(8) {
		out["finalizers"] = pick(m.Rand, []any{"example.com/a"}, []any{}, []any{"example.com/a", "example.com/b"})
	}
	return out
}

func (m maker) status() map[string]any {
	return pick(m.Rand, map[string]any{"phase": "Done"}, map[string]any{"replicas": m.IntN(3)}, map[string]any{"phase": 5}, nil)
}

func (m maker) spec(version string) map[string]any {
	spec := map[string]any{}
	set := func(key string, value any) {
		if m.oneIn(3) {
			spec[key] = value
		}
	}
	color := "color"
	if version == "v1beta1" {
		color = "colour"
	}
	set(color, pick[any](m.Rand, "red", "green", "blue", "pink", nil))
	set("size", pick[any](m.Rand, 0, 3, 12, "3", nil))
	set("fixed", pick[any](m.Rand, "x", "mutate", nil))
	set("replicas", pick[any](m.Rand, 0, 2, 60))
	set("free", pick[any](m.Rand, map[string]any{"a": map[string]any{"b": 1}}, map[string]any{"c": []any{1, "x", nil}}))
	set("tags", pick[any](m.Rand, []any{"t"}, []any{"t", "u"}, []any{"u", "u"}, []any{}))
	set("whole", pick[any](m.Rand, map[string]any{"k": "v"}, map[string]any{"l": "w"}))
	set("extra", 1)
	var parts []any
	for range m.IntN(4) {
		part := map[string]any{"name": pick(m.Rand, "p", "q", "r", "s")}
		if m.oneIn(2) {
			part["note"] = pick(m.Rand, "n", "o")
		}
		if m.oneIn(3) {
			part["count"] = m.IntN(3)
		}
		parts = append(parts, part)
	}
	set("parts", parts)
	return spec
}

func (m maker) jsonPatch() []byte {
	var ops []any
	for range 1 + m.IntN(2) {
		ops = append(ops, pick(m.Rand,
			map[string]any{"op": "add", "path": "/spec/size", "value": m.IntN(12)},
			map[string]any{"op": "remove", "path": "/spec/parts/0"},
			map[string]any{"op": "test", "path": "/spec/replicas", "value": 1},
			map[string]any{"op": "replace", "path": "/metadata/labels/team", "value": "y"},
			map[string]any{"op": "remove", "path": "/metadata/finalizers"},
			map[string]any{"op": "add", "path": "/spec/tags/-", "value": "v"},
			map[string]any{"op": "copy", "from": "/spec/replicas", "path": "/spec/size"},
		))
	}
	return mustJSON(ops)
}

func mustJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}
