package differential

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crdkit/crdkit/schema"
)

// RunAll runs suites, so many at a time: each waits for seconds until its definition is
// ready to be used. It ends with the first error.
func RunAll(ctx context.Context, server *Server, tally *Tally, suites []*Suite) error {
	return InParallel(ctx, 32, slices.Values(suites), func(ctx context.Context, s *Suite) error {
		if err := s.Run(ctx, server, tally); err != nil {
			return fmt.Errorf("%s: %w", s.CRD.Name, err)
		}
		return nil
	})
}

// InParallel calls a function for each value, so many at a time, until there is an error;
// ErrEnough is none.
func InParallel[T any](ctx context.Context, workers int, values iter.Seq[T], do func(context.Context, T) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	queue, enough := make(chan T), make(chan bool, workers)
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for v := range queue {
				if err := do(ctx, v); errors.Is(err, ErrEnough) {
					enough <- true
					return
				} else if err != nil {
					cancel(err)
					return
				}
			}
		})
	}
	for v := range values {
		select {
		case queue <- v:
			continue
		case <-enough:
		case <-ctx.Done():
		}
		break
	}
	close(queue)
	wg.Wait()
	return context.Cause(ctx)
}

// Run runs the suite on both sides and counts what comes of it. The error says that
// something else went wrong.
func (s *Suite) Run(ctx context.Context, server *Server, tally *Tally) error {
	r, err := s.begin()
	if err != nil {
		return err
	}
	r.server, r.tally = server, tally
	first := r.crd
	if r.beforeCRD != nil {
		first = r.beforeCRD
	}
	if s.Past {
		if err := server.InstallPast(ctx, first); err != nil {
			return err
		}
	} else if ok, err := r.install(ctx, first); !ok {
		return err
	}
	// All old objects, and then all requests.
	for i := range s.Cases {
		for _, mode := range r.modes(i) {
			if err := r.makeOld(ctx, i, mode); err != nil {
				return fmt.Errorf("%s: the old object: %w", s.Cases[i].Name, err)
			}
		}
	}
	if r.beforeCRD != nil {
		if ok, err := r.install(ctx, r.crd); !ok {
			return err
		}
	}
	for i := range s.Cases {
		for _, send := range r.sends(i) {
			if err := r.check(ctx, i, send); err != nil {
				return fmt.Errorf("%s: %w", s.Cases[i].Name, err)
			}
		}
	}
	return nil
}

// install creates or replaces a definition that is accepted offline, compares, and says
// whether the server has it too.
func (r *run) install(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition) (ok bool, err error) {
	if !r.tally.take() {
		return false, ErrEnough
	}
	installed := r.server.Install(ctx, crd)
	got, err := Refusal(installed)
	if err != nil {
		return false, err
	}
	suite := *r.Suite
	suite.CRD, suite.Before = crd, nil
	r.tally.add(Comparison{Suite: &suite, What: "definition", Request: "PUT CustomResourceDefinition", Server: got, Offline: Outcome{Code: 201}})
	return installed == nil, nil
}

// Reporter is the part of testing.TB that a suite needs.
type Reporter interface {
	Helper()
	Errorf(format string, args ...any)
}

// RunOffline runs the suite without a server, and reports what is not as the cases say.
func (s *Suite) RunOffline(ctx context.Context, t Reporter) error {
	t.Helper()
	r, err := s.begin()
	if err != nil {
		return err
	}
	for i := range s.Cases {
		c := &s.Cases[i]
		name, resourceVersion := r.name(i, ""), ""
		var old []byte
		if c.Old != nil {
			stored, err := r.oldOffline(ctx, c, name)
			if err != nil {
				return fmt.Errorf("%s: the old object: %w", c.Name, err)
			}
			object, err := decode(stored)
			if err != nil {
				return err
			}
			metadata := object["metadata"].(map[string]any)
			resourceVersion = "10"
			metadata["uid"], metadata["resourceVersion"] = "3b7c", resourceVersion
			old = mustJSON(object)
		}
		if c.Read {
			if _, err := r.definition.Version(r.version(c.Version)).Read(ctx, old); err != nil {
				return fmt.Errorf("%s: %w", c.Name, err)
			}
			continue
		}
		out, err := r.offline(ctx, exchange{
			definition: r.definition, version: r.version(c.Version), status: c.Status, old: old,
			body: r.body(c, name, resourceVersion), send: Send{FieldValidation: metav1.FieldValidationStrict},
		})
		o, err := offline(out, err, 0)
		if err != nil {
			return fmt.Errorf("%s: %w", c.Name, err)
		}
		if fault := c.expect(o); fault != "" {
			t.Errorf("%s", fault)
		}
	}
	return nil
}

