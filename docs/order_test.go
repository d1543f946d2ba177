package docs_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/crdkit/crdkit/conversion"
	"github.com/crdkit/crdkit/test/controlplane"
	"github.com/crdkit/crdkit/test/expect"
	"github.com/crdkit/crdkit/test/mdtest"
	"github.com/crdkit/crdkit/test/webhooktest"
)

// diary is what the API server has asked, in order.
type diary struct {
	mu    sync.Mutex
	lines []string
}

func (d *diary) write(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = append(d.lines, strings.TrimRight(fmt.Sprintf(format, args...), " "))
}

// take returns what was written since the last time.
func (d *diary) take() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := d.lines
	d.lines = nil
	return all
}

// observed is a real API server whose webhooks write a diary.
type observed struct {
	*cluster
	*diary
	client *http.Client
}

const probesPath = "/apis/order.example.com/%s/namespaces/default/probes"

// observe registers the definition and the webhooks.
func observe(t *testing.T, cp *controlplane.ControlPlane) *observed {
	t.Helper()
	c := newCluster(t, cp)
	client, err := rest.HTTPClientFor(c.Config())
	expect.NoError(t, err)
	o := &observed{cluster: c, diary: &diary{}, client: client}

	s := runtime.NewScheme()
	s.AddKnownTypeWithName(schema.GroupVersionKind{Group: "order.example.com", Version: "v1alpha1", Kind: "Probe"}, &alphaProbe{})
	s.AddKnownTypeWithName(schema.GroupVersionKind{Group: "order.example.com", Version: "v1", Kind: "Probe"}, &probe{})
	reg := conversion.NewRegistry(s)
	expect.NoError(t, conversion.AddSpoke(reg,
		func(_ context.Context, in *alphaProbe, out *probe) error {
			if in.Spec != nil {
				out.Spec = &probeSpec{Colour: in.Spec.Color, Note: in.Spec.Note, Seen: in.Spec.Seen}
			}
			out.Status = in.Status
			return nil
		},
		func(_ context.Context, in *probe, out *alphaProbe) error {
			if in.Spec != nil {
				out.Spec = &alphaProbeSpec{Color: in.Spec.Colour, Note: in.Spec.Note, Seen: in.Spec.Seen}
			}
			out.Status = in.Status
			return nil
		}))
	mux := http.NewServeMux()
	mux.Handle("/convert", o.noteConversions(t, conversion.NewHandler(reg)))
	mux.Handle("/mutate-a", o.admission(t, "mutate a", `[{"op": "add", "path": "/spec/seen", "value": %d}]`))
	mux.Handle("/mutate-b", o.admission(t, "mutate b", `[{"op": "add", "path": "/spec/extra", "value": "of b"}]`))
	mux.Handle("/validate", o.admission(t, "validate", ""))
	url, ca := webhooktest.Serve(t, mux)

	text, err := os.ReadFile("testdata/probes.yaml")
	expect.NoError(t, err)
	crd := c.define(t, string(text))
	convert := url + "/convert"
	c.patch(t, crd.Name, map[string]any{"spec": map[string]any{"conversion": apiextensionsv1.CustomResourceConversion{
		Strategy: apiextensionsv1.WebhookConverter,
		Webhook: &apiextensionsv1.WebhookConversion{
			ConversionReviewVersions: []string{"v1"},
			ClientConfig:             &apiextensionsv1.WebhookClientConfig{URL: &convert, CABundle: ca},
		},
	}}})
	to := func(path string) admissionregistrationv1.WebhookClientConfig {
		all := url + path
		return admissionregistrationv1.WebhookClientConfig{URL: &all, CABundle: ca}
	}
	both := []admissionregistrationv1.OperationType{create, updated, admissionregistrationv1.Delete}
	probes := func(versions ...string) (all []admissionregistrationv1.RuleWithOperations) {
		for _, v := range versions {
			all = append(all, rules("order.example.com", v, "probes", both...)...)
			all = append(all, rules("order.example.com", v, "probes/status", both...)...)
		}
		return all
	}
	_, err = c.AdmissionregistrationV1().MutatingWebhookConfigurations().Create(t.Context(), &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "probes"},
		Webhooks: []admissionregistrationv1.MutatingWebhook{
			{Name: "a.order.example.com", ClientConfig: to("/mutate-a"), Rules: probes("v1alpha1", "v1"), SideEffects: new(noneOfEffect),
				AdmissionReviewVersions: []string{"v1"}, ReinvocationPolicy: new(admissionregistrationv1.IfNeededReinvocationPolicy)},
			{Name: "b.order.example.com", ClientConfig: to("/mutate-b"), Rules: probes("v1"), SideEffects: new(noneOfEffect),
				AdmissionReviewVersions: []string{"v1"}},
		},
	}, metav1.CreateOptions{})
	expect.NoError(t, err)
	_, err = c.AdmissionregistrationV1().ValidatingWebhookConfigurations().Create(t.Context(), &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "probes"},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{
			{Name: "c.order.example.com", ClientConfig: to("/validate"), Rules: probes("v1alpha1", "v1"), SideEffects: new(noneOfEffect), AdmissionReviewVersions: []string{"v1"}},
		},
	}, metav1.CreateOptions{})
	expect.NoError(t, err)
	expect.Eventually(t, func() error { // until all of it is in force
		o.take()
		_, answer := o.send(t, http.MethodPost, "v1alpha1", "?dryRun=All", "", `{"apiVersion":"order.example.com/v1alpha1","kind":"Probe","metadata":{"name":"first"},"spec":{}}`)
		diary := strings.Join(o.take(), "\n")
		for _, what := range []string{"mutate a", "mutate b", "validate", "convert"} {
			if !strings.Contains(diary, what) {
				return errors.New("there is no " + what + " yet: " + answer + diary)
			}
		}
		return nil
	})
	o.take()
	return o
}

