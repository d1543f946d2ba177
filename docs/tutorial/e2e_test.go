package tutorial_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/crdkit/crdkit/conversion/migrate"
	step2 "github.com/crdkit/crdkit/docs/tutorial/step2"
	step3 "github.com/crdkit/crdkit/docs/tutorial/step3"
	step4 "github.com/crdkit/crdkit/docs/tutorial/step4"
	step5 "github.com/crdkit/crdkit/docs/tutorial/step5"
	step6 "github.com/crdkit/crdkit/docs/tutorial/step6"
	step7 "github.com/crdkit/crdkit/docs/tutorial/step7"
	step8 "github.com/crdkit/crdkit/docs/tutorial/step8"
	"github.com/crdkit/crdkit/internal/testing/controlplane"
	"github.com/crdkit/crdkit/webhook/registration"
)

// TestSteps_InOneCluster plays all steps in one cluster: each is rolled out over the one
// before, and what has been written before must read the same.
func TestSteps_InOneCluster(t *testing.T) {
	c := open(t)

	c.begin("step 1: a definition, without an operator")
	definition, err := os.ReadFile("step1/config/crd/library.example.com_books.yaml")
	check(t, err)
	c.apply(definition)
	c.write("v1alpha1", "dune", `{title: Dune, authors: [Frank Herbert], pages: 688}`)
	c.reads("dune", "v1alpha1", `{"authors":["Frank Herbert"],"pages":688,"title":"Dune"}`)
	c.write("v1alpha1", "typo", `{title: Neuromancer, authors: [William Gibson], isbn: "9780441569590"}`) // which is not checked yet
	c.reads("typo", "v1alpha1", `{"authors":["William Gibson"],"isbn":"9780441569590","title":"Neuromancer"}`)

	c.begin("step 2: defaults and rules")
	c.roll(step2.Webhooks, step2.Run)
	c.applied("v1alpha1", "omens", `{title: Good Omens, authors: [Terry Pratchett, Neil Gaiman], isbn: "9780060853983"}`)
	c.reads("omens", "v1alpha1", `{"authors":["Terry Pratchett","Neil Gaiman"],"isbn":"9780060853983","shelf":"G","title":"Good Omens"}`)
	c.refuses("v1alpha1")

	c.begin("step 3: v1, which is not served yet")
	c.roll(step3.Webhooks, step3.Run)
	c.notServed("v1")
	c.refuses("v1alpha1")

	c.begin("step 4: v1 is served")
	c.roll(step4.Webhooks, step4.Run)
	c.reads("dune", "v1", `{"authors":[{"name":"Frank Herbert"}],"pages":688,"title":"Dune"}`)
	c.reads("omens", "v1", `{"authors":[{"name":"Terry Pratchett"},{"name":"Neil Gaiman"}],"isbn":"9780060853983","shelf":"G","title":"Good Omens"}`)
	c.reads("typo", "v1", `{"authors":[{"name":"William Gibson"}],"isbn":"9780441569590","title":"Neuromancer"}`)
	c.write("v1", "solaris", `{title: Solaris, authors: [{name: Stanisław Lem}]}`)
	c.reads("solaris", "v1", `{"authors":[{"name":"Stanisław Lem"}],"shelf":"S","title":"Solaris"}`)
	c.reads("solaris", "v1alpha1", `{"authors":["Stanisław Lem"],"shelf":"S","title":"Solaris"}`)
	c.refuses("v1alpha1")
	c.refuses("v1")

	c.begin("step 5: roles, of which v1alpha1 knows nothing")
	c.roll(step5.Webhooks, step5.Run)
	check(t, c.patch("v1", "solaris", `{"spec":{"authors":[{"name":"Stanisław Lem"},{"name":"Bill Johnston","role":"Translator"}]}}`,
		`{"authors":[{"name":"Stanisław Lem"},{"name":"Bill Johnston","role":"Translator"}],"shelf":"S","title":"Solaris"}`))
	c.reads("solaris", "v1alpha1", `{"authors":["Stanisław Lem","Bill Johnston"],"shelf":"S","title":"Solaris"}`)
	check(t, c.patch("v1alpha1", "solaris", `{"spec":{"pages":204}}`, `{"authors":["Stanisław Lem","Bill Johnston"],"pages":204,"shelf":"S","title":"Solaris"}`))
	c.reads("solaris", "v1", `{"authors":[{"name":"Stanisław Lem"},{"name":"Bill Johnston","role":"Translator"}],"pages":204,"shelf":"S","title":"Solaris"}`)
	if diff := cmp.Diff([]string{"v1alpha1"}, c.storedVersions()); diff != "" {
		t.Errorf("stored versions (-want +got):\n%s", diff)
	}
	c.warns()

	c.begin("step 6: v1 is stored, and v1alpha1 deprecated")
	c.roll(step6.Webhooks, step6.Run)
	if diff := cmp.Diff([]string{"v1alpha1", "v1"}, c.storedVersions()); diff != "" {
		t.Errorf("stored versions (-want +got):\n%s", diff)
	}
	c.warns("library.example.com/v1alpha1 Book is deprecated; use library.example.com/v1 Book")
	metrics, err := c.rest.Get().AbsPath("/metrics").DoRaw(t.Context())
	check(t, err)
	if line := `apiserver_requested_deprecated_apis{group="library.example.com",removed_release="",resource="books",subresource="",version="v1alpha1"} 1`; !strings.Contains(string(metrics), line+"\n") {
		t.Error("the API server does not count requests of v1alpha1")
	}
	report, err := step6.Migrate(t.Context(), c.config, migrate.PropagationDelay(0))
	check(t, err)
	if report.Rewritten == 0 || report.Failed > 0 {
		t.Errorf("the migration says %+v", report)
	}
	if diff := cmp.Diff([]string{"v1"}, c.storedVersions()); diff != "" {
		t.Errorf("stored versions after the migration (-want +got):\n%s", diff)
	}
	c.cannotRemove("v1alpha1 is served",
		`v1alpha1 is named in managedFields by "librarian" (Apply), in 1 objects, such as default/omens`,
		`v1alpha1 is named in managedFields by "reader" (Update), in 3 objects, such as default/dune`)
	c.applied("v1", "omens", `{title: Good Omens, authors: [{name: Terry Pratchett}, {name: Neil Gaiman}], isbn: "9780060853983"}`)
	c.end() // so nothing converts: v1 is stored
	delete(c.known, "v1alpha1")
	c.begin("step 6: without an operator")

	c.begin("step 7: v1alpha1 is not served")
	c.roll(step7.Webhooks, step7.Run)
	c.notServed("v1alpha1")
	c.refuses("v1")
	c.cannotRemove(`v1alpha1 is named in managedFields by "reader" (Update), in 3 objects, such as default/dune`)
	check(t, step7.RemoveV1alpha1(t.Context(), c.config, migrate.ForgetOwners()))

	c.begin("step 8: v1alpha1 is gone")
	c.roll(step8.Webhooks, step8.Run)
	if diff := cmp.Diff([]string{"v1"}, c.versions()); diff != "" {
		t.Errorf("versions (-want +got):\n%s", diff)
	}
	c.notServed("v1alpha1")
	c.refuses("v1")
	check(t, c.patch("v1", "dune", `{"spec":{"shelf":"D"}}`, `{"authors":[{"name":"Frank Herbert"}],"pages":688,"shelf":"D","title":"Dune"}`))
	c.write("v1", "last", `{title: The Last Question}`)
	c.reads("last", "v1", `{"shelf":"T","title":"The Last Question"}`)

	c.begin("each book can be written")
	all, err := c.books("v1").List(t.Context(), metav1.ListOptions{})
	check(t, err)
	if len(all.Items) != 5 {
		t.Errorf("there are %d books, and five were written", len(all.Items))
	}
	for _, book := range all.Items {
		now, err := c.books("v1").Patch(t.Context(), book.GetName(), types.MergePatchType, []byte(`{"metadata":{"labels":{"inventory":"done"}}}`), metav1.PatchOptions{})
		check(t, err)
		for _, m := range now.GetManagedFields() {
			if m.APIVersion != "library.example.com/v1" {
				t.Errorf("%s: the fields of %s are those of %s", now.GetName(), m.Manager, m.APIVersion)
			}
		}
	}
	c.same()
}

var definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// cluster is where the steps are played.
type cluster struct {
	t      *testing.T
	config *rest.Config
	client dynamic.Interface
	rest   rest.Interface
	end    func()                       // stops the operator that runs, if there is one
	ending sync.WaitGroup               // operators that have not returned yet
	known  map[string]map[string]string // the spec of each book in each version
	said   *warnings
}

func open(t *testing.T) *cluster {
	c := &cluster{t: t, config: controlplane.ForTest(t).Config(), known: map[string]map[string]string{}, said: &warnings{}, end: func() {}}
	config := rest.CopyConfig(c.config)
	config.WarningHandlerWithContext = c.said
	var err error
	c.client, err = dynamic.NewForConfig(config)
	check(t, err)
	typed, err := kubernetes.NewForConfig(config)
	check(t, err)
	c.rest = typed.CoreV1().RESTClient()
	_, err = typed.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "library-system"}}, metav1.CreateOptions{})
	check(t, err)
	t.Cleanup(func() {
		c.end()
		c.ending.Wait()
	})
	return c
}

// begin begins a part: what has been written before must read the same.
func (c *cluster) begin(part string) {
	c.t.Helper()
	c.same()
	c.t.Log(part)
}

// same checks that each book is what it was, in each version in which it is known.
func (c *cluster) same() {
	c.t.Helper()
	for version, books := range c.known {
		for name, want := range books {
			c.reads(name, version, want)
		}
	}
}

