package migrate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/crdkit/crdkit/test/expect"
	"github.com/crdkit/crdkit/test/logcheck"
)

// script is an API server that answers the lists of one resource as it is told, and
// remembers what it was asked.
type script struct {
	mu      sync.Mutex
	answers []any // *metav1.PartialObjectMetadataList or metav1.Status
	asked   []string
}

func (s *script) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := r.URL.Query()
	s.asked = append(s.asked, fmt.Sprintf("%s limit=%s continue=%s", r.URL.Path, q.Get("limit"), q.Get("continue")))
	answer := s.answers[0]
	s.answers = s.answers[1:]
	reply(w, answer)
}

func reply(w http.ResponseWriter, answer any) {
	w.Header().Set("Content-Type", "application/json")
	if status, ok := answer.(metav1.Status); ok {
		status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
		w.WriteHeader(int(status.Code))
		answer = status
	}
	_ = json.NewEncoder(w).Encode(answer)
}

// inMemory is a transport that asks a handler, so that time passes at once in a bubble.
type inMemory struct{ handler http.Handler }

func (m inMemory) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	m.handler.ServeHTTP(w, r)
	return w.Result(), nil
}

// subtest runs a subtest in a bubble.
func subtest(t *testing.T, name string, f func(*testing.T)) {
	t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
}

