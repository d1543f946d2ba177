package docs_test

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/klog/v2"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"

	"github.com/crdkit/crdkit/conversion"
	"github.com/crdkit/crdkit/test/controlplane"
	"github.com/crdkit/crdkit/test/expect"
	"github.com/crdkit/crdkit/test/mdtest"
)

var update = flag.Bool("update", false, "write what the commands print into the pages")

// stage plays the commands of a section on a real control plane, one block after the other,
// and compares what they print with what the page says.
type stage struct {
	testing.TB
	*cluster
	operator *operator
	page     *mdtest.Page
	section  mdtest.Section
	dir      string // with the files of the page
	next     int    // block to play
	base     *apiextensionsv1.CustomResourceDefinition
	updates  *updates
}

// replacement is what a command has printed instead of what the page says.
type replacement struct {
	block mdtest.Block
	text  string
}

// updates are what -update writes into a page.
type updates struct {
	mu           sync.Mutex
	replacements []replacement
}

func (u *updates) add(r replacement) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.replacements = append(u.replacements, r)
}

// files writes the files of a section into the directory of the stage.
func (s *stage) files(section mdtest.Section) {
	s.Helper()
	for _, b := range section.Blocks {
		if name, is := b.File(); is {
			expect.NoError(s, os.WriteFile(filepath.Join(s.dir, name), []byte(b.Text), 0o600))
		}
	}
}

// shows plays the next block.
func (s *stage) shows() {
	s.Helper()
	blocks := s.section.BlocksOf("console")
	if s.next >= len(blocks) {
		s.Fatalf("section %q has no more than %d blocks", s.section.Title, len(blocks))
	}
	b := blocks[s.next]
	s.next++
	var text strings.Builder
	for _, c := range b.Commands() {
		text.WriteString("$ " + c.Line + "\n")
		if *update {
			time.Sleep(2 * time.Second) // until everything has taken effect
			text.WriteString(normalize(s.command(c.Line)))
			continue
		}
		if got := s.play(c); got != c.Output {
			s.Errorf("%s:%d: $ %s (-page +real):\n%s", s.page.Path, b.Line, c.Line, cmp.Diff(lines(c.Output), lines(got)))
		}
	}
	if *update {
		s.updates.add(replacement{b, text.String()})
	}
}

// writes are the commands that change something.
var writes = regexp.MustCompile(`^kubectl (apply|create|run|replace|delete|patch|annotate|label)\b`)

