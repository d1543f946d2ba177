package corpus_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/go-logr/logr"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kubeschema "k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"
	"knative.dev/pkg/apis"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	peer "sigs.k8s.io/controller-runtime/pkg/conversion"
	"sigs.k8s.io/controller-runtime/pkg/log"
	webhook "sigs.k8s.io/controller-runtime/pkg/webhook/conversion"

	"github.com/crdkit/crdkit/conversion"
	"github.com/crdkit/crdkit/interop/controllerruntime"
	"github.com/crdkit/crdkit/roundtrip"
	"github.com/crdkit/crdkit/schema"
	"github.com/crdkit/crdkit/test/expect"
	"github.com/crdkit/crdkit/test/mdtest"
)

// project is a public project whose kinds have conversions.
type project struct {
	*conversion.Registry
	t           *testing.T
	converters  webhook.Registry    // those of the webhook
	knative     bool                // the webhook is that of knative.dev/pkg
	definitions []string            // the files of today's definitions
	schemaless  []string            // kinds whose schemas accept nearly everything: the laws take objects of the Go types
	releases    []string            // the oldest first
	history     map[string][]string // the files of each release
	options     []roundtrip.Option
	normal      []func(v reflect.Value) // what the project loses on purpose, as its code or its tests say: see walk
	known       []known
	again       []narrowed
}

// known is a failure of a law that is known.
type known struct {
	title string
	// report is a regular expression that matches each report of the failure. It is empty if the
	// laws do not report the failure.
	report string
	// reason is why the failure is not a finding. It is empty for a finding.
	reason string
	// A finding also has:
	effect effect
	client string // what a client notices
	cause  string // in the code of the project
	missed string // why the tests of the project pass, if there are any

	release string  // which release stores the object: an earlier one, or [today]
	object  string  // YAML
	meet    meeting // nil if there is no object
}

// effect is the column of docs/corpus.md that counts a finding.
type effect int

const (
	loses         effect = iota + 1 // a write or an upgrade loses or changes a value
	losesByUpdate                   // an update in another version does
	blocksReads                     // one version can read neither the object nor a list with it
	blocksWrites                    // an update or a copy is refused without a fault of the client
)

// add adds two conversions of a project.
func add[S, H runtime.Object](p *project, converter func(*runtime.Scheme) (webhook.Converter, error), toHub func(ctx context.Context, in S, out H) error, fromHub func(ctx context.Context, in H, out S) error) {
	p.must(conversion.AddSpoke(p.Registry, toHub, fromHub))
	normalize[S](p)
	normalize[H](p)
	kind, err := apiutil.GVKForObject(reflect.New(reflect.TypeFor[H]().Elem()).Interface().(H), p.Scheme())
	p.must(err)
	if _, registered := p.converters.GetConverter(kind.GroupKind()); !registered {
		c, err := converter(p.Scheme())
		p.must(err)
		p.must(p.converters.RegisterConverter(kind.GroupKind(), c))
	}
}

// addConvertible adds the conversions that a type has as its methods. The webhook calls them too.
func addConvertible[S peer.Convertible, H peer.Hub](p *project) {
	p.must(controllerruntime.AddSpoke[S, H](p.Registry))
	normalize[S](p)
	normalize[H](p)
}

// convertible is a type with the methods that the conversion webhook of knative.dev/pkg calls.
type convertible interface {
	runtime.Object
	apis.Convertible
	apis.Defaultable
}

// addKnative adds the conversions that the methods of a hub do, as convert in
// webhook/resourcesemantics/conversion of knative.dev/pkg calls them: not those of the spoke, and the
// result gets its defaults.
func addKnative[S, H convertible](p *project) {
	p.must(conversion.AddSpoke(p.Registry, func(ctx context.Context, in S, out H) error {
		defer out.SetDefaults(ctx)
		return out.ConvertFrom(ctx, in)
	}, func(ctx context.Context, in H, out S) error {
		defer out.SetDefaults(ctx)
		return in.ConvertTo(ctx, out)
	}))
	normalize[S](p)
	normalize[H](p)
	p.knative = true
}

