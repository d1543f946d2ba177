// Package migratetest is a custom resource for tests of migrations: boxes of every kind, in a
// real API server, in two versions, with a conversion webhook between them.
package migratetest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/crdkit/crdkit/conversion"
	"github.com/crdkit/crdkit/test/expect"
	"github.com/crdkit/crdkit/test/webhooktest"
)

var (
	crds   = apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions")
	number atomic.Int64 // of the latest warehouse
)

// Warehouse is a resource of boxes: v1alpha1 has spec.size, "3x4", and v1 has spec.width and
// spec.height.
type Warehouse struct {
	t       *testing.T
	Config  *rest.Config
	CRD     string // the name of the definition
	Group   string // of its own, since all are of kind Box
	Plural  string
	Broken  atomic.Bool  // no conversion succeeds
	Lenient atomic.Bool  // a size that cannot be read is kept in spec.note
	OneWay  atomic.Bool  // no box with the annotation one-way can be converted to v1alpha1
	Stutter atomic.Int64 // which conversion of each box to v1alpha1 fails, from 1; 0 for no failure
	times   sync.Map     // how often each has been converted since, by its name: *atomic.Int64
	client  dynamic.Interface
}

// New installs a definition whose storage version is v1alpha1. Each has a plural and a group of
// its own, so that the tests of a package can share an API server.
func New(t *testing.T, config *rest.Config, change ...func(*apiextensionsv1.CustomResourceDefinition)) *Warehouse {
	t.Helper()
	plural := fmt.Sprintf("boxes%d", number.Add(1))
	w := &Warehouse{t: t, Config: config, Plural: plural, Group: plural + ".example.com"}
	w.CRD = plural + "." + w.Group
	var err error
	w.client, err = dynamic.NewForConfig(config)
	expect.NoError(t, err)
	reg := conversion.NewRegistry(runtime.NewScheme())
	expect.NoError(t, conversion.AddUnstructuredSpoke(reg, schema.GroupVersionKind{Group: w.Group, Version: "v1alpha1", Kind: "Box"}, "v1", w.widen, w.narrow))
	url, ca := webhooktest.Serve(t, conversion.NewHandler(reg))

	version := func(name string, spec map[string]apiextensionsv1.JSONSchemaProps) apiextensionsv1.CustomResourceDefinitionVersion {
		spec["note"] = apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: ptr.To(true)}
		return apiextensionsv1.CustomResourceDefinitionVersion{
			Name: name, Served: true, Storage: name == "v1alpha1",
			Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
				Type: "object",
				Properties: map[string]apiextensionsv1.JSONSchemaProps{
					"spec": {Type: "object", Properties: spec},
					"status": {Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
						"opened": {Type: "boolean"}, "times": {Type: "integer", Format: "int64"},
					}},
				},
			}},
			Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
		}
	}
	crd := &apiextensionsv1.CustomResourceDefinition{
		TypeMeta:   metav1.TypeMeta{APIVersion: crds.GroupVersion().String(), Kind: "CustomResourceDefinition"},
		ObjectMeta: metav1.ObjectMeta{Name: w.CRD},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: w.Group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: plural, Singular: strings.Replace(plural, "es", "", 1), Kind: "Box", ListKind: "BoxList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{
				version("v1alpha1", map[string]apiextensionsv1.JSONSchemaProps{"size": {Type: "string"}}),
				version("v1", map[string]apiextensionsv1.JSONSchemaProps{"width": {Type: "integer"}, "height": {Type: "integer"}}),
			},
			Conversion: &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.WebhookConverter, Webhook: &apiextensionsv1.WebhookConversion{
				ClientConfig:             &apiextensionsv1.WebhookClientConfig{URL: ptr.To(url + "/convert"), CABundle: ca},
				ConversionReviewVersions: []string{"v1"},
			}},
		},
	}
	for _, c := range change {
		c(crd)
	}
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(crd)
	expect.NoError(t, err)
	delete(object, "status")
	_, err = w.client.Resource(crds).Create(t.Context(), &unstructured.Unstructured{Object: object}, metav1.CreateOptions{})
	expect.NoError(t, err)
	for _, v := range crd.Spec.Versions {
		expect.Eventually(t, func() error {
			_, err := w.Boxes(v.Name).List(t.Context(), metav1.ListOptions{Limit: 1})
			return err
		})
	}
	return w
}

func (w *Warehouse) widen(_ context.Context, in, out *unstructured.Unstructured) error {
	if in.GetName() == probe || w.Broken.Load() || in.GetAnnotations()["broken"] != "" {
		return fmt.Errorf("the conveyor belt is broken")
	}
	spec, _, _ := unstructured.NestedMap(in.Object, "spec")
	if size, ok := spec["size"].(string); ok {
		width, height, _ := strings.Cut(size, "x")
		delete(spec, "size")
		if w.Lenient.Load() && height == "" {
			spec["note"] = map[string]any{"size": size}
			return w.rest(in, out, spec)
		}
		for name, text := range map[string]string{"width": width, "height": height} {
			if text == "" {
				continue // of an object that the API server has pruned, to find out who owns what
			}
			n, err := strconv.ParseInt(text, 10, 64)
			if err != nil {
				return fmt.Errorf("spec.size: %q is not like 3x4", size)
			}
			spec[name] = n
		}
	}
	return w.rest(in, out, spec)
}