// play runs a command until it prints what the page says, for what was done before takes a
// moment to get to the API server. Writes are tried as a dry run first.
func (s *stage) play(c mdtest.Command) (got string) {
	s.Helper()
	try := c.Line
	if writes.MatchString(c.Line) && !strings.Contains(c.Line, "--dry-run") {
		try += " --dry-run=server"
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(200 * time.Millisecond) {
		got = normalize(s.command(try))
		if try != c.Line { // a dry run never changes the resource version, by which kubectl knows
			got = strings.ReplaceAll(got, " (no change)", "")
		}
		if got == c.Output || time.Now().After(end) {
			break
		}
	}
	if try == c.Line || got != c.Output {
		return got
	}
	return normalize(s.command(c.Line))
}

// quotes runs a command until it prints a text that the section quotes.
func (s *stage) quotes(line, text string) {
	s.Helper()
	if !strings.Contains(s.section.Text, "`"+text+"`") {
		s.Errorf("the section does not quote %s", text)
	}
	s.prints(line, text)
}

// prints runs a command until it prints a text.
func (s *stage) prints(line, text string) {
	s.Helper()
	expect.Eventually(s, func() error {
		if got := s.command(line); !strings.Contains(got, text) {
			return fmt.Errorf("$ %s: got %q, want %s", line, got, text)
		}
		return nil
	})
}

// command runs a command of the page.
func (s *stage) command(line string) string {
	s.Helper()
	return s.run(s, s.dir, line)
}

// works waits until a fix has worked: a client can read the backup in the other version.
func (s *stage) works() {
	s.Helper()
	c := mdtest.Command{Line: "kubectl get backup.v1beta1.example.com nightly", Output: "NAME      TARGET    KEEP\nnightly   shop/db   7\n"}
	if got := s.play(c); got != c.Output {
		s.Errorf("after the fix, the backup cannot be read:\n%s", got)
	}
}

// conversionFailed matches what the messages about a webhook that cannot be called have in common.
const conversionFailed = `(?:conversion webhook for example\.com/v1, Kind=Backup (?:failed: Post "https://\S+": )?)?`

// Texts that differ from run to run, and those that the pages have instead.
var differs = []struct {
	what *regexp.Regexp
	by   string
}{
	{regexp.MustCompile(` \(server dry run\)`), ""},
	{regexp.MustCompile(` \(dry run\)`), ""},
	{regexp.MustCompile(` server-side applied \(.*\)`), " serverside-applied"},
	{regexp.MustCompile(`dial tcp \S+:[0-9]+: connect`), "dial tcp 10.0.0.12:8443: connect"},
	{regexp.MustCompile(`Error from server \(InternalError\): Internal error occurred: StorageError: corrupt object, Code: 7, Key: /example.com/backups/default/nightly, ` +
		`ResourceVersion: 0, AdditionalErrorMsg: object not decodable revision=[0-9]+: ` + conversionFailed), "… "},
	{regexp.MustCompile(`StorageError: corrupt object, Code: 7, Key: /registry/example.com/backups/\w+/nightly, ` +
		`ResourceVersion: 0, AdditionalErrorMsg: object not decodable revision=[0-9]+: ` + conversionFailed), "… "},
	{regexp.MustCompile(`(?s)\nPlease review the fields above.*#conflicts\n`), "\n…\n"},
	{regexp.MustCompile(`object not decodable revision=[0-9]+`), "object not decodable revision=1234"},
	{regexp.MustCompile(`current time 20[0-9-]+T[0-9:]+Z is after 20[0-9-]+T[0-9:]+Z`), "current time 2030-02-01T08:00:00Z is after 2030-01-31T08:00:00Z"},
	{regexp.MustCompile(`/\S+/(LIVE|MERGED)-[0-9]+/`), "/tmp/$1/"},
	{regexp.MustCompile(`(?m)^((?:---|\+\+\+) /tmp/\S+)\s.*$`), "$1"},
	// The API server's client has three timers for a webhook's time: its request's, its own, and one
	// that cancels as before there were contexts. The first one counts.
	{regexp.MustCompile(`(net/http: request canceled( while waiting for connection)?|context deadline exceeded)( \(Client.Timeout exceeded while awaiting headers\))?`),
		"context deadline exceeded"},
	{regexp.MustCompile(`[ \t]+(\n|$)`), "$1"},
	{regexp.MustCompile(`([^\n])\z`), "$1\n"},
}

func normalize(text string) string {
	for _, d := range differs {
		text = d.what.ReplaceAllString(text, d.by)
	}
	return text
}

var backups = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "backups"}

// reset brings back an operator that works, and a definition without objects.
func (s *stage) reset() {
	s.Helper()
	s.operator.certify(s, time.Hour, operatorHost)
	s.operator.endpoints(s, s.cluster, s.operator.port())
	s.operator.serve("/convert", converter(s))
	webhooks := s.AdmissionregistrationV1()
	expect.NoError(s, webhooks.MutatingWebhookConfigurations().DeleteCollection(s.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}))
	expect.NoError(s, webhooks.ValidatingWebhookConfigurations().DeleteCollection(s.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}))
	all := s.definitions.ApiextensionsV1().CustomResourceDefinitions()
	expect.Eventually(s, func() error {
		crd, err := all.Get(s.Context(), s.base.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		crd.Spec = *s.base.Spec.DeepCopy()
		_, err = all.Update(s.Context(), crd, metav1.UpdateOptions{})
		return err
	})
	client := dynamic.NewForConfigOrDie(s.Config())
	expect.Eventually(s, func() error {
		list, err := client.Resource(backups).List(s.Context(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, b := range list.Items {
			if err := client.Resource(backups).Namespace(b.GetNamespace()).Delete(s.Context(), b.GetName(), metav1.DeleteOptions{}); err != nil {
				return err
			}
		}
		return nil
	})
	s.patch(s, s.base.Name, map[string]any{"status": map[string]any{"storedVersions": []string{"v1"}}}, "status")
}

// unconverted is the name of a backup that the converter refuses to convert.
const unconverted = "unconverted"

// registry converts the backups of the pages.
func registry(t testing.TB) *conversion.Registry {
	t.Helper()
	reg := conversion.NewRegistry(runtime.NewScheme())
	kind := schema.GroupVersionKind{Group: "example.com", Version: "v1beta1", Kind: "Backup"}
	expect.NoError(t, conversion.AddFields(reg, kind, "v1",
		conversion.Split("spec.target", "/", conversion.Part{Path: "spec.bucket"}, conversion.Part{Path: "spec.path"})))
	return reg
}

// converter serves the conversion of the backups.
func converter(t testing.TB) http.Handler {
	t.Helper()
	h := conversion.NewHandler(registry(t))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || bytes.Contains(body, []byte(`"name":"`+unconverted+`"`)) {
			http.Error(w, unconverted+" is not converted", http.StatusInternalServerError)
			return
		}
		r = r.WithContext(klog.NewContext(r.Context(), logr.Discard())) // the failures are part of the pages
		r.Body = io.NopCloser(bytes.NewReader(body))
		h.ServeHTTP(w, r)
	})
}

