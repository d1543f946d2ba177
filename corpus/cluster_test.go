package corpus_test

import (
	"fmt"
	"net/http"
	"path"
	"reflect"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kubeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/yaml"

	"github.com/crdkit/crdkit/test/controlplane"
	"github.com/crdkit/crdkit/test/expect"
	"github.com/crdkit/crdkit/test/testobj"
	"github.com/crdkit/crdkit/test/webhooktest"
)

// today is the release that the project has in go.mod.
const today = "today"

// cluster is a real API server with the definitions of a project.
type cluster struct {
	definitions apiextensions.Interface
	objects     dynamic.Interface
	webhook     *apiextensionsv1.WebhookConversion
	crds        map[kubeschema.GroupKind]*apiextensionsv1.CustomResourceDefinition // those installed
}

// A real API server shows each known failure that has an object, with the webhook of the project.
func TestServer_ConfirmsFailures(t *testing.T) {
	cp := controlplane.Shared(t)
	for name, load := range projects {
		t.Run(name, func(t *testing.T) {
			p := load(t)
			url, ca := webhooktest.Serve(t, p.convert())
			config := cp.Config()
			config.WarningHandler = rest.NoWarnings{} // all versions but the newest are deprecated
			config.Wrap(func(next http.RoundTripper) http.RoundTripper { return impatient{next} })
			c := &cluster{
				apiextensions.NewForConfigOrDie(config), dynamic.NewForConfigOrDie(config),
				&apiextensionsv1.WebhookConversion{
					ClientConfig:             &apiextensionsv1.WebhookClientConfig{URL: &url, CABundle: ca},
					ConversionReviewVersions: []string{"v1"},
				},
				map[kubeschema.GroupKind]*apiextensionsv1.CustomResourceDefinition{},
			}
			stored := make([]*unstructured.Unstructured, len(p.known))
			store := func(release string) {
				for i, k := range p.known {
					if k.meet != nil && k.release == release {
						stored[i] = c.create(t, k.object, i)
					}
				}
			}
			for _, release := range p.releases {
				c.install(t, p, release, p.history[release])
				store(release)
			}
			c.install(t, p, today, p.definitions)
			store(today)
			for i, k := range p.known {
				if k.meet != nil && !t.Failed() {
					ok := t.Run(k.title, func(t *testing.T) { k.meet(t, c, stored[i]) })
					if ok && k.reason == "" {
						total.confirmed.Add(1)
					}
				}
			}
		})
	}
}

// impatient keeps a client from trying again, which takes minutes if an object is unreadable.
type impatient struct{ http.RoundTripper }

func (i impatient) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := i.RoundTripper.RoundTrip(r)
	if err == nil {
		response.Header.Del("Retry-After")
	}
	return response, err
}

// install installs the definitions of a release for the kinds that are needed, and waits until
// the server uses them. Today's definitions have the project's webhook.
func (c *cluster) install(t *testing.T, p *project, release string, files []string) {
	t.Helper()
	for _, file := range files {
		d := definition(t, file)
		if !p.needs(t, d.GroupKind()) {
			continue
		}
		crd := d.CustomResourceDefinition()
		for i := range crd.Spec.Versions {
			crd.Spec.Versions[i].AdditionalPrinterColumns = []apiextensionsv1.CustomResourceColumnDefinition{{Name: "release " + release, Type: "string", JSONPath: ".kind"}}
		}
		if release == today {
			crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.WebhookConverter, Webhook: c.webhook}
		}
		c.apply(t, crd)
		c.crds[d.GroupKind()] = crd
	}
}

func (c *cluster) apply(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	all := c.definitions.ApiextensionsV1().CustomResourceDefinitions()
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error { // the server writes the status
		old, err := all.Get(t.Context(), crd.Name, metav1.GetOptions{})
		if err != nil {
			_, err = all.Create(t.Context(), crd, metav1.CreateOptions{})
			return err
		}
		old.Spec = crd.Spec
		_, err = all.Update(t.Context(), old, metav1.UpdateOptions{})
		return err
	})
	expect.NoError(t, err)
	// The handler that the server has for all versions shows the columns. One version may be
	// unreadable already. No object is in the namespace.
	space := ""
	if crd.Spec.Scope == apiextensionsv1.NamespaceScoped {
		space = "namespaces/default"
	}
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(100 * time.Millisecond) {
		for _, v := range crd.Spec.Versions {
			table, errList := c.definitions.ApiextensionsV1().RESTClient().Get().
				AbsPath(path.Join("/apis", crd.Spec.Group, v.Name, space, crd.Spec.Names.Plural)).
				Param("limit", "1").SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").DoRaw(t.Context())
			if errList == nil && strings.Contains(string(table), v.AdditionalPrinterColumns[0].Name) {
				return
			}
			err = errList
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: the server does not use the definition: %v", crd.Name, err)
		}
	}
}

// of returns the objects that an object is of, as a client of a version sees them.
func (c *cluster) of(object *unstructured.Unstructured, version string) dynamic.ResourceInterface {
	spec := c.crds[object.GroupVersionKind().GroupKind()].Spec
	all := c.objects.Resource(kubeschema.GroupVersionResource{Group: spec.Group, Version: version, Resource: spec.Names.Plural})
	if spec.Scope == apiextensionsv1.ClusterScoped {
		return all
	}
	return all.Namespace(object.GetNamespace())
}

// get returns an object as a client of a version reads it.
func (c *cluster) get(t *testing.T, object *unstructured.Unstructured, version string) *unstructured.Unstructured {
	t.Helper()
	got, err := c.of(object, version).Get(t.Context(), object.GetName(), metav1.GetOptions{})
	expect.NoError(t, err)
	return got
}