func (p *project) must(err error) {
	p.t.Helper()
	expect.NoError(p.t, err)
}

// normalize declares what the project's versions do not distinguish.
func normalize[T runtime.Object](p *project) {
	p.options = append(p.options, roundtrip.Normalize("the project loses this on purpose: see p.normal in the file of the project", func(object T) {
		if d, ok := any(object).(apis.Defaultable); ok {
			d.SetDefaults(context.Background()) // the webhook of knative.dev/pkg sets them
		}
		walk(reflect.ValueOf(object).Elem(), p.normal)
	}))
}

// walk calls functions for each part of an object, the inner ones first. It sets empty lists and
// maps, and pointers to zero values, to nil.
func walk(v reflect.Value, visit []func(v reflect.Value)) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			walk(v.Elem(), visit)
		}
		if !v.IsNil() && v.Elem().IsZero() {
			v.SetZero()
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				walk(v.Field(i), visit)
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			walk(v.Index(i), visit)
		}
	}
	for _, f := range visit {
		f(v)
	}
	if k := v.Kind(); (k == reflect.Slice || k == reflect.Map) && v.Len() == 0 {
		v.SetZero()
	}
}

// visit returns a function that calls f for each part of type T.
func visit[T any](f func(part *T)) func(v reflect.Value) {
	return func(v reflect.Value) {
		if part, ok := v.Addr().Interface().(*T); ok {
			f(part)
		}
	}
}

// newProject returns a project without conversions.
func newProject(t *testing.T, addToScheme ...func(*runtime.Scheme) error) *project {
	t.Helper()
	s := runtime.NewScheme()
	p := &project{Registry: conversion.NewRegistry(s), t: t, converters: webhook.NewRegistry(), history: map[string][]string{}}
	for _, add := range addToScheme {
		p.must(add(s))
	}
	return p
}

// convert returns the webhook of the project, as a manager of controller-runtime serves it. That of
// knative.dev/pkg does not compile with the other projects: crdkit's serves its conversions.
func (p *project) convert() http.Handler {
	if p.knative {
		return conversion.NewHandler(p.Registry)
	}
	return webhook.NewWebhookHandler(p.Scheme(), p.converters)
}

// needs reports whether a known failure is of a kind.
func (p *project) needs(t *testing.T, kind kubeschema.GroupKind) bool {
	return slices.ContainsFunc(p.known, func(k known) bool {
		return k.meet != nil && parse(t, k.object).GroupVersionKind().GroupKind() == kind
	})
}

// published returns files of a module, which the go command downloads.
func published(t *testing.T, module string, patterns ...string) (files []string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", module)
	cmd.Dir = t.TempDir() // outside of this module
	out, err := cmd.Output()
	var m struct{ Dir string }
	if err := errors.Join(err, json.Unmarshal(out, &m)); err != nil {
		t.Fatalf("%s: %v", module, err)
	}
	for _, pattern := range patterns {
		some, err := filepath.Glob(filepath.Join(m.Dir, pattern))
		if err != nil || len(some) == 0 {
			t.Fatalf("%s: %s matches no file: %v", module, pattern, err)
		}
		files = append(files, some...)
	}
	return files
}

// definition reads a file that published has returned.
func definition(t *testing.T, file string) *schema.Definition {
	t.Helper()
	text, err := os.ReadFile(file)
	expect.NoError(t, err)
	all, err := schema.ParseAll(text)
	if err != nil || len(all) != 1 {
		t.Fatalf("%s has %d definitions, want 1: %v", file, len(all), err)
	}
	return all[0]
}

// child is the variable that names the project, and the run of the laws, in the processes that [run] starts.
const child = "CRDKIT_CORPUS"

