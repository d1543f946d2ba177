package webhook_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/dynamic"

	"github.com/crdkit/crdkit/admission"
	"github.com/crdkit/crdkit/conversion"
	"github.com/crdkit/crdkit/test/controlplane"
	"github.com/crdkit/crdkit/test/expect"
	"github.com/crdkit/crdkit/test/testobj"
	"github.com/crdkit/crdkit/test/tier"
	"github.com/crdkit/crdkit/test/webhooktest"
)

// These tests show, on a real API server, what docs/security-model.md says about a user of the custom resource.

// orders is a kind whose objects cost the more, the more items they have.
type orders struct {
	group  string
	client dynamic.Interface
}

func newOrders(t *testing.T, cp *controlplane.ControlPlane, group string) orders {
	t.Helper()
	client, err := dynamic.NewForConfig(cp.Config())
	expect.NoError(t, err)
	return orders{group, client}
}

func (o orders) kind(version string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: o.group, Version: version, Kind: "Order"}
}

func (o orders) in(version string) dynamic.ResourceInterface {
	return o.client.Resource(o.kind(version).GroupVersion().WithResource("orders")).Namespace("default")
}

// object returns an object with the items.
func (o orders) object(name string, items ...any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": name}}}
	u.SetGroupVersionKind(o.kind("v1"))
	if items != nil {
		u.Object["spec"] = map[string]any{"items": items}
	}
	return u
}

// define creates the definition, with a schema of spec.items, and v1 as the storage version.
func (o orders) define(t *testing.T, items, strategy string) error {
	t.Helper()
	text := fmt.Sprintf(`{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: orders.%[1]s}, spec: {
group: %[1]s, scope: Namespaced, names: {kind: Order, plural: orders}, conversion: %[3]s, versions: [
{name: v1, served: true, storage: true, schema: &schema {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {items: %[2]s}}}}}},
{name: v1alpha1, served: true, storage: false, schema: *schema}]}}`, o.group, items, strategy)
	crd := testobj.Parse(t, text)
	definitions := o.client.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	if _, err := definitions.Create(t.Context(), crd, metav1.CreateOptions{}); err != nil {
		return err
	}
	for _, version := range []string{"v1", "v1alpha1"} {
		expect.EventuallyTrue(t, version+" is served", func() bool {
			_, err := o.in(version).List(t.Context(), metav1.ListOptions{})
			return err == nil
		})
	}
	return nil
}

const anyItems = "{type: array, items: {type: string}}"