// noteConversions writes down what is converted.
func (o *observed) noteConversions(t testing.TB, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
			return
		}
		var review apiextensionsv1.ConversionReview
		if err := json.Unmarshal(body, &review); err != nil {
			t.Error(err)
			return
		}
		if n := len(review.Request.Objects); n != 1 {
			t.Errorf("a request has %d objects: the pages say that it has one", n)
		}
		for _, object := range review.Request.Objects {
			from, what := describe(t, object.Raw)
			o.write("convert  %-8s to %-8s %s", from, strings.TrimPrefix(review.Request.DesiredAPIVersion, "order.example.com/"), what)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		h.ServeHTTP(w, r)
	})
}

// admission writes down what a webhook is asked, and answers with a patch, in which %d is how
// often the webhook has changed the object before.
func (o *observed) admission(t testing.TB, name, patch string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review admissionv1.AdmissionReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			t.Error(err)
			return
		}
		request := review.Request
		object, old := request.Object.Raw, ""
		if object == nil {
			object, old = request.OldObject.Raw, "the old object "
		}
		if !bytes.Contains(object, []byte(`"managedFields"`)) {
			t.Errorf("%s: no managedFields in %s: the page says that they are recorded before webhooks run", name, object)
		}
		version, what := describe(t, object)
		o.write("%-8s %-8s %s%s", name, version, old, what)
		response := &admissionv1.AdmissionResponse{UID: request.UID, Allowed: true}
		if patch != "" && old == "" && request.SubResource == "" && strings.Contains(what, "spec") {
			var seen struct{ Spec struct{ Seen int } }
			if err := json.Unmarshal(object, &seen); err != nil {
				t.Error(err)
			}
			text := patch
			if strings.Contains(patch, "%d") {
				text = fmt.Sprintf(patch, seen.Spec.Seen+1)
			}
			response.Patch, response.PatchType = []byte(text), new(admissionv1.PatchTypeJSONPatch)
		}
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(admissionv1.AdmissionReview{TypeMeta: review.TypeMeta, Response: response}); err != nil {
			t.Error(err)
		}
	})
}

// describe returns the version of an object, and what else there is to know of it.
func describe(t testing.TB, object []byte) (version, what string) {
	t.Helper()
	var o struct {
		APIVersion   string
		Spec, Status json.RawMessage
	}
	if err := json.Unmarshal(object, &o); err != nil {
		t.Error(err)
	}
	var parts []string
	if o.Spec != nil {
		parts = append(parts, "spec "+string(o.Spec))
	}
	if o.Status != nil {
		parts = append(parts, "status "+string(o.Status))
	}
	if len(parts) == 0 {
		parts = append(parts, "no spec")
	}
	return strings.TrimPrefix(o.APIVersion, "order.example.com/"), strings.Join(parts, " ")
}