// roll rolls out a step: first its manifests, then its replica, then the one before stops. The
// test does not wait for that one to return, which takes five seconds, but no request reaches it.
func (c *cluster) roll(webhooks func(...registration.Option) (*registration.Webhooks, error), run func(context.Context, *rest.Config, net.Listener, ...registration.Option) error) {
	c.t.Helper()
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	check(c.t, err)
	listener := &severable{Listener: tcp}
	where := []registration.Option{registration.URL("https://" + listener.Addr().String()), registration.OwnNamespace("library-system")}
	hooks, err := webhooks(where...)
	check(c.t, err)
	manifests, err := hooks.Manifests(nil)
	check(c.t, err)
	for _, manifest := range strings.Split(string(manifests), "---\n")[1:] {
		c.apply([]byte(manifest))
	}

	ctx, cancel := context.WithCancel(context.Background())
	c.ending.Go(func() {
		if err := run(ctx, c.config, listener, where...); err != nil {
			c.t.Error(err)
		}
	})
	before := c.end
	c.end = func() {
		cancel()
		listener.sever()
	}
	c.eventually(func() error { return ready(listener.Addr().String()) })
	before()
	c.eventually(func() error { // the API server asks the new one
		for _, version := range []string{"v1alpha1", "v1"} {
			err := c.try(version)
			for name := range c.known[version] {
				if err == nil {
					_, err = c.books(version).Get(c.t.Context(), name, metav1.GetOptions{})
				}
			}
			if err != nil && !apierrors.IsNotFound(err) {
				return err
			}
		}
		return nil
	})
	c.same()
}