// begin compiles the definitions.
func (s *Suite) begin() (*run, error) {
	r := &run{Suite: s, crd: s.CRD.DeepCopy(), beforeCRD: s.Before.DeepCopy(), old: map[string]stored{}}
	if r.beforeCRD != nil {
		// So that one sees which of the two is served.
		mark(r.beforeCRD, "before")
		mark(r.crd, "now")
	}
	var err error
	if r.definition, err = schema.New(r.crd); err != nil {
		return nil, err
	}
	if r.before = r.definition; r.beforeCRD != nil {
		r.before, err = schema.New(r.beforeCRD)
	}
	return r, err
}

func mark(crd *apiextensionsv1.CustomResourceDefinition, text string) {
	for i := range crd.Spec.Versions {
		v := &crd.Spec.Versions[i]
		v.Deprecated, v.DeprecationWarning = true, new(text+" "+v.Name)
	}
}

type run struct {
	*Suite
	server             *Server
	tally              *Tally
	crd, beforeCRD     *apiextensionsv1.CustomResourceDefinition // the latter may be nil
	definition, before *schema.Definition
	old                map[string]stored // by name
}

// stored is an object that is in etcd.
type stored struct {
	online, offline []byte // the latter is how it would be there
	resourceVersion string
}

// sends returns the ways in which a case is sent.
func (r *run) sends(i int) (sends []Send) {
	if c := &r.Cases[i]; len(c.Sends) > 0 {
		return c.Sends
	} else if c.Read {
		return []Send{{}}
	}
	for _, mode := range []string{metav1.FieldValidationStrict, metav1.FieldValidationWarn, metav1.FieldValidationIgnore, ""} {
		sends = append(sends, Send{mode, true}, Send{mode, false})
	}
	return sends
}

// modes returns the field validations in which a case is sent: each has its object.
func (r *run) modes(i int) (modes []string) {
	for _, send := range r.sends(i) {
		if !slices.Contains(modes, send.FieldValidation) {
			modes = append(modes, send.FieldValidation)
		}
	}
	return modes
}

func (r *run) name(i int, mode string) string {
	return fmt.Sprintf("case-%d%s", i, strings.ToLower(mode))
}

func (r *run) version(name string) string {
	if name == "" {
		return r.definition.StorageVersion()
	}
	return name
}

// fill returns the object with what every object needs.
func (r *run) fill(object map[string]any, version, name, resourceVersion string) []byte {
	if object = maps.Clone(object); object == nil {
		object = map[string]any{}
	}
	metadata, ok := object["metadata"].(map[string]any)
	if !ok && object["metadata"] != nil {
		return mustJSON(object)
	}
	if metadata = maps.Clone(metadata); metadata == nil {
		metadata = map[string]any{}
	}
	set := func(m map[string]any, key, value string) {
		if _, ok := m[key]; !ok && value != "" {
			m[key] = value
		}
	}
	set(object, "apiVersion", r.CRD.Spec.Group+"/"+version)
	set(object, "kind", r.CRD.Spec.Names.Kind)
	if metadata["generateName"] == nil {
		set(metadata, "name", name)
	}
	set(metadata, "resourceVersion", resourceVersion)
	object["metadata"] = metadata
	return mustJSON(object)
}

// body returns what a request sends.
func (r *run) body(c *Case, name, resourceVersion string) []byte {
	if c.Raw != "" {
		return []byte(strings.NewReplacer("NAME", name, "RESOURCEVERSION", resourceVersion, "GROUP", r.CRD.Spec.Group).Replace(c.Raw))
	}
	return r.fill(c.Object, r.version(c.Version), name, resourceVersion)
}

// makeOld creates an old object, on both sides.
func (r *run) makeOld(ctx context.Context, i int, mode string) error {
	c := &r.Cases[i]
	if c.Old == nil {
		return nil
	}
	version, name := r.version(c.OldVersion), r.name(i, mode)
	e := exchange{what: "old", definition: r.before, version: version, body: r.fill(c.Old, version, name, ""), send: Send{FieldValidation: metav1.FieldValidationIgnore}}
	done, err := r.exchange(ctx, i, e)
	if err != nil {
		return err
	}
	status, ok := c.Old["status"]
	if done != nil && ok && hasStatus(r.CRD, version) {
		// The status needs a request of its own.
		done.got.Object["status"] = status
		e.what, e.status, e.name, e.body, e.old = "old status", true, name, mustJSON(done.got.Object), done.online
		done, err = r.exchange(ctx, i, e)
	}
	if err != nil {
		return err
	}
	if done != nil {
		r.old[name] = done.stored
	} else if r.Made == "" {
		return errors.New("it was refused")
	}
	return nil
}

