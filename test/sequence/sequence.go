// Package sequence sends random sequences of requests about several objects to a real kube-apiserver
// and to a server in this process, and compares the answers, the warnings, what is stored, and the
// events of watches. The server is that of schema/apiservertest ([Run]), or an aggregated API server
// with the kinds of scheme/resource ([RunAggregated]).
package sequence

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/yaml"

	"github.com/crdkit/crdkit/schema/apiservertest"
	"github.com/crdkit/crdkit/test/controlplane"
	"github.com/crdkit/crdkit/test/differential"
	"github.com/crdkit/crdkit/webhook/registration"
)

// Length is the number of requests of one sequence.
const Length = 40

// Result is what came of the sequences.
type Result struct {
	Requests      int
	Disagreements []string
	Known         map[string]int // how many requests had the known difference of a name
}

// Run sends about n requests to each of a control plane and a new offline server. The seed
// chooses them. It ends after ten disagreements.
func Run(ctx context.Context, cp *controlplane.ControlPlane, n int, seed uint64) (*Result, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	real, fake, err := start(ctx, cp)
	if err != nil {
		return nil, err
	}
	return runAll(ctx, real, fake, n, seed, []*kind{gadgets}, nil)
}

// runAll sends sequences of requests about each kind in turn.
func runAll(ctx context.Context, real, fake *side, n int, seed uint64, kinds []*kind, known []difference) (*Result, error) {
	out := &Result{Known: map[string]int{}}
	for i := 0; out.Requests < n && len(out.Disagreements) < 10; i++ {
		m := maker{rand.New(rand.NewPCG(seed, uint64(i))), metav1.NamespaceDefault, fmt.Sprintf("s%d", i), kinds[i%len(kinds)]}
		s := sequence{real, fake, newNames(), newNames(), m, known, out}
		disagreement, err := s.run(ctx)
		if err != nil {
			return out, fmt.Errorf("sequence %d: %w", i, err)
		}
		if disagreement != "" {
			out.Disagreements = append(out.Disagreements, disagreement)
		}
	}
	return out, nil
}

// start installs the gadgets on both sides.
func start(ctx context.Context, cp *controlplane.ControlPlane) (real, fake *side, err error) {
	local, err := newHooks(registration.Service("sequences-system", "sequences"))
	if err != nil {
		return nil, nil, err
	}
	server, err := apiservertest.New(ctx, apiservertest.Webhooks(local), apiservertest.Manifests([]byte(policies)))
	if err != nil {
		return nil, nil, err
	}
	fake, err = newSide("offline", server.Config(), func(ctx context.Context, k *kind, namespace, name string) ([]byte, error) {
		return server.Stored(ctx, k.resource(), namespace, name)
	})
	if err != nil {
		return nil, nil, err
	}
	if real, _, err = newReal(cp); err != nil {
		return nil, nil, err
	}
	return real, fake, install(ctx, cp, real)
}

// newReal returns the side of a control plane.
func newReal(cp *controlplane.ControlPlane) (*side, *differential.Server, error) {
	server, err := differential.NewServer(cp.Config(), cp.Dir()+"/etcd.sock")
	if err != nil {
		return nil, nil, err
	}
	real, err := newSide("kube-apiserver", cp.Config(), func(ctx context.Context, k *kind, namespace, name string) ([]byte, error) {
		return server.StoredAt(ctx, "/registry"+k.key(namespace, name))
	})
	return real, server, err
}