func (w *Warehouse) narrow(_ context.Context, in, out *unstructured.Unstructured) error {
	if in.GetName() == probe || w.Broken.Load() {
		return fmt.Errorf("the conveyor belt is broken")
	}
	if w.OneWay.Load() && in.GetAnnotations()["one-way"] != "" {
		return fmt.Errorf("the conveyor belt does not run backwards")
	}
	if nth := w.Stutter.Load(); nth > 0 {
		times, _ := w.times.LoadOrStore(in.GetName(), &atomic.Int64{})
		if times.(*atomic.Int64).Add(1) == nth {
			return fmt.Errorf("the conveyor belt stutters")
		}
	}
	spec, _, _ := unstructured.NestedMap(in.Object, "spec")
	width, wide := spec["width"]
	height, high := spec["height"]
	delete(spec, "width")
	delete(spec, "height")
	switch {
	case wide && high:
		spec["size"] = fmt.Sprintf("%dx%d", width, height)
	case wide:
		spec["size"] = fmt.Sprintf("%dx", width)
	case high:
		spec["size"] = fmt.Sprintf("x%d", height)
	}
	return w.rest(in, out, spec)
}

func (w *Warehouse) rest(in, out *unstructured.Unstructured, spec map[string]any) error {
	if spec != nil {
		out.Object["spec"] = spec
	}
	if status, ok := in.Object["status"]; ok {
		out.Object["status"] = status
	}
	return nil
}

// Boxes is the resource in a version.
func (w *Warehouse) Boxes(version string) dynamic.NamespaceableResourceInterface {
	return w.client.Resource(schema.GroupVersionResource{Group: w.Group, Version: version, Resource: w.Plural})
}

// Fill creates n boxes, of many kinds: with a status, with several owners, on their way
// out, empty.
func (w *Warehouse) Fill(n int) {
	w.t.Helper()
	w.parallel(n, w.Create)
}

// Create creates the box of a number.
func (w *Warehouse) Create(i int) error {
	ctx, v1alpha1 := w.t.Context(), w.Boxes("v1alpha1").Namespace("default")
	name := fmt.Sprintf("box-%05d", i)
	metadata := map[string]any{"name": name, "labels": map[string]any{"shelf": fmt.Sprint(i % 7)}}
	spec := map[string]any{"size": fmt.Sprintf("%dx%d", i, i+1), "note": map[string]any{"weight": int64(1)<<62 + int64(i), "text": "fragile \u2028 <&>"}}
	if i%10 == 1 {
		metadata["annotations"] = map[string]any{"label": strings.Repeat("this side up. ", 50)}
	}
	if i%10 == 2 {
		metadata["finalizers"] = []any{"warehouse.example.com/unload"}
	}
	box := &unstructured.Unstructured{Object: map[string]any{"apiVersion": w.Group + "/v1alpha1", "kind": "Box", "metadata": metadata, "spec": spec}}
	if i%10 == 3 { // nothing in it
		delete(box.Object, "spec")
	}
	if _, err := v1alpha1.Create(ctx, box, metav1.CreateOptions{FieldManager: "unpacker"}); err != nil {
		return err
	}
	switch i % 10 {
	case 2: // on its way out
		return v1alpha1.Delete(ctx, name, metav1.DeleteOptions{})
	case 4: // several generations, and a status
		for _, patch := range []string{`{"spec":{"size":"7x8"}}`, `{"spec":{"note":{"more":[null,{},1.5]}}}`} {
			if _, err := v1alpha1.Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "stacker"}); err != nil {
				return err
			}
		}
		_, err := v1alpha1.Patch(ctx, name, types.MergePatchType, []byte(`{"status":{"opened":true,"times":9007199254740993}}`), metav1.PatchOptions{}, "status")
		if !apierrors.IsNotFound(err) { // as it is where there is no such subresource
			return err
		}
	case 5: // two appliers, in two versions
		for version, spec := range map[string]string{"v1alpha1": `"note":{"by":"alpha"}`, "v1": `"width":5,"height":6`} {
			patch := fmt.Sprintf(`{"apiVersion":%q,"kind":"Box","spec":{%s}}`, w.Group+"/"+version, spec)
			if _, err := w.Boxes(version).Namespace("default").Patch(ctx, name, types.ApplyPatchType, []byte(patch), metav1.PatchOptions{FieldManager: "applier-" + version, Force: ptr.To(true)}); err != nil {
				return err
			}
		}
	}
	return nil
}