// oldOffline creates an old object without a server.
func (r *run) oldOffline(ctx context.Context, c *Case, name string) ([]byte, error) {
	version := r.version(c.OldVersion)
	body := r.fill(c.Old, version, name, "")
	out, err := r.before.Version(version).Create(ctx, body, r.Options...)
	if _, ok := c.Old["status"]; ok && err == nil && hasStatus(r.CRD, version) {
		out, err = r.before.Version(version).UpdateStatus(ctx, body, out.Stored, r.Options...)
	}
	if err != nil {
		return nil, err
	}
	return out.Stored, nil
}

func hasStatus(crd *apiextensionsv1.CustomResourceDefinition, version string) bool {
	for _, v := range crd.Spec.Versions {
		if v.Name == version {
			return v.Subresources != nil && v.Subresources.Status != nil
		}
	}
	return false
}

// check sends one request, and compares.
func (r *run) check(ctx context.Context, i int, send Send) error {
	c := &r.Cases[i]
	name := r.name(i, send.FieldValidation)
	old, ok := r.old[name]
	if c.Old != nil && !ok {
		return nil
	}
	if c.Read {
		return r.checkRead(ctx, i, name, old.offline, "read")
	}
	e := exchange{
		what: "create", definition: r.definition, version: r.version(c.Version), name: name, old: old.online, status: c.Status,
		body: r.body(c, name, old.resourceVersion), send: send,
	}
	switch {
	case c.Status:
		e.what = "status"
	case c.Old != nil:
		e.what = "update"
	}
	done, err := r.exchange(ctx, i, e)
	if err != nil || done == nil || !c.ReadBack || send.Dry {
		return err
	}
	metadata, _ := done.got.Object["metadata"].(map[string]any)
	if generate, _ := metadata["generateName"].(string); generate != "" {
		return nil
	}
	name, _ = metadata["name"].(string)
	return r.checkRead(ctx, i, name, done.stored.offline, "read back")
}

// exchange is one request.
type exchange struct {
	what          string
	definition    *schema.Definition
	version, name string
	body, old     []byte // old is nil in a create
	status        bool
	send          Send
}

// done is a request that succeeded on both sides, and what it stored, if it was not dry.
type done struct {
	got Outcome
	stored
}

// exchange sends one request to both sides and compares what comes back. It returns nil if
// it failed on either side.
func (r *run) exchange(ctx context.Context, i int, e exchange) (*done, error) {
	if !r.tally.take() {
		return nil, ErrEnough
	}
	method, at, code := http.MethodPost, path(r.crd, e.version, ""), int32(http.StatusCreated)
	if e.old != nil {
		method, at, code = http.MethodPut, path(r.crd, e.version, e.name), http.StatusOK
	}
	if e.status {
		at += "/status"
	}
	out, err := r.offline(ctx, e)
	want, err := offline(out, err, code)
	if err != nil {
		return nil, err
	}
	query := url.Values{"fieldManager": {"test"}}
	if e.send.FieldValidation != "" {
		query.Set("fieldValidation", e.send.FieldValidation)
	}
	if e.send.Dry {
		query.Set("dryRun", "All")
	}
	got, err := r.server.do(ctx, method, at, query, e.body)
	if err != nil {
		return nil, err
	}
	if err := r.settle(ctx, e, got, &want, &out, code); err != nil {
		return nil, err
	}
	d := &done{got: got}
	if want.Object != nil && got.Object != nil && !e.send.Dry {
		metadata, _ := got.Object["metadata"].(map[string]any)
		name, _ := metadata["name"].(string)
		if got.Stored, err = r.server.stored(ctx, r.crd, name); err != nil {
			return nil, err
		}
		if want.Stored, err = decode(out.Stored); err != nil {
			return nil, err
		}
		d.resourceVersion, _ = metadata["resourceVersion"].(string)
		live := maps.Clone(got.Stored)
		m := maps.Clone(live["metadata"].(map[string]any))
		live["metadata"], m["resourceVersion"] = m, d.resourceVersion
		d.online, d.offline = mustJSON(live), out.Stored
	}
	d.got.Object = maps.Clone(got.Object)
	if m, ok := got.Object["metadata"].(map[string]any); ok {
		d.got.Object["metadata"] = maps.Clone(m)
	}
	r.compare(Comparison{
		Suite: r.Suite, Case: i, What: e.what, Send: e.send, Request: method + " " + at + "?" + query.Encode(), Body: e.body, Old: e.old,
		Server: got, Offline: want,
	}, e.old == nil)
	if got.Object == nil || want.Object == nil {
		return nil, nil
	}
	return d, nil
}