// install applies the gadgets, their webhooks and policies, and waits until all are in force.
func install(ctx context.Context, cp *controlplane.ControlPlane, real *side) error {
	var hooks *registration.Webhooks
	webhooks := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { hooks.ServeHTTP(w, r) }))
	context.AfterFunc(ctx, webhooks.Close)
	hooks, err := newHooks(registration.URL(webhooks.URL))
	if err != nil {
		return err
	}
	manifests, err := hooks.Manifests(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: webhooks.Certificate().Raw}))
	if err != nil {
		return err
	}
	client, err := dynamic.NewForConfig(cp.Config())
	if err != nil {
		return err
	}
	discover, err := discovery.NewDiscoveryClientForConfig(cp.Config())
	if err != nil {
		return err
	}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(discover))
	for _, text := range append(strings.Split(string(manifests), "---\n"), strings.Split(policies, "---\n")...) {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil || u.Object == nil {
			if err != nil {
				return err
			}
			continue
		}
		mapping, err := mapper.RESTMapping(u.GroupVersionKind().GroupKind(), u.GroupVersionKind().Version)
		if err != nil {
			return err
		}
		if _, err := client.Resource(mapping.Resource).Create(ctx, u, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	// Each of these is refused, warned of or changed by one webhook or policy.
	probes := map[string]string{
		`{"replicas":60}`: "at most 50",
		`{"parts":[{"name":"a","note":""},{"name":"b","note":""},{"name":"c","note":""}]}`: "there are 3 notes",
		`{"color":"blue"}`:   "blue is out of stock",
		`{"size":0}`:         `"size":1`,
		`{"fixed":"mutate"}`: "by a webhook",
	}
	time.Sleep(2 * time.Second) // creations wait for a new definition that long
	for spec, want := range probes {
		for {
			a, err := real.send(ctx, request{method: http.MethodPost, path: "/apis/" + group + "/v1/namespaces/default/gadgets?dryRun=All", contentType: "application/json", accept: "application/json",
				body: []byte(`{"apiVersion":"` + group + `/v1","kind":"Gadget","metadata":{"name":"probe"},"spec":` + spec + `}`)})
			if err != nil {
				return err
			}
			body, err := json.Marshal(a.body)
			if err != nil {
				return err
			}
			if strings.Contains(string(body)+fmt.Sprint(a.warnings), want) {
				break
			}
			time.Sleep(50 * time.Millisecond)
		}
	}
	return nil
}

// sequence is one sequence of requests.
type sequence struct {
	real, fake           *side
	realNames, fakeNames *names
	maker
	known []difference
	*Result
}

// run returns the first disagreement.
func (s *sequence) run(ctx context.Context) (disagreement string, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	watchReal, err := s.watch(ctx, s.real)
	if err != nil {
		return "", err
	}
	watchFake, err := s.watch(ctx, s.fake)
	if err != nil {
		return "", err
	}
	var sent []request
	for range Length {
		r := s.make()
		sent = append(sent, r)
		s.Requests++
		want, err := s.real.send(ctx, r)
		if err != nil {
			return "", err
		}
		got, err := s.fake.send(ctx, r)
		if err != nil {
			return "", err
		}
		if diff := s.compare(ctx, r, want, got); diff != "" {
			return describe(s.prefix, sent, diff), nil
		}
	}
	end := request{method: http.MethodPost, path: s.collection(s.watched), contentType: "application/json", accept: "application/json", body: mustJSON(map[string]any{
		"apiVersion": s.Group + "/" + s.watched, "kind": s.Kind, "metadata": map[string]any{"name": s.prefix + "-end", "labels": map[string]any{"sequence": s.prefix}},
	})}
	for _, side := range []*side{s.real, s.fake} {
		a, err := side.send(ctx, end)
		if err != nil {
			return "", err
		}
		if a.code != http.StatusCreated {
			return "", fmt.Errorf("%s: the last object: %d %s", side.name, a.code, text(a.body))
		}
	}
	want, err := s.events(watchReal, s.realNames)
	if err != nil {
		return "", err
	}
	got, err := s.events(watchFake, s.fakeNames)
	if err != nil {
		return "", err
	}
	if diff := cmp.Diff(want, got); diff != "" {
		return describe(s.prefix, sent, "watch events:\n"+diff), nil
	}
	return "", nil
}

// compare compares two answers, and what is then stored of every object.
func (s *sequence) compare(ctx context.Context, r request, want, got answer) string {
	realNames, fakeNames := s.realNames.clone(), s.fakeNames.clone()
	diffs := cmp.Diff(
		s.realNames.normal(fmt.Sprint(want.panicked, want.code, want.contentType, want.warnings)),
		s.fakeNames.normal(fmt.Sprint(got.panicked, got.code, got.contentType, got.warnings))) +
		cmp.Diff(text(s.realNames.normal(want.body)), text(s.fakeNames.normal(got.body)))
	if i := slices.IndexFunc(s.known, func(d difference) bool { return d.is(r, want, got) }); diffs != "" && i >= 0 {
		s.Known[s.known[i].name]++
		s.realNames, s.fakeNames = realNames, fakeNames // what only one of the answers has, has no name
		diffs = ""
	}
	for _, name := range []string{"a", "b", "c"} {
		want, wantErr := s.real.stored(ctx, s.kind, s.scope(), s.prefix+"-"+name)
		got, gotErr := s.fake.stored(ctx, s.kind, s.scope(), s.prefix+"-"+name)
		if wantErr != nil || gotErr != nil {
			diffs += cmp.Diff(wantErr == nil, gotErr == nil)
			continue
		}
		diffs += cmp.Diff(s.bytes(s.realNames, want), s.bytes(s.fakeNames, got))
	}
	return diffs
}

// bytes returns stored JSON in the order in which it is stored, except for managedFields.
func (s *sequence) bytes(names *names, stored []byte) string {
	var v map[string]any
	if err := json.Unmarshal(stored, &v); err != nil {
		return string(stored)
	}
	return text(names.normal(v))
}

// watch watches the objects of the sequence.
func (s *sequence) watch(ctx context.Context, side *side) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, side.host+s.collection(s.watched)+
		"?watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&labelSelector=sequence%3D"+s.prefix, nil)
	if err != nil {
		return nil, err
	}
	response, err := differential.Do(side.client, req)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: watch: %s", side.name, response.Status)
	}
	return response.Body, nil
}

// events returns the events until the last object appears.
func (s *sequence) events(body io.ReadCloser, names *names) (all []string, err error) {
	defer body.Close()
	decoder := json.NewDecoder(body)
	for {
		var event struct {
			Type   string
			Object map[string]any
		}
		if err := decoder.Decode(&event); err != nil {
			return nil, errors.Join(fmt.Errorf("watch after %d events", len(all)), err)
		}
		u := unstructured.Unstructured{Object: event.Object}
		switch {
		case u.GetName() == s.prefix+"-end":
			return all, nil
		case event.Type == "BOOKMARK":
			if len(u.GetAnnotations()) > 0 { // the end of the initial events; others come at times
				all = append(all, event.Type)
			}
		default:
			all = append(all, event.Type+" "+text(names.normal(event.Object)))
		}
	}
}

// describe shows the requests that led to a disagreement.
func describe(prefix string, sent []request, diff string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "sequence %s, after %d requests:\n", prefix, len(sent))
	for _, r := range sent[max(0, len(sent)-4):] {
		fmt.Fprintln(&b, r)
	}
	return b.String() + "(-kube-apiserver +in process)\n" + diff
}