// send sends a request for the probes of a version, and returns the status and the answer.
func (o *observed) send(t testing.TB, method, version, more, contentType, body string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, o.Config().Host+fmt.Sprintf(probesPath, version)+more, strings.NewReader(body))
	expect.NoError(t, err)
	if contentType == "" {
		contentType = "application/json"
	}
	request.Header.Set("Content-Type", contentType)
	request.Header.Set("User-Agent", "reader")
	response, err := o.client.Do(request)
	expect.NoError(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	expect.NoError(t, err)
	return response.StatusCode, string(text)
}

// story is a request of the page, with all its results.
type story struct {
	title                                    string // of the section
	method, version, more, contentType, body string
}

var stories = []story{
	{"Create in the storage version", "POST", "v1", "", "", `{"apiVersion": "order.example.com/v1", "kind": "Probe", "metadata": {"name": "new"}, "spec": {"typo": 1}}`},
	{"Create in another version", "POST", "v1alpha1", "", "", `{"apiVersion": "order.example.com/v1alpha1", "kind": "Probe", "metadata": {"name": "old"}, "spec": {"typo": 1, "old": "gone"}}`},
	{"Merge patch", "PATCH", "v1alpha1", "/old?fieldManager=patcher", "application/merge-patch+json", `{"spec": {"note": "patched", "typo": 1}}`},
	{"Server-side apply", "PATCH", "v1", "/old?fieldManager=applier&force=true", "application/apply-patch+yaml", `{"apiVersion": "order.example.com/v1", "kind": "Probe", "metadata": {"name": "old"}, "spec": {"note": "applied"}}`},
}

