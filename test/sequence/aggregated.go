package sequence

import (
	"context"
	"embed"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/storage"

	crdschema "github.com/crdkit/crdkit/schema"
	"github.com/crdkit/crdkit/schema/apiservertest"
	"github.com/crdkit/crdkit/scheme"
	"github.com/crdkit/crdkit/scheme/resource"
	"github.com/crdkit/crdkit/test/aggregated"
	"github.com/crdkit/crdkit/test/controlplane"
	"github.com/crdkit/crdkit/test/crdfuzz"
)

// definitions are those of the kinds that both servers serve.
//
//go:embed definitions/*.yaml
var definitions embed.FS

// RunAggregated sends about n requests about the kinds in the folder definitions to each of a control
// plane, which has them as custom resources, and a new aggregated API server. The seed chooses the
// requests. It ends after ten disagreements, which are those differences that are not known.
func RunAggregated(ctx context.Context, cp *controlplane.ControlPlane, n int, seed uint64) (*Result, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	real, installer, err := newReal(cp)
	if err != nil {
		return nil, err
	}
	files, err := definitions.ReadDir("definitions")
	if err != nil {
		return nil, err
	}
	var kinds []*kind
	var resources []*resource.Resource
	for _, file := range files {
		text, err := definitions.ReadFile("definitions/" + file.Name())
		if err != nil {
			return nil, err
		}
		definition, err := crdschema.Parse(text)
		if err != nil {
			return nil, err
		}
		k, err := newKind(text, definition)
		if err != nil {
			return nil, err
		}
		r, err := newResource(definition)
		if err != nil {
			return nil, err
		}
		kinds, resources = append(kinds, k), append(resources, r)
		if err := installer.Install(ctx, definition.CustomResourceDefinition()); err != nil {
			return nil, err
		}
	}
	types, err := scheme.New(scheme.APIServer())
	if err != nil {
		return nil, err
	}
	store := apiservertest.RESTOptions(ctx, nil)
	config, _, err := aggregated.Start(ctx, store, types, resources...)
	if err != nil {
		return nil, err
	}
	inProcess, err := newSide("aggregated", config, newReader(store).stored)
	if err != nil {
		return nil, err
	}
	return runAll(ctx, real, inProcess, n, seed, kinds, known)
}

// reader reads a store of an aggregated API server past the server.
type reader struct {
	options generic.RESTOptionsGetter
	stores  map[string]storage.Interface // by resource
}

func newReader(options generic.RESTOptionsGetter) *reader {
	return &reader{options, map[string]storage.Interface{}}
}

// stored returns an object as it is stored, without a resourceVersion, which only reading it adds.
func (r *reader) stored(ctx context.Context, k *kind, namespace, name string) ([]byte, error) {
	root := "/" + path.Join(k.Group, k.plural)
	if r.stores[root] == nil {
		opts, err := r.options.GetRESTOptions(k.resource(), nil)
		if err != nil {
			return nil, err
		}
		opts.StorageConfig.Codec = unstructured.UnstructuredJSONScheme
		key := func(o runtime.Object) (string, error) {
			u := o.(*unstructured.Unstructured)
			return k.key(u.GetNamespace(), u.GetName()), nil
		}
		r.stores[root], _, err = opts.Decorator(opts.StorageConfig, root, key,
			func() runtime.Object { return &unstructured.Unstructured{} }, func() runtime.Object { return &unstructured.UnstructuredList{} },
			storage.DefaultNamespaceScopedAttr, nil, nil)
		if err != nil {
			return nil, err
		}
	}
	u := &unstructured.Unstructured{}
	if err := r.stores[root].Get(ctx, k.key(namespace, name), storage.GetOptions{}, u); err != nil {
		return nil, err
	}
	u.SetResourceVersion("")
	return json.Marshal(u.Object)
}

