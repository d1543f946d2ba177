package apiservertest_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsclient "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	clientfeatures "k8s.io/client-go/features"
	clientfeaturestesting "k8s.io/client-go/features/testing"
	"k8s.io/client-go/rest"

	"github.com/crdkit/crdkit/schema/apiservertest"
	"github.com/crdkit/crdkit/test/controlplane"
	"github.com/crdkit/crdkit/test/expect"
	"github.com/crdkit/crdkit/test/testobj"
)

const widgetYAML = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.protocol.example.com}
spec:
  group: protocol.example.com
  scope: Namespaced
  names: {plural: widgets, kind: Widget, singular: widget, listKind: WidgetList}
  versions:
  - name: v1
    served: true
    storage: true
    additionalPrinterColumns: [{name: Size, type: integer, jsonPath: .spec.size}]
    selectableFields: [{jsonPath: .spec.color}]
    subresources: {status: {}, scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {color: {type: string}, size: {type: integer}, replicas: {type: integer}}}
          status: {type: object, properties: {replicas: {type: integer}}}
  - name: v1beta1
    served: true
    storage: false
    deprecated: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

func TestServer_Protocol(t *testing.T) {
	t.Parallel()
	protocol(t, apiservertest.Start(t, apiservertest.Manifests([]byte(widgetYAML))).Config())
}

func TestServer_ProtocolInACluster(t *testing.T) {
	cp := controlplane.Shared(t)
	cp.SkipIfOlder(t, "has no WatchList, or uses other words")
	config := cp.Config()
	crd := testobj.As[apiextensionsv1.CustomResourceDefinition](t, widgetYAML)
	_, err := apiextensionsclient.NewForConfigOrDie(config).ApiextensionsV1().CustomResourceDefinitions().Create(t.Context(), crd, metav1.CreateOptions{})
	expect.NoError(t, err)
	protocol(t, config)
}