// TestRequests_Order plays the requests of the page, and compares all that is asked, stored
// and answered with what the page says.
func TestRequests_Order(t *testing.T) {
	t.Parallel()
	p := mdtest.Read(t, "what-the-api-server-does.md")
	// Caches convert too, at any time: see TestProbes_WithWatchCaches.
	o := observe(t, controlplane.ForTest(t, controlplane.APIServerArgs("--watch-cache=false")))
	var printed []replacement
	for _, s := range stories {
		code, answer := o.send(t, s.method, s.version, s.more, s.contentType, s.body)
		text := fmt.Sprintf("%s %s%s", s.method, s.version, s.more)
		_, sent := describe(t, []byte(s.body))
		text += " " + strings.ReplaceAll(strings.ReplaceAll(sent, `": `, `":`), `, "`, `,"`) + "\n"
		for _, line := range o.take() {
			text += "  " + line + "\n"
		}
		name := regexp.MustCompile(`"name": ?"(\w+)"`).FindStringSubmatch(answer)
		if name == nil {
			t.Fatalf("%s: %d %s", s.title, code, answer)
		}
		version, what := describe(t, []byte(o.stored(t, "order.example.com/probes/default/"+name[1])))
		text += fmt.Sprintf("  %-8s %-8s %s\n", "etcd has", version, what)
		version, what = describe(t, []byte(answer))
		text += fmt.Sprintf("%-10s %-8s %s\n", fmt.Sprint(code), version, what)
		blocks := p.Section(t, s.title).BlocksOf("text")
		if len(blocks) != 1 {
			t.Errorf("section %q has %d blocks of text", s.title, len(blocks))
			continue
		}
		if *update {
			printed = append(printed, replacement{blocks[0], text})
		} else if diff := cmp.Diff(lines(blocks[0].Text), lines(text)); diff != "" {
			t.Errorf("%s:%d: %s (-page +real):\n%s", p.Path, blocks[0].Line, s.title, diff)
		}
	}
	rewrite(t, p, printed)

	t.Run("each object of a list is converted by a request of its own", func(t *testing.T) {
		code, answer := o.send(t, "GET", "v1alpha1", "", "", "")
		if asked := o.take(); code != 200 || len(asked) != 2 || !strings.Contains(answer, `"color":"red"`) || !strings.Contains(answer, `"color":"blue"`) {
			t.Errorf("%d %s, after\n%s", code, answer, strings.Join(asked, "\n"))
		}
	})
	t.Run("an update of the status restores the spec after the mutating webhooks", func(t *testing.T) {
		code, answer := o.send(t, "PATCH", "v1alpha1", "/old/status", "application/merge-patch+json", `{"spec":{"note":"ignored"},"status":{"phase":"ready"}}`)
		asked := strings.Join(o.take(), "\n")
		for _, want := range []string{
			`mutate a v1alpha1 spec {"color":"blue","note":"ignored"`,
			`mutate b v1       spec {"colour":"blue","note":"ignored"`,
			`validate v1alpha1 spec {"color":"blue","note":"applied"`,
		} {
			if code != 200 || !strings.Contains(answer, `"phase":"ready"`) || !strings.Contains(asked, want) {
				t.Errorf("%d %s, want %q in\n%s", code, answer, want, asked)
			}
		}
	})
	t.Run("all webhooks of a delete get the old object", func(t *testing.T) {
		code, answer := o.send(t, "DELETE", "v1alpha1", "/old", "", "")
		asked := strings.Join(o.take(), "\n")
		for _, want := range []string{"mutate a v1alpha1 the old object", "mutate b v1       the old object", "validate v1alpha1 the old object"} {
			if code != 200 || !strings.Contains(asked, want) {
				t.Errorf("%d %s, want %q in\n%s", code, answer, want, asked)
			}
		}
	})
	t.Run("what is invalid reaches the mutating webhooks alone", func(t *testing.T) {
		code, answer := o.send(t, "POST", "v1", "", "", `{"apiVersion":"order.example.com/v1","kind":"Probe","metadata":{"name":"bad"},"spec":{"note":"bad in v1"}}`)
		asked := strings.Join(o.take(), "\n")
		if code != 422 || !strings.Contains(answer, "bad in v1") || !strings.Contains(asked, "mutate a") || strings.Contains(asked, "validate") {
			t.Errorf("%d %s, after\n%s", code, answer, asked)
		}
	})
	t.Run("the schema of the storage version is not asked", func(t *testing.T) {
		code, answer := o.send(t, "POST", "v1alpha1", "", "", `{"apiVersion":"order.example.com/v1alpha1","kind":"Probe","metadata":{"name":"slips"},"spec":{"note":"bad in v1"}}`)
		if code != 201 {
			t.Errorf("%d %s", code, answer)
		}
		code, answer = o.send(t, "POST", "v1alpha1", "", "", `{"apiVersion":"order.example.com/v1alpha1","kind":"Probe","metadata":{"name":"caught"},"spec":{"note":"bad in v1alpha1"}}`)
		if code != 422 {
			t.Errorf("%d %s", code, answer)
		}
	})
	t.Run("strict decoding comes before all webhooks", func(t *testing.T) {
		o.take()
		code, answer := o.send(t, "POST", "v1alpha1", "?fieldValidation=Strict", "", `{"apiVersion":"order.example.com/v1alpha1","kind":"Probe","metadata":{"name":"strict"},"spec":{"typo":1}}`)
		if asked := o.take(); code != 400 || !strings.Contains(answer, `unknown field \"spec.typo\"`) || len(asked) > 0 {
			t.Errorf("%d %s, after\n%s", code, answer, asked)
		}
	})
	t.Run("the version of the body must be that of the path", func(t *testing.T) {
		code, answer := o.send(t, "POST", "v1", "", "", `{"apiVersion":"order.example.com/v1alpha1","kind":"Probe","metadata":{"name":"other"}}`)
		if asked := o.take(); code != 400 || !strings.Contains(answer, "does not match the expected API version") || len(asked) > 0 {
			t.Errorf("%d %s, after\n%s", code, answer, asked)
		}
	})
	t.Run("apply refuses a field that the schema does not have", func(t *testing.T) {
		code, answer := o.send(t, "PATCH", "v1", "/new?fieldManager=applier", "application/apply-patch+yaml", `{"apiVersion":"order.example.com/v1","kind":"Probe","metadata":{"name":"new"},"spec":{"typo":1}}`)
		if code != 500 || !strings.Contains(answer, "field not declared in schema") {
			t.Errorf("%d %s", code, answer)
		}
		o.take()
	})
	t.Run("what webhooks have changed belongs to nobody", func(t *testing.T) {
		_, answer := o.send(t, "GET", "v1", "/new", "", "")
		if !strings.Contains(answer, `"f:colour"`) || strings.Contains(answer, `"f:seen"`) {
			t.Error(answer)
		}
	})
	metadata := func(answer string) (m struct {
		ResourceVersion string
		Generation      int
	}) {
		t.Helper()
		var object struct{ Metadata *json.RawMessage }
		expect.NoError(t, json.Unmarshal([]byte(answer), &object))
		expect.NoError(t, json.Unmarshal(*object.Metadata, &m))
		return m
	}
	t.Run("an update that changes nothing is not stored", func(t *testing.T) {
		// The first stores the default of v1, which no create in v1alpha1 has stored.
		_, before := o.send(t, "PATCH", "v1", "/slips/status", "application/merge-patch+json", `{}`)
		code, after := o.send(t, "PATCH", "v1", "/slips/status", "application/merge-patch+json", `{}`)
		if code != 200 || metadata(after) != metadata(before) {
			t.Errorf("%d: from %v to %v", code, metadata(before), metadata(after))
		}
	})
	t.Run("what a webhook adds and no schema knows is a change each time", func(t *testing.T) {
		_, before := o.send(t, "GET", "v1", "/slips", "", "")
		code, after := o.send(t, "PATCH", "v1", "/slips", "application/merge-patch+json", `{"spec":{"note":"fine","seen":0}}`)
		_, again := o.send(t, "PATCH", "v1", "/slips", "application/merge-patch+json", `{"spec":{"note":"fine","seen":0}}`)
		if code != 200 || metadata(after).Generation <= metadata(before).Generation || metadata(again).Generation <= metadata(after).Generation {
			t.Errorf("%d: from %v to %v to %v", code, metadata(before), metadata(after), metadata(again))
		}
	})
}

