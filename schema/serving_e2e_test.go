package schema_test

import (
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"github.com/crdkit/crdkit/internal/testing/controlplane"
	"github.com/crdkit/crdkit/internal/testing/differential"
)

// TestTheAPIServerServesTheSame compares tables with those of a real API server.
func TestTheAPIServerServesTheSame(t *testing.T) {
	t.Parallel()
	cp := controlplane.Shared(t)
	server, err := differential.NewServer(cp.Config(), filepath.Join(cp.Dir(), "etcd.sock"))
	if err != nil {
		t.Fatal(err)
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict([]byte(deployments), crd); err != nil {
		t.Fatal(err)
	}
	if err := server.Install(t.Context(), crd); err != nil {
		t.Fatal(err)
	}
	objects, err := dynamic.NewForConfig(cp.Config())
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(cp.Config())
	if err != nil {
		t.Fatal(err)
	}
	v, ctx := fleets(t).Version("v1"), t.Context()
	resource := objects.Resource(runtimeschema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "fleets"}).Namespace("default")
	for name, spec := range map[string]string{
		"full":  `{"replicas":3,"share":0.5,"colour":"red","list":[1,"a",null,{"b":[]}]}`,
		"odd":   `{"replicas":1,"share":"x","list":"a"}`,
		"empty": `{}`,
	} {
		u := &unstructured.Unstructured{Object: object(t, `{"apiVersion":"example.com/v1","kind":"Fleet","metadata":{"name":"`+name+`","labels":{"a.b/c":"d"}},"spec":`+spec+`}`)}
		status, err := resource.Create(ctx, u, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		status.Object["status"] = map[string]any{"ready": true, "replicas": int64(2), "selector": "a=b", "since": "2020-01-01T00:00:00Z"}
		stored, err := resource.UpdateStatus(ctx, status, metav1.UpdateOptions{})
		if err != nil {
			t.Fatal(err)
		}

		path := "/apis/example.com/v1/namespaces/default/fleets/" + name
		var table metav1.Table
		text, err := client.RESTClient().Get().AbsPath(path).SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").Do(ctx).Raw()
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(text, &table); err != nil {
			t.Fatal(err)
		}
		offline := v.Table(stored.Object)
		if diff := cmp.Diff(table.ColumnDefinitions, offline.ColumnDefinitions); diff != "" {
			t.Errorf("%s: columns (-server +offline):\n%s", name, diff)
		}
		if diff := cmp.Diff(cells(t, table.Rows), cells(t, offline.Rows)); diff != "" {
			t.Errorf("%s: cells (-server +offline):\n%s", name, diff)
		}
	}
}

func cells(t *testing.T, rows []metav1.TableRow) any {
	t.Helper()
	var all [][]any
	for _, row := range rows {
		all = append(all, row.Cells)
	}
	var value any
	if err := json.Unmarshal(marshal(t, all), &value); err != nil {
		t.Fatal(err)
	}
	return value
}

func marshal(t *testing.T, value any) []byte {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