// A conversion that heeds its context fails with an error that names the object, before the API server gives up. One that
// does not return is not begun repeatedly: lists soon fail with an error that names the object. Other objects are served.
func TestUser_ConversionDoesNotReturn(t *testing.T) {
	t.Parallel()
	cp := controlplane.Shared(t)
	o := newOrders(t, cp, "conversion.user.example.com")
	end, calls := make(chan struct{}), atomic.Int64{}
	convert := func(ctx context.Context, in, out *unstructured.Unstructured) error {
		switch in.GetName() {
		case "slow":
			select {
			case <-ctx.Done():
			case <-end:
			}
			return fmt.Errorf("asking the menu: %w", ctx.Err())
		case "evil":
			calls.Add(1)
			<-end
		}
		out.Object["spec"] = in.Object["spec"]
		return nil
	}
	reg := conversion.NewRegistry(runtime.NewScheme())
	expect.NoError(t, conversion.AddUnstructuredSpoke(reg, o.kind("v1alpha1"), "v1", convert, convert))
	h, asked := conversion.NewHandler(reg), atomic.Value{}
	url, ca := webhooktest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Store(r.URL.Query().Get("timeout"))
		if !tier.Verify() {
			r.URL.RawQuery = "timeout=2s"
		}
		h.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { close(end) }) // before the server drains
	expect.NoError(t, o.define(t, anyItems, fmt.Sprintf("{strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {url: %q, caBundle: %s}}}", url, base64.StdEncoding.EncodeToString(ca))))
	create := func(name string) {
		_, err := o.in("v1").Create(t.Context(), o.object(name, "a"), metav1.CreateOptions{})
		expect.NoError(t, err)
	}
	for i := range 20 {
		create(fmt.Sprintf("good-%d", i))
	}
	const cannot = "cannot convert Order default/%s from conversion.user.example.com/v1 to conversion.user.example.com/v1alpha1: %s"

	create("slow")
	begin := time.Now()
	_, err := o.in("v1alpha1").Get(t.Context(), "slow", metav1.GetOptions{})
	t.Logf("after %s: %v", time.Since(begin), err)
	expect.ErrorContains(t, err, fmt.Sprintf(cannot, "slow", "asking the menu: context deadline exceeded"))
	if asked.Load() != "30s" {
		t.Errorf("the API server waits for %v", asked.Load())
	}
	expect.NoError(t, o.in("v1").Delete(t.Context(), "slow", metav1.DeleteOptions{}))

	create("evil")
	list := func() (*unstructured.UnstructuredList, error) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		return o.in("v1alpha1").List(ctx, metav1.ListOptions{})
	}
	begin = time.Now()
	expect.EventuallyTrue(t, "lists name the object", func() bool {
		_, err = list()
		return err != nil && strings.Contains(err.Error(), fmt.Sprintf(cannot, "evil", "a conversion that was begun earlier has not returned"))
	})
	t.Logf("after %s and %d calls: %v", time.Since(begin), calls.Load(), err)
	before := calls.Load()
	for range 3 {
		if _, err = list(); err == nil {
			t.Error("the list is readable")
		}
	}
	if after := calls.Load(); after != before {
		t.Errorf("the conversion was begun %d times, and then %d times", before, after)
	}
	_, err = o.in("v1alpha1").Get(t.Context(), "good-7", metav1.GetOptions{})
	expect.NoError(t, err)
	expect.NoError(t, o.in("v1").Delete(t.Context(), "evil", metav1.DeleteOptions{}))
	expect.EventuallyTrue(t, "lists are readable without the object", func() bool {
		all, err := list()
		return err == nil && len(all.Items) == 20
	})
}

// An admission function that heeds its context fails with an error that names the object, before the API server gives up.
// One that does not return holds up only its own request.
func TestUser_AdmissionDoesNotReturn(t *testing.T) {
	t.Parallel()
	cp := controlplane.Shared(t)
	o := newOrders(t, cp, "admission.user.example.com")
	expect.NoError(t, o.define(t, anyItems, "{strategy: None}"))
	end := make(chan struct{})
	url, ca := webhooktest.Serve(t, admission.NewHandler(runtime.NewScheme(), admission.Validate(func(ctx context.Context, u *unstructured.Unstructured) (field.ErrorList, error) {
		switch u.GetName() {
		case "slow":
			<-ctx.Done()
			return nil, fmt.Errorf("asking the menu: %w", ctx.Err())
		case "evil":
			<-end
		case "refused":
			return field.ErrorList{field.Forbidden(field.NewPath("metadata", "name"), "the webhook is called")}, nil
		}
		return nil, nil
	}, admission.ForKind(o.kind("v1")))))
	t.Cleanup(func() { close(end) }) // before the server drains
	o.admit(t, cp, url, ca, 10)
	for name, want := range map[string]string{
		"slow": "Order default/slow: asking the menu: context deadline exceeded",
		"evil": `failed calling webhook "validate.admission.user.example.com"`,
		"good": "",
	} {
		begin := time.Now()
		_, err := o.in("v1").Create(t.Context(), o.object(name, "a"), metav1.CreateOptions{})
		t.Logf("after %s: %v", time.Since(begin), err)
		if (want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", name, err, want)
		}
	}
}