func TestProbes_WithWatchCaches(t *testing.T) {
	t.Parallel()
	o := observe(t, controlplane.Shared(t))
	t.Run("authorization comes before decoding", o.authorizes)
	t.Run("each version has a cache", o.caches)
}

func (o *observed) authorizes(t *testing.T) {
	const invalid = `this is no JSON`
	send := func(config *rest.Config) (*http.Response, string) {
		t.Helper()
		client, err := rest.HTTPClientFor(config)
		expect.NoError(t, err)
		response, err := client.Post(config.Host+fmt.Sprintf(probesPath, "v1"), "application/json", strings.NewReader(invalid))
		expect.NoError(t, err)
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		expect.NoError(t, err)
		return response, string(text)
	}
	stranger := o.Config()
	stranger.CertData, stranger.KeyData, stranger.BearerToken = nil, nil, "nobody's"
	if response, text := send(stranger); response.StatusCode != 401 {
		t.Errorf("without authentication: %s %s", response.Status, text)
	}
	guest, err := o.User("guest")
	expect.NoError(t, err)
	// The flow schema is in the headers of what authorization has refused: fairness comes first.
	if response, text := send(guest); response.StatusCode != 403 || response.Header.Get("X-Kubernetes-Pf-Flowschema-Uid") == "" {
		t.Errorf("without authorization: %s %v %s", response.Status, response.Header, text)
	}
	if response, text := send(o.Config()); response.StatusCode != 400 {
		t.Errorf("with both: %s %s", response.Status, text)
	}
	if asked := o.take(); len(asked) > 0 {
		t.Errorf("a webhook was asked:\n%s", strings.Join(asked, "\n"))
	}
}

func (o *observed) caches(t *testing.T) {
	code, answer := o.send(t, "POST", "v1", "", "", `{"apiVersion":"order.example.com/v1","kind":"Probe","metadata":{"name":"cached"},"spec":{}}`)
	if code != 201 {
		t.Fatalf("%d %s", code, answer)
	}
	// No client has asked for v1alpha1, but its cache converts.
	var asked []string
	expect.Eventually(t, func() error {
		if asked = append(asked, o.take()...); !strings.Contains(strings.Join(asked, "\n"), "convert  v1       to v1alpha1") {
			return fmt.Errorf("no cache has converted: %s", asked)
		}
		return nil
	})
	// Lists come from the cache; a get reads etcd, and converts.
	conversions := func(more string) int {
		t.Helper()
		o.take()
		for range 5 {
			if code, answer := o.send(t, "GET", "v1alpha1", more, "", ""); code != 200 || !strings.Contains(answer, `"color":"red"`) {
				t.Fatalf("%d %s", code, answer)
			}
		}
		return len(o.take())
	}
	expect.Eventually(t, func() error { // until the cache is ready
		if n := conversions(""); n > 0 {
			return fmt.Errorf("five lists need %d conversions", n)
		}
		return nil
	})
	want := map[string]int{"five lists": 0, "five gets": 5, "five gets from the cache": 0}
	got := map[string]int{"five lists": conversions(""), "five gets": conversions("/cached"), "five gets from the cache": conversions("/cached?resourceVersion=0")}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("conversions (-want +got):\n%s", diff)
	}
}