// TestLaws is what [run] runs in a process of its own, because it fails.
func TestLaws(t *testing.T) {
	name, round, _ := strings.Cut(os.Getenv(child), ":")
	if name == "" {
		t.Skip("TestProjects runs it")
	}
	p := projects[name](t)
	files := func(all []string) []string { return all }
	count := objects
	if i, _ := strconv.Atoi(round); i > 0 {
		files = func(all []string) []string { return p.again[i-1].narrow(t, all) }
		count = cmp.Or(p.again[i-1].objects, objects)
	}
	options := append(p.options, roundtrip.Seed(1), roundtrip.Iterations(count))
	for _, release := range p.releases {
		for _, file := range files(p.history[release]) {
			kind := definition(t, file).GroupKind()
			converts := func(k conversion.Kind) bool {
				return k.GroupKind == kind && !slices.Contains(p.schemaless, kind.Kind)
			}
			if slices.ContainsFunc(p.Kinds(), converts) { // others are for TestServer_ConfirmsFailures
				options = append(options, roundtrip.History(file))
			}
		}
	}
	for _, file := range files(p.definitions) {
		if slices.Contains(p.schemaless, definition(t, file).GroupKind().Kind) {
			continue
		}
		options = append(options, roundtrip.CRD(p.converted(definition(t, file))))
	}
	roundtrip.Test(t, p.Registry, options...)
}

// converted returns a definition without the versions that the corpus does not convert.
func (p *project) converted(d *schema.Definition) []byte {
	crd := d.CustomResourceDefinition()
	for _, kind := range p.Kinds() {
		if kind.GroupKind == d.GroupKind() {
			crd.Spec.Versions = slices.DeleteFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool {
				return !slices.Contains(kind.Versions, v.Name)
			})
		}
	}
	text, err := json.Marshal(crd)
	p.must(err)
	return text
}

// objects is how many objects are made for each law on each path.
const objects = 100

var projects = map[string]func(t *testing.T) *project{
	"cluster-api":                   clusterAPI,
	"cluster-api-provider-aws":      clusterAPIAWS,
	"cluster-api-provider-ibmcloud": clusterAPIIBMCloud,
	"crossplane":                    crossplane,
	"knative-eventing":              eventing,
	"kueue":                         kueue,
	"opentelemetry-operator":        openTelemetryOperator,
	"prometheus-operator":           prometheusOperator,
	"tekton":                        tekton,
	"vm-operator":                   vmOperator,
}

// total counts what the tests do.
var total struct{ projects, kinds, objects, failures, confirmed atomic.Int64 }

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard()) // the webhooks log each conversion that fails
	klog.SetLogger(logr.Discard())
	utilruntime.PanicHandlers = nil // and each that panics
	code := m.Run()
	if total.projects.Load() > 0 {
		fmt.Printf("corpus: %d projects, %d kinds, %d objects, %d findings, %d confirmed by a kube-apiserver\n",
			total.projects.Load(), total.kinds.Load(), total.objects.Load(), total.failures.Load(), total.confirmed.Load())
	}
	os.Exit(code)
}

// Each failure of a law is known, and each known one is still found.
func TestProjects(t *testing.T) {
	for name, load := range projects {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := load(t)
			found := make([]int, len(p.known))
			var reports []string
			made := 0
			for round := range len(p.again) + 1 {
				more, n := run(t, p, name, round)
				reports, made = append(reports, more...), made+n
			}
			for _, report := range reports {
				i := slices.IndexFunc(p.known, func(k known) bool { return k.report != "" && regexp.MustCompile(k.report).MatchString(report) })
				if i < 0 {
					t.Errorf("a failure is not known:\n%s", report)
					continue
				}
				found[i]++
			}
			for i, k := range p.known {
				if found[i] == 0 && k.report != "" {
					t.Errorf("%q is known, and no law reports it", k.report)
				}
			}
			total.projects.Add(1)
			total.kinds.Add(int64(len(p.Kinds())))
			total.objects.Add(int64(made))
			for _, k := range p.known {
				if k.reason == "" {
					total.failures.Add(1)
				}
			}
		})
	}
}