// settle does a request offline again, if the outcome differs from the server's. A rule that
// goes through a map finds another member first each time, on either side: one that is not
// the same, or one that is an error. What the server says has to be said offline too, at
// some time.
func (r *run) settle(ctx context.Context, e exchange, got Outcome, want *Outcome, out **schema.Result, code int32) error {
	differs := func() bool {
		c := Comparison{Body: e.body, Old: e.old, Server: got, Offline: *want}
		c.Server.Object, c.Offline.Object = nil, nil // they have more than can be compared here
		return c.diff() != ""
	}
	byRule := func(text string) bool { return strings.Contains(text, " rule: ") }
	said := map[string]bool{}
	for i := 0; i < 64 && differs(); i++ {
		if !slices.ContainsFunc(slices.Concat(got.Causes, want.Causes), byRule) {
			return nil
		}
		for _, text := range want.Causes {
			said[text] = true
		}
		var err error
		*out, err = r.offline(ctx, e)
		if *want, err = offline(*out, err, code); err != nil {
			return err
		}
	}
	random := len(got.Causes) == len(want.Causes) && !slices.ContainsFunc(got.Causes, func(text string) bool { return !said[text] })
	if random && differs() && len(got.Causes) > 0 {
		want.Causes, want.Message = got.Causes, got.Message
	}
	return nil
}

// offline does a request without a server.
func (r *run) offline(ctx context.Context, e exchange) (*schema.Result, error) {
	opts := append([]schema.Option{schema.FieldValidation(e.send.FieldValidation), schema.Namespace(namespace)}, r.Options...)
	if e.send.Dry {
		opts = append(opts, schema.DryRun())
	}
	switch v := e.definition.Version(e.version); {
	case e.status:
		return v.UpdateStatus(ctx, e.body, e.old, opts...)
	case e.old != nil:
		return v.Update(ctx, e.body, e.old, opts...)
	default:
		return v.Create(ctx, e.body, opts...)
	}
}

// checkRead reads an object in each version, and compares.
func (r *run) checkRead(ctx context.Context, i int, name string, stored []byte, what string) error {
	for _, v := range r.CRD.Spec.Versions {
		if !v.Served {
			continue
		}
		if !r.tally.take() {
			return ErrEnough
		}
		out, err := r.definition.Version(v.Name).Read(ctx, stored)
		want, err := offline(out, err, http.StatusOK)
		if err != nil {
			return err
		}
		at := path(r.crd, v.Name, name)
		got, err := r.server.do(ctx, http.MethodGet, at, nil, nil)
		if err != nil {
			return err
		}
		r.compare(Comparison{Suite: r.Suite, Case: i, What: what, Request: "GET " + at, Old: stored, Server: got, Offline: want}, true)
	}
	return nil
}

// compare completes a comparison and counts it.
func (r *run) compare(c Comparison, created bool) {
	for _, o := range []*Outcome{&c.Server, &c.Offline} {
		strip(o.Object, created)
		strip(o.Stored, created)
	}
	if c.Send == (Send{FieldValidation: metav1.FieldValidationStrict}) {
		c.Unexpected = r.Cases[c.Case].expectIn(c)
	}
	r.tally.add(c)
}

// expectIn is expect for a request of the case itself.
func (c *Case) expectIn(in Comparison) string {
	if in.What == "create" || in.What == "update" || in.What == "status" {
		return c.expect(in.Offline)
	}
	return ""
}

// expect says that a case is not about what it should be.
func (c *Case) expect(o Outcome) string {
	said := slices.Concat([]string{o.Message}, o.Causes, o.Warnings)
	if c.Want == "" || c.Want == "accepted" && o.Object != nil || slices.ContainsFunc(said, func(s string) bool { return strings.Contains(s, c.Want) }) {
		return ""
	}
	return fmt.Sprintf("%s: want %q, got %+v", c.Name, c.Want, o)
}