// admit registers a validating webhook, and waits until the API server calls it.
func (o orders) admit(t *testing.T, cp *controlplane.ControlPlane, url string, ca []byte, seconds int32) {
	t.Helper()
	webhooktest.Register(t, cp.Config(), url, ca, fmt.Sprintf(`
kind: ValidatingWebhookConfiguration
metadata: {name: %[1]s}
webhooks:
- name: validate.%[1]s
  rules: [{operations: [CREATE], apiGroups: [%[1]s], apiVersions: [v1], resources: [orders]}]
  timeoutSeconds: %[2]d
`, o.group, seconds))
	expect.EventuallyTrue(t, "the webhook is called", func() bool {
		_, err := o.in("v1").Create(t.Context(), o.object("refused"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err != nil && strings.Contains(err.Error(), "the webhook is called")
	})
}

// The API server refuses a rule that may cost too much, and stops one that does.
func TestUser_ExpensiveRule(t *testing.T) {
	t.Parallel()
	cp := controlplane.Shared(t)
	o := newOrders(t, cp, "rules.user.example.com")
	const rule = `x-kubernetes-validations: [{rule: "self.all(x, self.all(y, x == y || x != y))"}]`
	err := o.define(t, "{type: array, items: {type: string}, "+rule+"}", "{strategy: None}")
	t.Logf("without bounds: %v", err)
	expect.ErrorContains(t, err, "estimated rule cost exceeds budget by factor of more than 100x")
	expect.NoError(t, o.define(t, "{type: array, maxItems: 900, items: {type: string, maxLength: 5}, "+rule+"}", "{strategy: None}"))
	_, err = o.in("v1").Create(t.Context(), o.object("small", slices.Repeat([]any{"a"}, 100)...), metav1.CreateOptions{})
	expect.NoError(t, err)
	begin := time.Now()
	_, err = o.in("v1").Create(t.Context(), o.object("large", slices.Repeat([]any{"a"}, 900)...), metav1.CreateOptions{})
	t.Logf("after %s: %v", time.Since(begin), err)
	expect.ErrorContains(t, err, "no further validation rules will be run due to call cost exceeds limit for rule")
}

// Defaults make an object larger than the request, before webhooks are called and before maxItems is checked.
func TestUser_ExpensiveDefault(t *testing.T) {
	t.Parallel()
	cp := controlplane.Shared(t)
	o := newOrders(t, cp, "defaults.user.example.com")
	items := "{type: array, %s items: {type: object, properties: {text: {type: string, default: " + strings.Repeat("x", 1000) + "}}}}"
	expect.NoError(t, o.define(t, fmt.Sprintf(items, ""), "{strategy: None}"))
	largest := atomic.Int64{}
	h := admission.NewHandler(runtime.NewScheme(), admission.Validate(func(_ context.Context, u *unstructured.Unstructured) (field.ErrorList, error) {
		if u.GetName() == "refused" {
			return field.ErrorList{field.Forbidden(field.NewPath("metadata", "name"), "the webhook is called")}, nil
		}
		return nil, nil
	}, admission.ForKind(o.kind("v1"))))
	url, ca := webhooktest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		largest.Store(max(largest.Load(), r.ContentLength))
		h.ServeHTTP(w, r)
	}))
	o.admit(t, cp, url, ca, 30)
	object := o.object("large", slices.Repeat([]any{map[string]any{}}, 5_000)...)
	sent, err := object.MarshalJSON()
	expect.NoError(t, err)
	_, err = o.in("v1").Create(t.Context(), object, metav1.CreateOptions{})
	t.Logf("sent %d bytes, the webhook received %d: %v", len(sent), largest.Load(), err)
	if err == nil || !strings.Contains(err.Error(), "larger than max") && !strings.Contains(err.Error(), "too large") { // for etcd
		t.Errorf("got %v", err)
	}
	if len(sent) > 25<<10 || largest.Load() < 5_000_000 {
		t.Errorf("%d bytes became %d", len(sent), largest.Load())
	}
}