// lawBroken is how a report of package roundtrip begins, and lawBrokenToo is the line about a law that is
// broken by something that has a report.
var (
	lawBroken    = regexp.MustCompile(`\S+ \S+: the \S+ law does not hold`)
	lawBrokenToo = regexp.MustCompile(`The \S+ law does not hold either: `)
)

// The table of the page counts the findings, and its objects are those of findings.
func TestPage_CountsFindings(t *testing.T) {
	page := mdtest.Read(t, "../docs/corpus.md")
	objects := map[string]bool{}
	var all [blocksWrites + 1]int
	kinds, reported := 0, 0
	for name, load := range projects {
		p := load(t)
		var counts [blocksWrites + 1]int
		for _, k := range p.known {
			if k.reason != "" {
				continue
			}
			if k.effect == 0 || k.client == "" || k.cause == "" || k.meet == nil {
				t.Errorf("%s: %s lacks its effect, what a client notices, its cause, or how it is confirmed", name, k.title)
			}
			counts[0]++
			counts[k.effect]++
			objects[strings.TrimSpace(k.object)] = true
			if k.report != "" {
				reported++
			}
		}
		kinds += len(p.Kinds())
		for i, n := range counts {
			all[i] += n
		}
		row := fmt.Sprintf(" | %s | %d | %d | %d | %d | %d | [%d](", strings.Join(p.releases, ", "), len(p.Kinds()), counts[loses], counts[losesByUpdate], counts[blocksReads], counts[blocksWrites], counts[0])
		if !strings.Contains(page.Text, row) {
			t.Errorf("%s: the page has no row with %q", name, row)
		}
	}
	for _, text := range []string{
		fmt.Sprintf("| together | | %d | %d | %d | %d | %d | %d |", kinds, all[loses], all[losesByUpdate], all[blocksReads], all[blocksWrites], all[0]),
		fmt.Sprintf("a law reports %d ", reported),
	} {
		if !strings.Contains(page.Text, text) {
			t.Errorf("the page does not say %q", text)
		}
	}
	for _, b := range page.Blocks("yaml") {
		if !objects[strings.TrimSpace(b.Text)] {
			t.Errorf("%s:%d: no finding has this object", page.Path, b.Line)
		}
	}
}

// run returns the reports of all laws of a project, or those of a narrowed run if round is more than 0,
// and how many objects were made.
func run(t *testing.T, p *project, name string, round int) (reports []string, made int) {
	t.Helper()
	laws, count := "^TestLaws$", objects
	if round > 0 {
		n := p.again[round-1]
		count = cmp.Or(n.objects, objects)
		laws += fmt.Sprintf("/^%s$/^%s$/^%s$", n.kind, n.path, n.law)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.v", "-test.run="+laws)
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s:%d", child, name, round))
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	failed := 0
	for _, m := range regexp.MustCompile(`(?m)^ +--- (PASS|FAIL): (\S+)/([^/ ]+) `).FindAllStringSubmatch(string(out), -1) {
		switch leaf := strings.Count(m[2], "/") > 1; {
		case leaf && m[1] == "FAIL":
			failed++
		case leaf && m[3] != string(roundtrip.Drift):
			made += count
		}
	}
	for _, part := range regexp.MustCompile(`(?m)^( *--- |=== )`).Split(string(out), -1) {
		at := lawBroken.FindStringIndex(part)
		if at == nil {
			continue
		}
		report := part[at[0]:]
		if n := regexp.MustCompile(`made from object (\d+) of seed`).FindStringSubmatch(report); n != nil {
			i, _ := strconv.Atoi(n[1])
			made += i
		}
		reports = append(reports, report)
	}
	again := len(lawBrokenToo.FindAll(out, -1))
	made += again * count
	if made == 0 || len(reports)+again != failed {
		t.Fatalf("%d objects were made, and %d of %d failures have a report or a line:\n%s", made, len(reports)+again, failed, out)
	}
	return reports, made
}
