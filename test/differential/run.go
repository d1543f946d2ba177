package differential

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crdkit/crdkit/schema"
)

// Run runs the suite on both sides and counts the results. The error says that
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
	r.tally.add(Comparison{Suite: &suite, Minor: r.server.minor, What: "definition", Request: "PUT CustomResourceDefinition", Server: got, Offline: Outcome{Code: 201}})
	return installed == nil, nil
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
		sends = append(sends, Send{mode})
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
		return errors.New("request refused")
	}
	return nil
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
	if err != nil || done == nil || !c.ReadBack {
		return err
	}
	metadata, _ := done.got.Object["metadata"].(map[string]any)
	if generate, _ := metadata["generateName"].(string); generate != "" {
		return nil
	}
	name, _ = metadata["name"].(string)
	return r.checkRead(ctx, i, name, done.stored.offline, "read back")
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
		r.compare(Comparison{Suite: r.Suite, Minor: r.server.minor, Case: i, What: what, Request: "GET " + at, Old: stored, Server: got, Offline: want}, true)
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