// try creates a book in a version, as a dry run. The API server asks all webhooks.
func (c *cluster) try(version string) error {
	c.t.Helper()
	out, err := c.books(version).Create(c.t.Context(), c.book(version, "try", `{title: Try}`), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err == nil && spec(out) != `{"shelf":"T","title":"Try"}` {
		err = errors.New("no default: " + spec(out))
	}
	return err
}

// severable is a listener that can be cut off from its clients while its server still runs.
type severable struct {
	net.Listener
	mu          sync.Mutex
	severed     bool
	connections []net.Conn
}

func (s *severable) Accept() (net.Conn, error) {
	for {
		conn, err := s.Listener.Accept()
		if err != nil || s.keep(conn) {
			return conn, err
		}
		_ = conn.Close()
	}
}

// keep notes a connection, and reports whether clients may still connect.
func (s *severable) keep(conn net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.connections = append(s.connections, conn)
	return !s.severed
}

// sever closes all connections, now and from now on.
func (s *severable) sever() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.severed = true
	for _, conn := range s.connections {
		_ = conn.Close()
	}
}

func ready(address string) error {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	answer, err := client.Get("https://" + address + "/readyz")
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if text, _ := io.ReadAll(answer.Body); answer.StatusCode != http.StatusOK {
		return fmt.Errorf("not ready: %s", text)
	}
	return nil
}

// apply applies a manifest as kubectl does, and waits until the API server serves what it says.
func (c *cluster) apply(manifest []byte) {
	c.t.Helper()
	var obj unstructured.Unstructured
	check(c.t, yaml.Unmarshal(manifest, &obj.Object))
	gvk := obj.GroupVersionKind()
	resource := gvk.GroupVersion().WithResource(strings.ToLower(gvk.Kind) + "s")
	_, err := c.client.Resource(resource).Apply(c.t.Context(), obj.GetName(), &obj, metav1.ApplyOptions{FieldManager: "kubectl"})
	check(c.t, err)
	versions, _, _ := unstructured.NestedSlice(obj.Object, "spec", "versions")
	for _, v := range versions {
		version := v.(map[string]any)
		c.eventually(func() error {
			// A discovery of the version does not need the conversion.
			_, err := c.rest.Get().AbsPath("/apis/library.example.com/" + version["name"].(string)).DoRaw(c.t.Context())
			if version["served"] == true {
				return err
			}
			if !apierrors.IsNotFound(err) {
				return fmt.Errorf("%s is served still: %v", version["name"], err)
			}
			return nil
		})
	}
}

func (c *cluster) books(version string) dynamic.ResourceInterface {
	return c.client.Resource(schema.GroupVersionResource{Group: "library.example.com", Version: version, Resource: "books"}).Namespace("default")
}

func (c *cluster) book(version, name, spec string) *unstructured.Unstructured {
	c.t.Helper()
	obj := &unstructured.Unstructured{}
	check(c.t, yaml.Unmarshal(fmt.Appendf(nil, "{apiVersion: library.example.com/%s, kind: Book, metadata: {name: %s}, spec: %s}", version, name, spec), &obj.Object))
	return obj
}

// write creates a book, as soon as that is possible.
func (c *cluster) write(version, name, spec string) {
	c.t.Helper()
	c.eventually(func() error {
		_, err := c.books(version).Create(c.t.Context(), c.book(version, name, spec), metav1.CreateOptions{FieldManager: "reader"})
		return err
	})
}

// applied applies a book, server-side.
func (c *cluster) applied(version, name, spec string) {
	c.t.Helper()
	_, err := c.books(version).Apply(c.t.Context(), name, c.book(version, name, spec), metav1.ApplyOptions{FieldManager: "librarian"})
	check(c.t, err)
}

// patch patches a book, which then must read as it says.
func (c *cluster) patch(version, name, patch, want string) error {
	c.t.Helper()
	if _, err := c.books(version).Patch(c.t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "reader"}); err != nil {
		return err
	}
	for v := range c.known {
		delete(c.known[v], name) // the test says what it is now
	}
	c.reads(name, version, want)
	return nil
}