// newKind returns a kind about which requests are made by its definition.
func newKind(text []byte, definition *crdschema.Definition) (*kind, error) {
	objects, err := crdfuzz.NewObjects(text)
	if err != nil {
		return nil, err
	}
	crd := definition.CustomResourceDefinition()
	k := &kind{GroupKind: definition.GroupKind(), plural: crd.Spec.Names.Plural, cluster: crd.Spec.Scope == "Cluster", selectors: map[string][]string{}}
	for _, v := range crd.Spec.Versions {
		if !v.Served {
			continue
		}
		k.versions, k.watched = append(k.versions, v.Name), v.Name
		for _, f := range v.SelectableFields {
			for _, value := range []string{"red", "New", "1", "true"} {
				k.selectors[v.Name] = append(k.selectors[v.Name], strings.TrimPrefix(f.JSONPath, ".")+"="+value)
			}
		}
		k.selectors[v.Name] = append(k.selectors[v.Name], "metadata.name=nothing", "spec.unknown=1", "metadata.namespace!=elsewhere")
	}
	k.fields = func(m maker, version string) map[string]any { return objects.Make(m.Uint64(), version) }
	k.jsonPatch = operation
	k.more = others
	return k, nil
}

// operation makes one of a JSON patch at a random place of an object.
func operation(m maker, version string) map[string]any {
	if m.oneIn(6) {
		return pick(m.Rand,
			map[string]any{"op": "remove", "path": "/metadata/finalizers"},
			map[string]any{"op": "replace", "path": "/metadata/labels/team", "value": "y"},
			map[string]any{"op": "add", "path": "/metadata/annotations", "value": map[string]any{"a": "b"}})
	}
	at, value := "", any(m.fields(m, version))
	for at == "" || !m.oneIn(3) {
		switch v := value.(type) {
		case map[string]any:
			if len(v) == 0 {
				return map[string]any{"op": "add", "path": at + "/unknown", "value": 1}
			}
			key := pick(m.Rand, slices.Sorted(maps.Keys(v))...)
			at, value = at+"/"+strings.NewReplacer("~", "~0", "/", "~1").Replace(key), v[key]
			continue
		case []any:
			if len(v) > 0 {
				at, value = at+"/"+pick(m.Rand, "0", "-"), v[0]
				continue
			}
		}
		break
	}
	return map[string]any{"op": pick(m.Rand, "add", "add", "replace", "remove", "test"), "path": at, "value": value}
}

// others makes requests of other forms than those about objects: for discovery, and with methods,
// paths and content types that custom resources do not have.
func others(m maker) *request {
	if !m.oneIn(12) {
		return nil
	}
	version := pick(m.Rand, m.versions...)
	base, object := m.collection(version), "/"+m.object()
	r := pick(m.Rand,
		request{method: http.MethodGet, path: "/apis/" + m.Group},
		request{method: http.MethodGet, path: "/apis/" + m.Group + "/" + version},
		request{method: http.MethodGet, path: "/apis/" + m.Group + "/v9/" + m.plural},
		request{method: http.MethodGet, path: strings.TrimSuffix(base, m.plural) + "nothings"},
		request{method: http.MethodGet, path: base + object + "/nothing"},
		request{method: http.MethodPut, path: base},
		request{method: http.MethodPatch, path: base, contentType: "application/merge-patch+json"},
		request{method: http.MethodPost, path: base + object + "?dryRun=All"},
		request{method: http.MethodDelete, path: base + object + "/status"},
		request{method: http.MethodGet, path: "/apis/" + m.Group + "/" + version + "/" + m.plural + "?" + url.Values{"labelSelector": {"sequence=" + m.prefix}}.Encode()},
		request{method: http.MethodPatch, path: base + object, contentType: "application/strategic-merge-patch+json"},
		request{method: http.MethodPatch, path: base + object, contentType: "text/plain"},
		request{method: http.MethodPost, path: base, contentType: "application/vnd.kubernetes.protobuf"},
		request{method: http.MethodPost, path: base, contentType: "application/yaml"},
	)
	if r.method != http.MethodGet {
		if r.contentType == "" {
			r.contentType = "application/json"
		}
		r.body = m.body(version, object[1:])
	}
	r.accept = pick(m.Rand, "application/json", "application/json", "application/yaml", "application/vnd.kubernetes.protobuf", "application/vnd.kubernetes.protobuf,application/json", "*/*")
	return &r
}
