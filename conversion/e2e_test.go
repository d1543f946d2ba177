package conversion_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/crdkit/crdkit/conversion"
	"github.com/crdkit/crdkit/conversion/lossless"
	"github.com/crdkit/crdkit/test/controlplane"
	"github.com/crdkit/crdkit/test/expect"
	"github.com/crdkit/crdkit/test/webhooktest"
)

// TestHandler_RealAPIServer checks the handler, and every form of
// registration that the pizza operator has no use for, against a real API server.
func TestHandler_RealAPIServer(t *testing.T) {
	t.Parallel()
	cp := controlplane.ForTest(t)
	richMenu := strings.Replace(richMenu, "1.0", "1.5", 1) // the API server stores 1.0 as 1
	reg := conversion.NewRegistry(menuScheme())
	group := oldMenu1.Group
	v1 := schema.GroupVersion{Group: group, Version: "v1"}
	expect.NoError(t, errors.Join(
		conversion.AddSpoke(reg, strange(menuToHub), menuFromHub),
		// A third version of the menu has no Go type.
		conversion.AddUnstructuredSpoke(reg, schema.GroupVersionKind{Group: group, Version: "v1alpha1", Kind: "Menu"}, "",
			func(_ context.Context, in *unstructured.Unstructured, out *hubMenu) error {
				size, _, err := unstructured.NestedString(in.Object, "size")
				out.Spec.Size = size
				return err
			},
			func(_ context.Context, in *hubMenu, out *unstructured.Unstructured) error {
				if in.Spec.Size == "" {
					return nil
				}
				return unstructured.SetNestedField(out.Object, in.Spec.Size, "size")
			}),
		// And a kind has its fields moved.
		conversion.AddFields(reg, schema.GroupVersionKind{Group: group, Version: "v1", Kind: "CronTab"}, "v2",
			conversion.Split("spec.hostPort", ":", conversion.Part{Path: "spec.host"}, conversion.Part{Path: "spec.port", Integer: true})),
	))
	menuCRD := webhookCRD("menus", "Menu", "v2", "v1", "v1alpha1")
	expect.NoError(t, errors.Join(
		conversion.Lossless(reg, v1.WithKind("Menu"), lossless.ListMapKeys(textOfDefinition(t, menuCRD))),
		conversion.Lossless(reg, schema.GroupVersionKind{Group: group, Version: "v1alpha1", Kind: "Menu"}, lossless.ListMapKeys(textOfDefinition(t, menuCRD))),
	))
	url, ca := webhooktest.Serve(t, conversion.NewHandler(reg))
	install(t, cp, url, ca, reg, menuCRD, webhookCRD("crontabs", "CronTab", "v2", "v1"))
	client, err := dynamic.NewForConfig(cp.Config())
	expect.NoError(t, err)
	in := func(resource, version string) dynamic.ResourceInterface {
		return client.Resource(schema.GroupVersionResource{Group: group, Version: version, Resource: resource}).Namespace("default")
	}
	menus := func(version string) dynamic.ResourceInterface { return in("menus", version) }
	ctx := t.Context()
	spec := func(o *unstructured.Unstructured) any { return o.Object["spec"] }
	create := func(version, name, spec string) *unstructured.Unstructured {
		t.Helper()
		o, err := menus(version).Create(ctx, decode(t, menuOf(version, `{"name":"`+name+`"}`, spec)), metav1.CreateOptions{FieldManager: "test"})
		expect.NoError(t, err)
		return o
	}

	t.Run("what a spoke cannot express survives a user who edits the spoke", func(t *testing.T) {
		hub := create("v2", "rich", richMenu)
		old, err := menus("v1").Get(ctx, "rich", metav1.GetOptions{})
		expect.NoError(t, err)
		if old.GetAnnotations()[lossless.Annotation] == "" {
			t.Fatalf("v1 has no annotation: %v", old)
		}
		dishes, _, _ := unstructured.NestedSlice(old.Object, "spec", "dishes")
		dishes[0].(map[string]any)["price"] = int64(8) // soup is dearer, bread is out
		expect.NoError(t, unstructured.SetNestedSlice(old.Object, []any{dishes[0], dishes[2]}, "spec", "dishes"))
		if _, err := menus("v1").Update(ctx, old, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		// kubectl edits with patches.
		if _, err := menus("v1").Patch(ctx, "rich", types.MergePatchType, []byte(`{"spec":{"opens":9}}`), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
		got, err := menus("v2").Get(ctx, "rich", metav1.GetOptions{})
		expect.NoError(t, err)
		want := strings.NewReplacer(`"price":7`, `"price":8`, `{"name":"bread","price":2},`, ``, `"opens":11`, `"opens":9`).Replace(richMenu)
		if diff := cmp.Diff(decode(t, `{"kind":"x","spec":`+want+`}`).Object["spec"], spec(got)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if got.GetAnnotations() != nil || got.GetUID() != hub.GetUID() {
			t.Errorf("the metadata are %v", got.Object["metadata"])
		}
	})

	t.Run("two appliers, each in a version of its own, do not get in each other's way", func(t *testing.T) {
		apply := func(version, manager, spec string) {
			t.Helper()
			if _, err := menus(version).Apply(ctx, "shared", decode(t, menuOf(version, `{"name":"shared"}`, spec)), metav1.ApplyOptions{FieldManager: manager}); err != nil {
				t.Fatal(err)
			}
		}
		apply("v2", "new", `{"currency":"CHF","dishes":[{"name":"soup","price":7,"note":"hot"}]}`)
		apply("v1", "old", `{"opens":9,"dishes":[{"name":"cake","price":5}]}`)
		apply("v2", "new", `{"currency":"EUR","dishes":[{"name":"soup","price":7,"note":"cold"}]}`)
		apply("v1", "old", `{"opens":10,"dishes":[{"name":"cake","price":6}]}`)
		got, err := menus("v2").Get(ctx, "shared", metav1.GetOptions{})
		expect.NoError(t, err)
		want := `{"currency":"EUR","hours":{"opens":10},"dishes":[{"name":"soup","price":7,"note":"cold"},{"name":"cake","price":6}]}`
		if diff := cmp.Diff(decode(t, `{"kind":"x","spec":`+want+`}`).Object["spec"], spec(got)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})

	t.Run("an annotation that somebody has spoilt is refused, and nothing is lost", func(t *testing.T) {
		create("v2", "spoilt", richMenu)
		patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"{"}}}`, lossless.Annotation)
		_, err := menus("v1").Patch(ctx, "spoilt", types.MergePatchType, patch, metav1.PatchOptions{})
		if want := "Menu default/spoilt from example.com/v1 to example.com/v2: metadata.annotations[conversion.crdkit.github.io/lost]: Invalid value"; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
		if got, err := menus("v2").Get(ctx, "spoilt", metav1.GetOptions{}); err != nil || cmp.Diff(decode(t, `{"kind":"x","spec":`+richMenu+`}`).Object["spec"], spec(got)) != "" {
			t.Errorf("it is now %v, %v", got, err)
		}
	})

	t.Run("a version without a Go type, and the way between two spokes", func(t *testing.T) {
		o := decode(t, `{"apiVersion":"example.com/v1alpha1","kind":"Menu","metadata":{"name":"alpha"},"size":"XL"}`)
		if _, err := menus("v1alpha1").Create(ctx, o, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, err := menus("v1").Patch(ctx, "alpha", types.MergePatchType, []byte(`{"spec":{"tags":["x"]}}`), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
		got, err := menus("v1alpha1").Patch(ctx, "alpha", types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`), metav1.PatchOptions{})
		if err != nil || got.Object["size"] != "XL" || got.GetLabels()["a"] != "b" {
			t.Errorf("got %v, %v", got, err)
		}
		hub, err := menus("v2").Get(ctx, "alpha", metav1.GetOptions{})
		expect.NoError(t, err)
		if diff := cmp.Diff(map[string]any{"size": "XL", "tags": []any{map[string]any{"text": "x"}}}, spec(hub)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})

	t.Run("moved fields", func(t *testing.T) {
		if _, err := in("crontabs", "v1").Create(ctx, decode(t, `{"apiVersion":"example.com/v1","kind":"CronTab","metadata":{"name":"c"},"spec":{"hostPort":"localhost:80","other":1.5}}`), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		got, err := in("crontabs", "v2").Get(ctx, "c", metav1.GetOptions{})
		expect.NoError(t, err)
		if diff := cmp.Diff(map[string]any{"host": "localhost", "port": int64(80), "other": 1.5}, spec(got)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		_, err = in("crontabs", "v1").Create(ctx, decode(t, `{"apiVersion":"example.com/v1","kind":"CronTab","metadata":{"name":"d"},"spec":{"hostPort":"localhost"}}`), metav1.CreateOptions{})
		if want := `CronTab default/d from example.com/v1 to example.com/v2: spec.hostPort: Invalid value: "localhost"`; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	})

	t.Run("long lists and large objects", func(t *testing.T) {
		const n = 300
		for i := range n {
			create("v2", fmt.Sprintf("many-%03d", i), fmt.Sprintf(`{"currency":"C%d","tags":[{"text":"%d","color":"red"}]}`, i, i))
		}
		large := strings.Repeat("x", 1<<20)
		create("v2", "large", `{"tags":[{"text":"`+large+`"}]}`)
		list, err := menus("v1").List(ctx, metav1.ListOptions{})
		expect.NoError(t, err)
		found := 0
		for _, o := range list.Items {
			tags, _, _ := unstructured.NestedStringSlice(o.Object, "spec", "tags")
			var i int
			if _, err := fmt.Sscanf(o.GetName(), "many-%03d", &i); err == nil {
				found++
				if len(tags) != 1 || tags[0] != fmt.Sprint(i) || !strings.Contains(o.GetAnnotations()[lossless.Annotation], fmt.Sprintf(`"C%d"`, i)) {
					t.Errorf("%s is %v", o.GetName(), o.Object)
				}
			}
			if o.GetName() == "large" && (len(tags) != 1 || tags[0] != large) {
				t.Errorf("the large one has %d tags", len(tags))
			}
		}
		if found != n || list.GetAPIVersion() != "example.com/v1" {
			t.Errorf("the list of %s has %d of %d", list.GetAPIVersion(), found, n)
		}
	})

	t.Run("hidden fields of any size", func(t *testing.T) {
		for name, value := range map[string]string{
			"escaped":    strings.Repeat("<", 22_000),
			"plain":      strings.Repeat("plain text ", 100_000/11),
			"random":     random(200_000),
			"repetitive": strings.Repeat("once more ", 100_000),
		} {
			extra := map[string]any{"x": value}
			create("v2", name, `{"extra":`+textOf(t, extra)+`}`)
			if _, err := menus("v1").Patch(ctx, name, types.MergePatchType, []byte(`{"spec":{"opens":9}}`), metav1.PatchOptions{}); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			got, err := menus("v2").Get(ctx, name, metav1.GetOptions{})
			expect.NoError(t, err)
			if diff := cmp.Diff(map[string]any{"extra": extra, "hours": map[string]any{"opens": int64(9)}}, spec(got)); diff != "" {
				t.Errorf("%s (-want +got):\n%.1000s", name, diff)
			}
			if err := menus("v2").Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
				t.Error(err)
			}
		}
	})

	t.Run("a function that fails, panics, or changes what it must not", func(t *testing.T) {
		for name, want := range map[string]string{
			"fails":   "cannot convert Menu default/fails from example.com/v1 to example.com/v2: out of flour",
			"panics":  "cannot convert Menu default/panics from example.com/v1 to example.com/v2: panic: dough everywhere",
			"renames": "cannot convert Menu default/renames from example.com/v1 to example.com/v2: the conversion function changed metadata.name, metadata.finalizers: only labels and annotations may be changed",
		} {
			_, err := menus("v1").Create(ctx, decode(t, menuOf("v1", `{"name":"`+name+`"}`, `{}`)), metav1.CreateOptions{})
			expect.ErrorContains(t, err, want)
		}
		create("v1", "fine", `{"size":"Small"}`)
	})
}

// strange is a conversion function that goes wrong for some names.
func strange(toHub func(context.Context, *oldMenu, *hubMenu) error) func(context.Context, *oldMenu, *hubMenu) error {
	return func(ctx context.Context, in *oldMenu, out *hubMenu) error {
		switch in.Name {
		case "fails":
			return errors.New("out of flour")
		case "panics":
			panic("dough everywhere")
		case "renames":
			out.Name, out.Finalizers = "other", []string{"example.com/x"}
		}
		return toHub(ctx, in, out)
	}
}

func decode(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	expect.NoError(t, o.UnmarshalJSON([]byte(text)))
	return o
}

// webhookCRD returns a CustomResourceDefinition. The first version is stored.
func webhookCRD(plural, kind string, versions ...string) *apiextensionsv1.CustomResourceDefinition {
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: plural + "." + oldMenu1.Group}}
	crd.Spec.Group, crd.Spec.Scope = oldMenu1.Group, apiextensionsv1.NamespaceScoped
	crd.Spec.Names = apiextensionsv1.CustomResourceDefinitionNames{Plural: plural, Kind: kind}
	anything := apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: new(true)}
	dishes := apiextensionsv1.JSONSchemaProps{Type: "array", XListType: new("map"), XListMapKeys: []string{"name"}, Items: &apiextensionsv1.JSONSchemaPropsOrArray{
		Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", Required: []string{"name"}, XPreserveUnknownFields: new(true),
			Properties: map[string]apiextensionsv1.JSONSchemaProps{"name": {Type: "string"}}},
	}}
	for i, name := range versions {
		s := *anything.DeepCopy()
		s.Properties = map[string]apiextensionsv1.JSONSchemaProps{"spec": *anything.DeepCopy()}
		if kind == "Menu" {
			menu := s.Properties["spec"]
			menu.Properties = map[string]apiextensionsv1.JSONSchemaProps{"dishes": dishes}
			s.Properties["spec"] = menu
		}
		crd.Spec.Versions = append(crd.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{
			Name: name, Served: true, Storage: i == 0, Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &s},
		})
	}
	return crd
}