func page(token string, names ...string) *metav1.PartialObjectMetadataList {
	list := &metav1.PartialObjectMetadataList{
		TypeMeta: metav1.TypeMeta{Kind: "PartialObjectMetadataList", APIVersion: "meta.k8s.io/v1"},
		ListMeta: metav1.ListMeta{Continue: token, ResourceVersion: "7"},
	}
	for _, name := range names {
		list.Items = append(list.Items, metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	return list
}

// migratorOf returns the migrator of the boxes.
func migratorOf(t *testing.T, config *rest.Config, opts ...Option) *migrator {
	t.Helper()
	m, err := newMigrator(config, "boxes.example.com", opts)
	expect.NoError(t, err)
	return m
}

// boxes returns the definition of the boxes, of which v1beta1 is not served.
func boxes() *definition {
	return newDefinition(&apiextensionsv1.CustomResourceDefinition{Spec: apiextensionsv1.CustomResourceDefinitionSpec{
		Group:    "example.com",
		Names:    apiextensionsv1.CustomResourceDefinitionNames{Plural: "boxes"},
		Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1alpha1", Served: true}, {Name: "v1beta1"}, {Name: "v1", Served: true, Storage: true}},
	}})
}

// A list goes on, whatever the API server says.
func TestList_GoesOnAfterErrors(t *testing.T) {
	gone := apierrors.NewResourceExpired("compacted").ErrStatus
	goneAt := gone
	goneAt.Continue = "at-b"
	away := apierrors.NewServiceUnavailable("later").ErrStatus
	broken := apierrors.NewInternalError(errors.New("a is broken")).ErrStatus
	for name, c := range map[string]struct {
		answers    []any
		asked, got []string
		err        string
	}{
		"the snapshot has gone, and there is a way on": {
			answers: []any{page("to-b", "a"), goneAt, page("", "b")},
			asked:   []string{"v1 limit=500 continue=", "v1 limit=500 continue=to-b", "v1 limit=500 continue=at-b"},
			got:     []string{"a v1", "b v1"},
		},
		"the snapshot has gone, and it must begin again": {
			answers: []any{page("to-b", "a"), gone, page("", "a", "b")},
			asked:   []string{"v1 limit=500 continue=", "v1 limit=500 continue=to-b", "v1 limit=500 continue="},
			got:     []string{"a v1", "a v1", "b v1"},
		},
		"it is away for a moment": {
			answers: []any{away, page("", "a")},
			asked:   []string{"v1 limit=500 continue=", "v1 limit=500 continue="},
			got:     []string{"a v1"},
		},
		"a page is too much": {
			answers: slices.Concat([]any{page("to-b", "a")}, always[any](broken, 2), []any{page("to-c", "b"), page("", "c")}),
			asked: slices.Concat([]string{"v1 limit=500 continue="}, always("v1 limit=500 continue=to-b", 2),
				[]string{"v1 limit=62 continue=to-b", "v1 limit=62 continue=to-c"}),
			got: []string{"a v1", "b v1", "c v1"},
		},
		"pages fail for a moment, and are large again after what failed": {
			answers: slices.Concat([]any{page("to-b", "a")}, always[any](broken, 7), []any{page("to-c", "b"), page("to-d", "c"), page("to-e", "d"),
				page("to-f", "e"), page("to-g", "f"), page("to-h", "g"), page("to-i", "h"), page("", "i", "j")}),
			asked: slices.Concat([]string{"v1 limit=500 continue="}, shrinking("v1", "to-b")[:8], []string{"v1 limit=1 continue=to-c", "v1 limit=1 continue=to-d",
				"v1 limit=1 continue=to-e", "v1 limit=1 continue=to-f", "v1 limit=1 continue=to-g", "v1 limit=1 continue=to-h", "v1 limit=500 continue=to-i"}),
			got: []string{"a v1", "b v1", "c v1", "d v1", "e v1", "f v1", "g v1", "h v1", "i v1", "j v1"},
		},
		"an object cannot be converted": {
			answers: slices.Concat([]any{page("to-b", "a")}, always[any](broken, 13), []any{page("to-c", "b"), page("", "c")}),
			asked: slices.Concat([]string{"v1 limit=500 continue="}, shrinking("v1", "to-b"),
				[]string{"v1alpha1 limit=500 continue=to-b", "v1alpha1 limit=500 continue=to-c"}),
			got: []string{"a v1", "b v1alpha1", "c v1alpha1"},
		},
		"one cannot be converted to the one version, and the next to the other": {
			answers: slices.Concat(always[any](broken, 13), always[any](broken, 6), []any{page("to-b", "a")}, always[any](broken, 7), []any{page("to-c", "b"), page("", "c")}),
			asked: slices.Concat(shrinking("v1", ""), shrinking("v1alpha1", "")[:7], always("v1alpha1 limit=1 continue=to-b", 7),
				[]string{"v1 limit=500 continue=to-b", "v1 limit=500 continue=to-c"}),
			got: []string{"a v1alpha1", "b v1", "c v1"},
		},
		"nothing can be converted": {
			answers: slices.Concat([]any{page("to-b", "a")}, always[any](broken, 26)),
			asked:   slices.Concat([]string{"v1 limit=500 continue="}, shrinking("v1", "to-b"), shrinking("v1alpha1", "to-b")),
			got:     []string{"a v1"},
			err:     "the object after a cannot be read in any served version: fix the conversion, or serve the version in which it is stored: in v1: Internal error occurred: a is broken",
		},
		"it is forbidden": {
			answers: []any{apierrors.NewForbidden(schema.GroupResource{Resource: "boxes"}, "", errors.New("no")).ErrStatus},
			asked:   []string{"v1 limit=500 continue="},
			err:     "listing the objects in v1",
		},
	} {
		subtest(t, name, func(t *testing.T) {
			s := &script{answers: c.answers}
			m := migratorOf(t, &rest.Config{Transport: inMemory{s}})
			d := boxes()
			var got []string
			err := m.each(t.Context(), d, func(int64, *int64) {}, func(l listed) error {
				got = append(got, l.Name+" "+l.version)
				return nil
			})
			if c.err == "" && err != nil || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
				t.Errorf("got %v, want %q", err, c.err)
			}
			for i, path := range s.asked {
				s.asked[i] = strings.Replace(strings.TrimPrefix(path, "/apis/example.com/"), "/boxes", "", 1)
			}
			if diff := cmp.Diff(c.asked, s.asked); diff != "" {
				t.Errorf("asked (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.got, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// shrinking is what is asked for when each page fails.
func shrinking(version, token string) []string {
	ask := func(limit, n int) []string {
		return always(fmt.Sprintf("%s limit=%d continue=%s", version, limit, token), n)
	}
	return slices.Concat(ask(500, 2), ask(62, 2), ask(7, 2), ask(1, 7))
}

// always returns the same n times.
func always[T any](each T, n int) []T { return slices.Repeat([]T{each}, n) }

// The migration stops when everything fails.
func TestTally_EverythingFails(t *testing.T) {
	counts := &tally{report: &Report{}, observe: func(Progress) {}}
	broken := Problem{Name: "a", Err: apierrors.NewInternalError(errors.New("no"))}
	refused := Problem{Name: "b", Err: apierrors.NewForbidden(schema.GroupResource{}, "b", errors.New("no"))}
	for range maxInARow - 1 {
		expect.NoError(t, counts.count(failed, broken))
	}
	if err := errors.Join(counts.count(failed, refused), counts.count(failed, broken)); err != nil {
		t.Fatal(err) // another program has answered in between
	}
	for range maxInARow - 2 {
		expect.NoError(t, counts.count(failed, broken))
	}
	if err := counts.count(failed, broken); !errors.Is(err, errTooMany) {
		t.Errorf("got %v", err)
	}
	if n := len(counts.report.Problems); n != maxProblems {
		t.Errorf("%d problems are kept", n)
	}
	if counts.report.Failed != 2*maxInARow {
		t.Errorf("%d have failed", counts.report.Failed)
	}
}

// An object has gone only if the API server says so. A proxy, or an API server that lags behind,
// says of each path that it is not there.
func TestRewrite_ObjectGone(t *testing.T) {
	object := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a", ResourceVersion: "3"}}
	status := apierrors.NewNotFound(schema.GroupResource{Group: "example.com", Resource: "boxes"}, "a").ErrStatus
	for name, c := range map[string]struct {
		version string
		answer  http.HandlerFunc
		want    outcome
	}{
		"a path, when it is rewritten":  {"v1", http.NotFound, failed},
		"a path, when it is read again": {"v1alpha1", http.NotFound, failed},
		"an object":                     {"v1", func(w http.ResponseWriter, _ *http.Request) { reply(w, status) }, gone},
	} {
		subtest(t, name, func(t *testing.T) {
			m := migratorOf(t, &rest.Config{Transport: inMemory{c.answer}})
			d := boxes()
			got, err := m.object(t.Context(), d, "7", listed{object, c.version})
			if got != c.want {
				t.Errorf("the outcome is %d, want %d: %v", got, c.want, err)
			}
		})
	}
}

// A rate is kept without a word in the log.
func TestRate_KeptWithoutLog(t *testing.T) {
	server := httptest.NewServer(&script{answers: []any{page("to-b", "a"), page("", "b")}})
	defer server.Close()
	var said strings.Builder
	ctx := klog.NewContext(t.Context(), funcr.New(func(_, args string) { said.WriteString(args) }, funcr.Options{Verbosity: 2}))
	m := migratorOf(t, &rest.Config{Host: server.URL}, Rate(0.5))
	begin := time.Now()
	for range 2 {
		_, err := m.page(ctx, definitions, metav1.ListOptions{}, maxAnswers)
		expect.NoError(t, err)
	}
	if took := time.Since(begin); took < 1500*time.Millisecond {
		t.Errorf("two requests took %s, at one in two seconds", took)
	}
	if said.Len() > 0 {
		t.Errorf("it says %s", said.String())
	}
}

// A deadline that comes before the next token is not a fault of the objects.
func TestRate_Deadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := migratorOf(t, &rest.Config{}, Rate(0.1))
		ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
		defer cancel()
		begin, sent, err := time.Now(), 0, error(nil)
		for err == nil {
			err = m.insist(ctx, func() error { sent++; return nil })
		}
		if took := time.Since(begin); !errors.Is(err, context.DeadlineExceeded) || sent != 2 || took != 15*time.Second {
			t.Errorf("got %v after %d requests and %s", err, sent, took)
		}
	})
}

// Only silence is taken for an API server that is away.
func TestRetry_OnlySilenceMeansAway(t *testing.T) {
	reset, busy := errors.New("connection reset"), apierrors.NewInternalError(errors.New("no"))
	for name, c := range map[string]struct {
		answer func(took time.Duration) error
		away   bool
		took   time.Duration // at least
	}{
		"it is silent":             {func(time.Duration) error { return reset }, true, time.Minute},
		"it answers, but not well": {func(time.Duration) error { return busy }, false, 5 * time.Second},
		"one request takes two minutes": {func(took time.Duration) error {
			if took == 0 {
				time.Sleep(2 * time.Minute)
				return reset
			}
			return nil
		}, false, 2 * time.Minute},
		"it comes back after fifty seconds": {func(took time.Duration) error {
			if took < 50*time.Second {
				return reset
			}
			return nil
		}, false, 50 * time.Second},
	} {
		subtest(t, name, func(t *testing.T) {
			m := migratorOf(t, &rest.Config{}, Rate(0))
			begin := time.Now()
			err := m.insist(t.Context(), func() error { return c.answer(time.Since(begin)) })
			var away *unreachableError
			if took := time.Since(begin); errors.As(err, &away) != c.away || took < c.took || took > c.took+10*time.Second {
				t.Errorf("got %v after %s", err, took)
			}
		})
	}
}

// Retries are logged at once, and then every five seconds.
func TestRetry_Logged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, logged := logcheck.Record(t.Context())
		m := migratorOf(t, &rest.Config{}, Rate(0))
		begin := time.Now()
		if err := m.insist(ctx, func() error { return errors.New("connection reset") }); err == nil {
			t.Fatal("there is no error")
		}
		want := `"level"=0 "msg"="A request failed and is sent again" "customResourceDefinition"="boxes.example.com" "err"="connection reset"`
		lines := logged()
		if most := int(time.Since(begin)/retryLog) + 1; len(lines) < 7 || len(lines) > most || lines[0] != want {
			t.Errorf("%d lines, want 7 to %d, as %s: %s", len(lines), most, want, lines)
		}
	})
}

// The current resourceVersion does not wait for a version that cannot be read if there is another one.
func TestNow_UnreadableVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := migratorOf(t, &rest.Config{Transport: inMemory{http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.Contains(r.URL.Path, "/v1/") {
				reply(w, apierrors.NewInternalError(errors.New("conversion webhook failed")).ErrStatus)
				return
			}
			reply(w, page("", "a"))
		})}}, Rate(0))
		d := boxes()
		begin := time.Now()
		if since, err := m.now(t.Context(), d); since != "7" || err != nil || time.Since(begin) > time.Second {
			t.Errorf("got %q, %v after %s", since, err, time.Since(begin))
		}
	})
}

// A name that no CRD can have is found before a request is sent.
func TestRun_NameOfNoCRD(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, name := range []string{"", "pizzas", "pizzas.example.com/status"} {
			_, err := Run(t.Context(), &rest.Config{Transport: inMemory{http.NotFoundHandler()}}, name)
			expect.ErrorContains(t, err, fmt.Sprintf("migrate: %q is not the name of a CustomResourceDefinition", name))
		}
	})
}

// The default is longer than a request may take.
func TestPropagationDelay_Default(t *testing.T) {
	set, err := apply(nil)
	if err != nil || set.propagationDelay <= time.Minute { // the default of --request-timeout
		t.Errorf("it waits for %s, %v", set.propagationDelay, err)
	}
}

// Wrong options are reported together.
func TestRun_WrongOptions(t *testing.T) {
	_, err := Run(t.Context(), &rest.Config{}, "boxes.example.com", Rate(-1), PropagationDelay(-1))
	expect.ErrorContains(t, err, "Rate is -1, expected 0 or more", "PropagationDelay is -1")
}