// reads checks what a book is in a version, and has it so from now on.
func (c *cluster) reads(name, version, want string) {
	c.t.Helper()
	got, err := c.books(version).Get(c.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		c.t.Fatalf("%s in %s: %v", name, version, err)
	}
	if diff := cmp.Diff(want, spec(got)); diff != "" {
		c.t.Fatalf("%s in %s (-want +got):\n%s", name, version, diff)
	}
	if c.known[version] == nil {
		c.known[version] = map[string]string{}
	}
	c.known[version][name] = want
}

func spec(obj *unstructured.Unstructured) string {
	text, err := json.Marshal(obj.Object["spec"])
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// refuses checks that the rule holds.
func (c *cluster) refuses(version string) {
	c.t.Helper()
	_, err := c.books(version).Create(c.t.Context(), c.book(version, "typo", `{title: Dune, isbn: "9780441172710"}`), metav1.CreateOptions{})
	want := `admission webhook "validate.books.library.example.com" denied the request: Book.library.example.com "typo" is invalid: spec.isbn: Invalid value: "9780441172710": a digit is wrong`
	if diff := cmp.Diff(want, fmt.Sprint(err)); diff != "" {
		c.t.Errorf("(-want +got):\n%s", diff)
	}
}

func (c *cluster) notServed(version string) {
	c.t.Helper()
	if _, err := c.books(version).List(c.t.Context(), metav1.ListOptions{}); !apierrors.IsNotFound(err) {
		c.t.Errorf("%s: got %v, want NotFound", version, err)
	}
}

// cannotRemove checks why v1alpha1 cannot be removed yet.
func (c *cluster) cannotRemove(why ...string) {
	c.t.Helper()
	err := step7.RemoveV1alpha1(c.t.Context(), c.config)
	if err == nil {
		c.t.Fatal("v1alpha1 can be removed")
	}
	lines := strings.Split(strings.TrimPrefix(err.Error(), "migrate: CustomResourceDefinition books.library.example.com: "), "\n")
	for i, line := range lines {
		lines[i], _, _ = strings.Cut(line, ": ") // behind it is what to do
	}
	if diff := cmp.Diff(why, lines); diff != "" {
		c.t.Errorf("why v1alpha1 cannot be removed (-want +got):\n%s", diff)
	}
}

func (c *cluster) definition() *unstructured.Unstructured {
	c.t.Helper()
	obj, err := c.client.Resource(definitions).Get(c.t.Context(), "books.library.example.com", metav1.GetOptions{})
	check(c.t, err)
	return obj
}

func (c *cluster) storedVersions() []string {
	c.t.Helper()
	versions, _, err := unstructured.NestedStringSlice(c.definition().Object, "status", "storedVersions")
	check(c.t, err)
	return versions
}

func (c *cluster) versions() (names []string) {
	c.t.Helper()
	versions, _, err := unstructured.NestedSlice(c.definition().Object, "spec", "versions")
	check(c.t, err)
	for _, v := range versions {
		names = append(names, v.(map[string]any)["name"].(string))
	}
	return names
}

// warns checks that the API server warns of v1alpha1, and not of v1.
func (c *cluster) warns(want ...string) {
	c.t.Helper()
	for version, want := range map[string][]string{"v1alpha1": want, "v1": nil} {
		c.said.take()
		c.reads("dune", version, c.known[version]["dune"])
		if diff := cmp.Diff(want, c.said.take()); diff != "" {
			c.t.Errorf("warnings of %s (-want +got):\n%s", version, diff)
		}
	}
}

// warnings are what the API server has warned of.
type warnings struct {
	mu    sync.Mutex
	texts []string
}

func (w *warnings) HandleWarningHeaderWithContext(_ context.Context, _ int, _, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.texts = append(w.texts, text)
}

// take returns the warnings since it was called last.
func (w *warnings) take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	texts := w.texts
	w.texts = nil
	return texts
}

func (c *cluster) eventually(f func() error) {
	c.t.Helper()
	for begin := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		err := f()
		if err == nil {
			return
		}
		if time.Since(begin) > time.Minute {
			c.t.Fatal(err)
		}
	}
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