// protocol sends requests in their order, and expects a status, and texts in the answer with
// its header.
func protocol(t *testing.T, config *rest.Config) {
	client, err := rest.HTTPClientFor(config)
	expect.NoError(t, err)
	token := ""
	send := func(method, path, accept, contentType, body string) (int, string) {
		req, err := http.NewRequestWithContext(t.Context(), method, config.Host+strings.Replace(path, "TOKEN", token, 1), strings.NewReader(body))
		expect.NoError(t, err)
		req.Header.Set("Accept", accept)
		req.Header.Set("Content-Type", contentType)
		response, err := client.Do(req)
		expect.NoError(t, err)
		text, err := io.ReadAll(response.Body)
		expect.NoError(t, err)
		expect.NoError(t, response.Body.Close())
		var list metav1.PartialObjectMetadataList
		if json.Unmarshal(text, &list) == nil && list.Continue != "" {
			token = list.Continue
		}
		return response.StatusCode, fmt.Sprintf("%s\n%s", response.Header, text)
	}
	eventually := func(path, want string) {
		for {
			status, text := send(http.MethodGet, path, "application/json", "", "")
			if status == http.StatusOK && strings.Contains(text, want) {
				return
			}
			time.Sleep(5 * time.Millisecond)
		}
	}
	const (
		base   = "/apis/protocol.example.com/v1/namespaces/default/widgets"
		asJSON = "application/json"
		asYAML = "application/yaml"
		merge  = "application/merge-patch+json"
		apply  = "application/apply-patch+yaml"
	)
	widget := func(name, rest string) string {
		return `{"apiVersion":"protocol.example.com/v1","kind":"Widget","metadata":{"name":"` + name + `"` + rest
	}
	large := func(name string, size int) string {
		return widget(name, `},"spec":{"color":"`+strings.Repeat("x", size)+`"}}`)
	}
	eventually(base, "WidgetList")
	eventually("/openapi/v2", "com.example.protocol.v1.Widget")
	eventually("/openapi/v3", "apis/protocol.example.com/v1")
	for _, r := range []struct {
		name, method, path, accept, contentType, body string
		status                                        int
		want                                          []string
	}{
		{"legacy discovery", "GET", "/api", asJSON, "", "", 200, []string{`"versions":["v1"]`}},
		{"discovery of groups", "GET", "/apis", asJSON, "", "", 200, []string{`"groupVersion":"protocol.example.com/v1beta1"`}},
		{"aggregated discovery", "GET", "/apis", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList", "", "", 200, []string{`"resource":"widgets"`, `"subresource":"scale"`}},
		{"discovery of resources", "GET", "/apis/protocol.example.com/v1", asJSON, "", "", 200, []string{`"name":"widgets/status"`}},
		{"OpenAPI v3", "GET", "/openapi/v3/apis/protocol.example.com/v1", asJSON, "", "", 200, []string{`"com.example.protocol.v1.Widget":`, `"color":`}},
		{"OpenAPI v3 of definitions", "GET", "/openapi/v3/apis/apiextensions.k8s.io/v1", asJSON, "", "", 200, []string{"CustomResourceDefinitionSpec"}},

		{"strict", "POST", base + "?fieldValidation=Strict", asJSON, asJSON, widget("a", `},"spec":{"extra":1}}`), 400, []string{`unknown field \"spec.extra\"`}},
		{"dry run", "POST", base + "?dryRun=All", asJSON, asJSON, widget("a", `}}`), 201, []string{`"uid"`}},
		{"not stored", "GET", base + "/a", asJSON, "", "", 404, nil},
		{"warning", "POST", base + "?fieldValidation=Warn", asJSON, asJSON, widget("a", `,"labels":{"x":"y"}},"spec":{"extra":1,"color":"red","size":3,"replicas":1}}`), 201, []string{`299 - "unknown field \"spec.extra\""`, `"manager":"Go-http-client"`, `"generation":1`}},
		{"YAML in", "POST", base, asJSON, asYAML, "apiVersion: protocol.example.com/v1\nkind: Widget\nmetadata: {name: b, finalizers: [example.com/hold]}\n", 201, nil},
		{"YAML out", "GET", base + "/b", asYAML, "", "", 200, []string{"\nkind: Widget\n"}},
		{"HEAD", "HEAD", base + "/b", asJSON, "", "", 200, []string{"application/json"}},
		{"HEAD of nothing", "HEAD", base + "/nothing", asJSON, "", "", 404, nil},
		{"list of a built-in kind", "GET", "/api/v1/namespaces?fieldSelector=metadata.name%3Ddefault", asJSON, "", "", 200, []string{`"items":[{"metadata":{"name":"default"`}},
		{"HEAD of a built-in kind", "HEAD", "/api/v1/namespaces/default", asJSON, "", "", 405, nil},
		{"apply", "PATCH", base + "/c?fieldManager=ann", asJSON, apply, widget("c", `,"labels":{"x":"y"}},"spec":{"size":4}}`), 201, []string{`"f:size":{}`, `"operation":"Apply"`}},
		{"conflict", "PATCH", base + "/c?fieldManager=bob", asJSON, apply, widget("c", `},"spec":{"size":5}}`), 409, []string{`conflict with \"ann\": .spec.size`}},
		{"JSON patch", "PATCH", base + "/c", asJSON, "application/json-patch+json", `[{"op":"test","path":"/spec/size","value":4},{"op":"add","path":"/spec/color","value":"green"}]`, 200, []string{`"generation":2`}},
		{"merge patch", "PATCH", base + "/c", asJSON, merge, `{"spec":{"size":null}}`, 200, []string{`"spec":{"color":"green"}`}},
		{"strategic merge patch", "PATCH", base + "/c", asJSON, "application/strategic-merge-patch+json", `{}`, 415, nil},

		{"status", "PATCH", base + "/a/status", asJSON, merge, `{"spec":{"size":7},"status":{"replicas":2}}`, 200, []string{`"size":3`, `"generation":1`, `"status":{"replicas":2}`}},
		{"no status", "PATCH", base + "/a", asJSON, merge, `{"status":{"replicas":9}}`, 200, []string{`"status":{"replicas":2}`}},
		{"scale", "GET", base + "/a/scale", asJSON, "", "", 200, []string{`"kind":"Scale"`, `"spec":{"replicas":1}`, `"status":{"replicas":2}`}},
		{"scaled", "PATCH", base + "/a/scale", asJSON, merge, `{"spec":{"replicas":5}}`, 200, []string{`"spec":{"replicas":5}`}},
		{"table", "GET", base, "application/json;as=Table;v=v1;g=meta.k8s.io", "", "", 200, []string{`"name":"Size"`, `"cells":["a",3]`}},
		{"metadata", "GET", base, "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io", "", "", 200, []string{`"kind":"PartialObjectMetadataList"`}},
		{"selectable field", "GET", base + "?fieldSelector=spec.color%3Dred", "application/json;as=Table;v=v1;g=meta.k8s.io", "", "", 200, []string{`"rows":[{"cells":["a",3]`}},
		{"other field", "GET", base + "?fieldSelector=spec.size%3D3", asJSON, "", "", 400, []string{"field label not supported: spec.size"}},
		{"deprecated version", "GET", strings.Replace(base, "v1", "v1beta1", 1), asJSON, "", "", 200, []string{"protocol.example.com/v1beta1 Widget is deprecated"}},
		{"page", "GET", base + "?limit=1", asJSON, "", "", 200, []string{`"remainingItemCount":2`, `"name":"a"`}},
		{"next page", "GET", base + "?limit=1&continue=TOKEN", asJSON, "", "", 200, []string{`"name":"b"`}},
		{"WatchList", "GET", base + "?watch=1&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=1", asJSON, "", "", 200, []string{`{"type":"ADDED"`, `{"type":"BOOKMARK"`, `"k8s.io/initial-events-end":"true"`}},

		// The feature gate CBORServingAndStorage is off by default.
		{"CBOR in", "POST", base, asJSON, "application/cbor", "\xd9\xd9\xf7\xa0", 415, nil},
		{"CBOR out", "GET", base, "application/cbor", "", "", 406, nil},
		{"CBOR sequence", "GET", base + "?watch=1&timeoutSeconds=1", "application/cbor-seq", "", "", 406, nil},
		{"CBOR applied", "PATCH", base + "/a?fieldManager=ann", asJSON, "application/apply-patch+cbor", "\xd9\xd9\xf7\xa0", 415, nil},
		{"CBOR or JSON", "GET", base + "/a", "application/cbor, application/json;q=0.9", "", "", 200, []string{`"kind":"Widget"`}},

		{"precondition", "DELETE", base + "/a", asJSON, asJSON, `{"preconditions":{"uid":"other"}}`, 409, []string{"the UID in the precondition (other) does not match"}},
		{"finalizer", "DELETE", base + "/b", asJSON, "", "", 200, []string{`"deletionTimestamp"`}},
		{"finalized", "PATCH", base + "/b", asJSON, merge, `{"metadata":{"finalizers":null}}`, 200, nil},
		{"gone", "GET", base + "/b", asJSON, "", "", 404, nil},
		{"collection", "DELETE", base + "?labelSelector=x%3Dy", asJSON, "", "", 200, []string{`"name":"a"`, `"name":"c"`}},
		{"empty", "GET", base, asJSON, "", "", 200, []string{`"items":[]`}},

		// etcd takes requests of 1.5 MiB. The API server leaves out managedFields where that helps.
		{"large", "POST", base, asJSON, asJSON, large("d", 3<<19-600), 201, []string{`"generation":1,"managedFields":`}},
		{"larger", "POST", base, asJSON, asJSON, large("e", 3<<19-500), 201, []string{`"generation":1,"name":"e"`}},
		{"too large", "POST", base, asJSON, asJSON, large("f", 3<<19), 500, []string{`"status":"Failure","message":"etcdserver: request is too large","code":500`}},
		{"grown too large", "PATCH", base + "/d", asJSON, merge, `{"spec":{"replicas":1,"color":"` + strings.Repeat("x", 3<<19) + `"}}`, 500, []string{`"message":"etcdserver: request is too large","code":500`}},
		{"too large to send", "POST", base, asJSON, asJSON, large("g", 2<<20), 500, []string{`desc = trying to send message larger than max (2097499 vs. 2097152)","code":500`}},
		{"too large a body", "POST", base, asJSON, asJSON, large("h", 3<<20), 413, []string{"Request entity too large: limit is 3145728"}},
		{"not stored", "GET", base + "/f", asJSON, "", "", 404, nil},
	} {
		t.Run(r.name, func(t *testing.T) {
			status, text := send(r.method, r.path, r.accept, r.contentType, r.body)
			if status != r.status {
				t.Errorf("%s %s: got %d %.2000s\nwant %d", r.method, r.path, status, text, r.status)
			}
			if _, body, _ := strings.Cut(text, "\n"); r.method == http.MethodHead && body != "" {
				t.Errorf("%s %s: got the body %s", r.method, r.path, body)
			}
			for _, want := range r.want {
				if !strings.Contains(text, want) {
					t.Errorf("%s %s: got %.2000s\nwant %s", r.method, r.path, text, want)
				}
			}
		})
	}
}

// A client that prefers CBOR is refused, and then sends JSON, as with a cluster. The feature
// gates are the process's, so this does not run in parallel.
func TestServer_CBORClient(t *testing.T) {
	clientfeaturestesting.SetFeatureDuringTest(t, clientfeatures.ClientsAllowCBOR, true)
	clientfeaturestesting.SetFeatureDuringTest(t, clientfeatures.ClientsPreferCBOR, true)
	s := apiservertest.Start(t, apiservertest.Manifests([]byte(cronTabYAML)))
	client := clientOf(s, "v1")
	_, err := client.Create(t.Context(), cronTab(t, "v1", "a", "{}"), metav1.CreateOptions{})
	if !apierrors.IsUnsupportedMediaType(err) {
		t.Errorf("got %v, want an unsupported media type", err)
	}
	_, err = client.Create(t.Context(), cronTab(t, "v1", "a", "{}"), metav1.CreateOptions{})
	expect.NoError(t, err)
	_, err = client.Apply(t.Context(), "a", cronTab(t, "v1", "a", "{replicas: 2}"), metav1.ApplyOptions{FieldManager: "ann", Force: true})
	if !apierrors.IsUnsupportedMediaType(err) { // client-go/util/apply does not fall back
		t.Errorf("got %v, want an unsupported media type", err)
	}
	list, err := client.List(t.Context(), metav1.ListOptions{})
	expect.NoError(t, err)
	if len(list.Items) != 1 || testobj.Field(t, &list.Items[0], "spec") != `{"replicas":1}` {
		t.Errorf("the list is %v", list)
	}
	watching, err := client.Watch(t.Context(), metav1.ListOptions{ResourceVersion: "0"})
	expect.NoError(t, err)
	defer watching.Stop()
	if e := <-watching.ResultChan(); e.Type != watch.Added {
		t.Errorf("got %v, want an added object", e)
	}
}

// A watch gets a bookmark each minute.
func TestServer_BookmarksInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := apiservertest.Start(t, apiservertest.Manifests([]byte(cronTabYAML)))
		watching, err := clientOf(s, "v1").Watch(t.Context(), metav1.ListOptions{AllowWatchBookmarks: true})
		expect.NoError(t, err)
		defer watching.Stop()
		start := time.Now()
		if e := <-watching.ResultChan(); e.Type != watch.Bookmark || time.Since(start) > 2*time.Minute {
			t.Errorf("got %s after %v, want a bookmark", e.Type, time.Since(start))
		}
	})
}