// webhookConversion has a definition converted by the operator.
func (o *operator) webhookConversion() map[string]any {
	return map[string]any{"strategy": "Webhook", "webhook": map[string]any{
		"conversionReviewVersions": []string{"v1"},
		"clientConfig": map[string]any{
			"service":  map[string]any{"namespace": operatorNamespace, "name": operatorService, "path": "/convert"},
			"caBundle": o.ca.PEM(),
		},
	}}
}

// newStages starts a control plane with the operator of the pages, and returns a function that
// sets the stage for a section.
func newStages(t *testing.T, p *mdtest.Page, u *updates) func(t *testing.T, section mdtest.Section) *stage {
	t.Helper()
	c := newCluster(t, controlplane.ForTest(t, controlplane.APIServerArgs("--enable-aggregator-routing=true")))
	c.SkipIfOlder(t, "the page shows its words")
	o := newOperator(t, c)
	text, err := os.ReadFile("testdata/backups.yaml")
	expect.NoError(t, err)
	o.serve("/convert", converter(t))
	crd := c.define(t, string(text))
	c.patch(t, crd.Name, map[string]any{"spec": map[string]any{"conversion": o.webhookConversion()}})
	crd, err = c.definitions.ApiextensionsV1().CustomResourceDefinitions().Get(t.Context(), crd.Name, metav1.GetOptions{})
	expect.NoError(t, err)
	return func(t *testing.T, section mdtest.Section) *stage {
		s := &stage{TB: t, cluster: c, operator: o, page: p, section: section, dir: t.TempDir(), base: crd, updates: u}
		s.reset()
		for _, every := range p.Sections {
			if every.Title == "The example" {
				s.files(every)
			}
		}
		s.files(section)
		return s
	}
}

// rewrite puts what was printed into a page.
func rewrite(t *testing.T, p *mdtest.Page, printed []replacement) {
	t.Helper()
	if len(printed) == 0 {
		return
	}
	all := lines(p.Text)
	// From the end, so that the lines before stay where they are.
	slices.SortFunc(printed, func(a, b replacement) int { return b.block.Line - a.block.Line })
	for _, r := range printed {
		b := r.block
		end := b.Line + strings.Count(b.Text, "\n")
		all = append(all[:b.Line:b.Line], append(lines(r.text), all[end:]...)...)
	}
	expect.NoError(t, os.WriteFile(p.Path, []byte(strings.Join(all, "\n")+"\n"), 0o644))
}

// apply creates an object of the pages' definition by its manifest, as the administrator.
func (s *stage) apply(file string) {
	s.Helper()
	if out := s.run(s, s.dir, "kubectl apply -f "+file); !strings.Contains(out, "created") && !strings.Contains(out, "configured") {
		s.Fatal(out)
	}
}

// tryCreate creates a backup in a version, as a dry run.
func (s *stage) tryCreate(version, name string, spec map[string]any) error {
	backup := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": backups.Group + "/" + version, "kind": "Backup",
		"metadata": map[string]any{"name": name}, "spec": spec,
	}}
	client := dynamic.NewForConfigOrDie(s.Config()).Resource(backups.GroupResource().WithVersion(version)).Namespace("default")
	_, err := client.Create(s.Context(), backup, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	return err
}

// change patches the definition of the pages.
func (s *stage) change(patch string) {
	s.Helper()
	_, err := s.definitions.ApiextensionsV1().CustomResourceDefinitions().Patch(s.Context(), s.base.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	expect.NoError(s, err)
}
