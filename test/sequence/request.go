package sequence

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"path"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// request is sent to both servers.
type request struct {
	method, path, contentType, accept string
	body                              []byte
	latest                            bool // the body gets the resourceVersion of the object
}

func (r request) String() string {
	return fmt.Sprintf("%s %s (%s; accept %s)\n%s", r.method, r.path, r.contentType, r.accept, r.body)
}

// kind is what the requests are about.
type kind struct {
	schema.GroupKind
	plural   string
	cluster  bool     // has no namespaces
	versions []string // one of which is drawn
	watched  string   // the version of watches
	// selectors are field selectors, by version.
	selectors map[string][]string
	// fields makes the fields of an object, without metadata.
	fields func(m maker, version string) map[string]any
	// jsonPatch makes one operation of a JSON patch.
	jsonPatch func(m maker, version string) map[string]any
	// more makes other requests, or nil.
	more func(m maker) *request
}

func (k *kind) resource() schema.GroupResource {
	return schema.GroupResource{Group: k.Group, Resource: k.plural}
}

// key is the key of an object in etcd, below the prefix.
func (k *kind) key(namespace, name string) string {
	return path.Join("/", k.Group, k.plural, namespace, name)
}

// maker makes the requests of one sequence. Its objects have names of their own.
type maker struct {
	*rand.Rand
	namespace, prefix string
	*kind
}

// collection is the path of the objects of a version.
func (m maker) collection(version string) string {
	path := "/apis/" + m.Group + "/" + version + "/"
	if !m.cluster {
		path += "namespaces/" + m.namespace + "/"
	}
	return path + m.plural
}

// scope is the namespace in metadata.
func (m maker) scope() string {
	if m.cluster {
		return ""
	}
	return m.namespace
}

func pick[T any](r *rand.Rand, values ...T) T { return values[r.IntN(len(values))] }

func (m maker) oneIn(n int) bool { return m.IntN(n) == 0 }

func (m maker) object() string { return m.prefix + "-" + pick(m.Rand, "a", "b", "c") }

func (m maker) make() request {
	if r := m.more(m); r != nil {
		return *r
	}
	version := pick(m.Rand, m.versions...)
	query := url.Values{}
	if m.oneIn(3) {
		query.Set("fieldValidation", pick(m.Rand, "Strict", "Warn", "Ignore"))
	}
	if m.oneIn(10) {
		query.Set("dryRun", "All")
	}
	base := m.collection(version)
	name := m.object()
	r := request{accept: "application/json"}
	switch m.IntN(20) {
	case 0, 1, 2, 3:
		query.Set("fieldManager", m.manager())
		r.method, r.path, r.contentType, r.body = http.MethodPost, base, "application/json", m.body(version, name)
	case 4, 5, 6, 7:
		query.Set("fieldManager", m.manager())
		if m.oneIn(3) {
			query.Set("force", "true")
		}
		r.method, r.path, r.contentType, r.body = http.MethodPatch, base+"/"+name+m.subresource(), string(types.ApplyPatchType), m.body(version, name)
	case 8, 9, 10:
		query.Set("fieldManager", m.manager())
		r.method, r.path, r.contentType = http.MethodPatch, base+"/"+name+m.subresource(), string(types.MergePatchType)
		fields := m.fields(m, version)
		fields["metadata"] = m.metadata(nil)
		r.body = mustJSON(fields)
	case 11:
		query.Set("fieldManager", m.manager())
		r.method, r.path, r.contentType, r.body = http.MethodPatch, base+"/"+name, string(types.JSONPatchType), m.operations(version)
	case 12:
		query.Set("fieldManager", m.manager())
		r.method, r.path, r.contentType, r.body = http.MethodPut, base+"/"+name+m.subresource(), "application/json", m.body(version, name)
		r.latest = !m.oneIn(5)
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
		scale := map[string]any{"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": map[string]any{"name": name, "namespace": m.scope()}, "spec": map[string]any{"replicas": m.IntN(60)}}
		r.method, r.path, r.contentType, r.body = http.MethodPut, base+"/"+name+"/scale", "application/json", mustJSON(scale)
	default:
		query = url.Values{"labelSelector": {pick(m.Rand, "sequence="+m.prefix, "sequence="+m.prefix+",team=x", "sequence in ("+m.prefix+",other),team")}}
		if fields := m.selectors[version]; len(fields) > 0 && m.oneIn(2) {
			query.Set("fieldSelector", pick(m.Rand, fields...))
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

// body is an object that is sent.
func (m maker) body(version, name string) []byte {
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
	u := m.fields(m, version)
	u["apiVersion"], u["kind"], u["metadata"] = m.Group+"/"+version, m.Kind, m.metadata(metadata)
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

func (m maker) operations(version string) []byte {
	var ops []any
	for range 1 + m.IntN(2) {
		ops = append(ops, m.jsonPatch(m, version))
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