// create stores the object of a known failure, in a namespace of its own.
func (c *cluster) create(t *testing.T, text string, i int) *unstructured.Unstructured {
	t.Helper()
	object := parse(t, text)
	object.SetNamespace(fmt.Sprintf("%s-%d", strings.ToLower(object.GetKind()), i))
	namespaces := c.objects.Resource(kubeschema.GroupVersionResource{Version: "v1", Resource: "namespaces"})
	space := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace"}}
	space.SetName(object.GetNamespace())
	_, err := namespaces.Apply(t.Context(), space.GetName(), space, metav1.ApplyOptions{FieldManager: "corpus"})
	expect.NoError(t, err)
	out, err := c.of(object, object.GroupVersionKind().Version).Create(t.Context(), object, metav1.CreateOptions{FieldValidation: "Strict"})
	if status, ok := object.Object["status"]; ok && err == nil {
		out.Object["status"] = status
		out, err = c.of(object, object.GroupVersionKind().Version).UpdateStatus(t.Context(), out, metav1.UpdateOptions{})
	}
	expect.NoError(t, err)
	return out
}

func parse(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	object := testobj.Parse(t, text)
	return object
}

// meeting is how a client meets a failure.
type meeting = func(t *testing.T, c *cluster, object *unstructured.Unstructured)

// unreadable returns that neither the object nor a list with it can be read in a version.
func unreadable(version, message string) meeting {
	return func(t *testing.T, c *cluster, object *unstructured.Unstructured) {
		_, err := c.of(object, version).Get(t.Context(), object.GetName(), metav1.GetOptions{})
		wantError(t, "get", err, message)
		_, err = c.of(object, version).List(t.Context(), metav1.ListOptions{})
		wantError(t, "list", err, message)
	}
}

// unwritable returns that an update that only adds a label fails in a version, and the removal
// of a finalizer too, without which the object cannot be deleted.
func unwritable(version, message string) meeting {
	return func(t *testing.T, c *cluster, object *unstructured.Unstructured) {
		got := c.get(t, object, version)
		got.SetLabels(map[string]string{"new": "label"})
		_, err := c.of(object, version).Update(t.Context(), got, metav1.UpdateOptions{})
		wantError(t, "update", err, message)
		got.SetLabels(nil)
		got.SetFinalizers(nil)
		_, err = c.of(object, version).Update(t.Context(), got, metav1.UpdateOptions{})
		wantError(t, "removal of the finalizer", err, message)
	}
}

// writable returns that an update that only adds a label passes in a version.
func writable(version string) meeting {
	return edits(version, addLabel, func(*testing.T, *cluster, *unstructured.Unstructured) {})
}

func addLabel(object map[string]any) {
	(&unstructured.Unstructured{Object: object}).SetLabels(map[string]string{"new": "label"})
}

// uncopyable returns that an object as a client of a version reads it cannot be created.
func uncopyable(version, message string) meeting {
	return func(t *testing.T, c *cluster, object *unstructured.Unstructured) {
		got := c.get(t, object, version)
		got.SetName("copy")
		got.SetResourceVersion("")
		_, err := c.of(object, version).Create(t.Context(), got, metav1.CreateOptions{})
		wantError(t, "copy", err, message)
	}
}

// unappliable returns that a manager of fields that has applied an object cannot apply it in another version.
func unappliable(version, message string) meeting {
	return func(t *testing.T, c *cluster, object *unstructured.Unstructured) {
		apply := func(object *unstructured.Unstructured) error {
			applied := object.DeepCopy()
			delete(applied.Object, "metadata")
			applied.SetName("applied")
			_, err := c.of(object, object.GroupVersionKind().Version).Apply(t.Context(), "applied", applied, metav1.ApplyOptions{FieldManager: "corpus"})
			return err
		}
		expect.NoError(t, apply(object))
		wantError(t, "apply", apply(c.get(t, object, version)), message)
	}
}

// reads returns that a client of a version reads another spec.
func reads(version, spec string) meeting { return readsField(version, spec, "spec") }

// readsField returns that a client of a version reads another value of a field, or null if it is absent.
func readsField(version, want string, field ...string) meeting {
	return func(t *testing.T, c *cluster, object *unstructured.Unstructured) {
		got, _, err := unstructured.NestedFieldNoCopy(c.get(t, object, version).Object, field...)
		expect.NoError(t, err)
		var value any
		expect.NoError(t, yaml.Unmarshal([]byte(want), &value))
		if text, _ := yaml.Marshal(got); !same(got, value) {
			t.Errorf("the client reads\n%s\nwant\n%s", text, want)
		}
	}
}

// edits returns that a client of a version edits an object, and what it reads afterwards.
func edits(version string, edit func(object map[string]any), then meeting) meeting {
	return func(t *testing.T, c *cluster, object *unstructured.Unstructured) {
		got := c.get(t, object, version)
		edit(got.Object)
		_, err := c.of(object, version).Update(t.Context(), got, metav1.UpdateOptions{})
		expect.NoError(t, err)
		then(t, c, object)
	}
}

// uneditable returns that a client of a version cannot edit an object.
func uneditable(version string, edit func(object map[string]any), message string) meeting {
	return func(t *testing.T, c *cluster, object *unstructured.Unstructured) {
		got := c.get(t, object, version)
		edit(got.Object)
		_, err := c.of(object, version).Update(t.Context(), got, metav1.UpdateOptions{})
		wantError(t, "update", err, message)
	}
}

func same(a, b any) bool {
	textA, errA := yaml.Marshal(a)
	textB, errB := yaml.Marshal(b)
	return errA == nil && errB == nil && reflect.DeepEqual(textA, textB)
}

func wantError(t *testing.T, what string, err error, message string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), message) {
		t.Errorf("the %s has the error %v, want %q", what, err, message)
	}
}