// Store makes a version the storage version, and waits until the API server stores in it.
func (w *Warehouse) Store(version string) {
	w.t.Helper()
	w.Change(func(v map[string]any) { v["storage"] = v["name"] == version })
	// A dry run encodes the object as it would be stored, and decodes that again
	// (apiserver/pkg/registry/generic/registry/dryrun.go). The probe cannot be converted, and
	// without a conversion, the schema of another version drops its field.
	box := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"width": int64(1)}}}
	if version == "v1alpha1" {
		box.Object["spec"] = map[string]any{"size": "1x1"}
	}
	box.SetAPIVersion(w.Group + "/" + version)
	box.SetKind("Box")
	box.SetName(probe)
	var boxes dynamic.ResourceInterface = w.Boxes(version)
	if scope, _, _ := unstructured.NestedString(w.Definition().Object, "spec", "scope"); scope == string(apiextensionsv1.NamespaceScoped) {
		boxes = w.Boxes(version).Namespace("default")
	}
	expect.Eventually(w.t, func() error {
		got, err := boxes.Create(w.t.Context(), box, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err == nil && len(got.Object["spec"].(map[string]any)) == 0 {
			err = fmt.Errorf("the field is lost")
		}
		return err
	})
}

// probe is the name of a box that cannot be converted.
const probe = "probe"

// Change changes the versions of the definition.
func (w *Warehouse) Change(f func(version map[string]any)) {
	w.t.Helper()
	expect.Eventually(w.t, func() error {
		crd := w.Definition()
		versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
		for _, v := range versions {
			f(v.(map[string]any))
		}
		expect.NoError(w.t, unstructured.SetNestedSlice(crd.Object, versions, "spec", "versions"))
		_, err := w.client.Resource(crds).Update(w.t.Context(), crd, metav1.UpdateOptions{})
		return err
	})
}

// Definition reads the definition.
func (w *Warehouse) Definition() *unstructured.Unstructured {
	w.t.Helper()
	crd, err := w.client.Resource(crds).Get(w.t.Context(), w.CRD, metav1.GetOptions{})
	expect.NoError(w.t, err)
	return crd
}

// StoredVersions reads status.storedVersions.
func (w *Warehouse) StoredVersions() []string {
	w.t.Helper()
	versions, _, err := unstructured.NestedStringSlice(w.Definition().Object, "status", "storedVersions")
	expect.NoError(w.t, err)
	return versions
}

// Inventory returns a hash of each box as a version shows it, byte for byte, except for the
// resourceVersion.
func (w *Warehouse) Inventory(version string) map[string][sha256.Size]byte {
	w.t.Helper()
	config := rest.CopyConfig(w.Config)
	config.GroupVersion = &schema.GroupVersion{Group: w.Group, Version: version}
	config.APIPath = "/apis"
	config.NegotiatedSerializer = runtime.NewSimpleNegotiatedSerializer(runtime.SerializerInfo{})
	client, err := rest.HTTPClientFor(config)
	expect.NoError(w.t, err)
	base, _, err := rest.DefaultServerUrlFor(config)
	expect.NoError(w.t, err)
	all := map[string][sha256.Size]byte{}
	token, patience := "", time.Now().Add(10*time.Minute)
	for {
		url := fmt.Sprintf("%s/apis/%s/%s/%s?limit=500&continue=%s", strings.TrimSuffix(base.String(), "/"), w.Group, version, w.Plural, token)
		request, err := http.NewRequestWithContext(w.t.Context(), http.MethodGet, url, nil)
		expect.NoError(w.t, err)
		response, err := client.Do(request)
		expect.NoError(w.t, err)
		var list struct {
			Message  string
			Metadata metav1.ListMeta
			Items    []json.RawMessage
		}
		err = json.NewDecoder(response.Body).Decode(&list)
		response.Body.Close()
		expect.NoError(w.t, err)
		if response.StatusCode == http.StatusGatewayTimeout && time.Now().Before(patience) {
			time.Sleep(100 * time.Millisecond) // the cache of this version has not heard of the latest boxes
			continue
		}
		if response.StatusCode != http.StatusOK {
			w.t.Fatalf("listing in %s: %s", version, list.Message)
		}
		for _, item := range list.Items {
			var obj metav1.PartialObjectMetadata
			expect.NoError(w.t, json.Unmarshal(item, &obj))
			without := bytes.Replace(item, fmt.Appendf(nil, `"resourceVersion":%q`, obj.ResourceVersion), nil, 1)
			all[obj.Name] = sha256.Sum256(without)
		}
		if token = list.Metadata.Continue; token == "" {
			return all
		}
	}
}

// OnlyIn checks that all boxes are stored in a version: each can be got in that when nothing
// can be converted. A list may come from the cache of that version; an object does not.
func (w *Warehouse) OnlyIn(version string) {
	w.t.Helper()
	names := slices.Collect(maps.Keys(w.Inventory(version)))
	w.Broken.Store(true)
	defer w.Broken.Store(false)
	w.parallel(len(names), func(i int) error {
		_, err := w.Boxes(version).Namespace("default").Get(w.t.Context(), names[i], metav1.GetOptions{})
		return err
	})
}

// parallel calls f for 0 to n-1, for several at a time.
func (w *Warehouse) parallel(n int, f func(int) error) {
	w.t.Helper()
	var group errgroup.Group
	group.SetLimit(16)
	for i := range n {
		group.Go(func() error {
			if err := f(i); err != nil {
				w.t.Errorf("box %d: %v", i, err)
			}
			return nil
		})
	}
	_ = group.Wait() // all is said
}