// install installs definitions whose conversion is the webhook, and waits until they
// are served.
func install(t *testing.T, cp *controlplane.ControlPlane, url string, ca []byte, reg *conversion.Registry, crds ...*apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	client, err := apiextensions.NewForConfig(cp.Config())
	expect.NoError(t, err)
	for _, crd := range crds {
		crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.WebhookConverter, Webhook: &apiextensionsv1.WebhookConversion{
			ClientConfig:             &apiextensionsv1.WebhookClientConfig{URL: &url, CABundle: ca},
			ConversionReviewVersions: []string{"v1"},
		}}
		expect.NoError(t, reg.Check(textOfDefinition(t, crd)))
		definitions := client.ApiextensionsV1().CustomResourceDefinitions()
		if _, err := definitions.Create(t.Context(), crd, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		for {
			got, err := definitions.Get(t.Context(), crd.Name, metav1.GetOptions{})
			expect.NoError(t, err)
			established := false
			for _, c := range got.Status.Conditions {
				established = established || c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue
			}
			if established {
				break
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
	// The resources are served a little later than they are established.
	dyn, err := dynamic.NewForConfig(cp.Config())
	expect.NoError(t, err)
	for _, crd := range crds {
		for _, v := range crd.Spec.Versions {
			r := dyn.Resource(schema.GroupVersionResource{Group: crd.Spec.Group, Version: v.Name, Resource: crd.Spec.Names.Plural})
			for {
				if _, err := r.List(t.Context(), metav1.ListOptions{}); err == nil {
					break
				} else if t.Context().Err() != nil {
					t.Fatal(err)
				}
				time.Sleep(20 * time.Millisecond)
			}
		}
	}
}
