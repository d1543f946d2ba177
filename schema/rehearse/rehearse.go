package rehearse

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
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
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/crdkit/crdkit/internal/fieldpath"
	"github.com/crdkit/crdkit/schema"
)

// Object is a stored object.
type Object struct {
	// Where names the source of the object in messages, for example a file and a line.
	Where string
	// Text is the object as JSON or YAML. If its version is served, but not stored, by the old CRD,
	// the object is first converted to the storage version.
	Text []byte
}

// Option configures [Run].
type Option func(*rehearsal)

// Redact removes the values of fields from the report, and from errors that quote them. Examples of
// paths are spec.password and spec.users[*].token, where [*] stands for all elements of a list or
// map. Pass the path in each version in which it differs.
func Redact(paths ...string) Option {
	return func(r *rehearsal) {
		for _, path := range paths {
			steps, err := fieldpath.Parse(path)
			if err != nil {
				r.errs = append(r.errs, fmt.Errorf("rehearse: redacted path %w", err))
			}
			r.redact = append(r.redact, steps)
		}
	}
}

// Run replays objects through an upgrade from one release to another, and through a rollback.
// Objects that cannot be replayed, and errors of the sequence, are findings of the step [Input]. An
// object that comes with an error is named, but not replayed.
//
// Run returns an error if
//
//   - an option is invalid,
//   - a release has no Definitions, or two for a kind,
//   - the new release has a CRD with the strategy Webhook, but no Handler,
//   - a release has a Handler and no Manifests, but none of its CRDs has the strategy Webhook, or
//   - the context is done. The report then has the findings up to then, and the error wraps [context.Cause]. A Handler
//     that forwards to a server can end Run in this way when the server is unreachable, whatever the objects are.
func Run(ctx context.Context, before, after schema.Release, objects iter.Seq2[Object, error], opts ...Option) (*Report, error) {
	r := &rehearsal{found: map[cause]*found{}, calls: map[Call]int{}, unchecked: map[string]bool{}}
	for _, opt := range opts {
		opt(r)
	}
	if err := errors.Join(r.errs...); err != nil {
		return nil, err
	}
	var oldErr, newErr error
	r.old, oldErr = sides(before, "old")
	r.new, newErr = sides(after, "new")
	if err := errors.Join(oldErr, newErr); err != nil {
		return nil, err
	}
	for _, d := range after.Definitions {
		if kind := d.GroupKind(); r.old[kind] != nil && r.new[kind].lacksHandler {
			return nil, fmt.Errorf("rehearse: %s of the new release is converted by a webhook: want Release.Handler", kind)
		}
	}
	r.replay(ctx, objects)
	return r.report(), cmp.Or(r.ended, context.Cause(ctx))
}

// replay rehearses objects in batches.
func (r *rehearsal) replay(ctx context.Context, objects iter.Seq2[Object, error]) {
	pending := map[runtimeschema.GroupKind]*batch{}
	var running sync.WaitGroup // one batch, while the next is parsed
	rehearse := func(b *batch) {
		running.Wait()
		running.Go(func() { b.run(ctx) })
	}
	for o, err := range objects {
		if context.Cause(ctx) != nil {
			break
		}
		it := &item{rehearsal: r, where: o.Where}
		if invalid := it.parse(o.Text); err == nil {
			err = invalid
		}
		if err != nil {
			it.fail(Input, Invalid, "", err)
			r.merge([]*item{it})
			continue
		}
		b := pending[it.kind]
		if b == nil {
			b = &batch{rehearsal: r}
			pending[it.kind] = b
		}
		it.batch, b.items, b.size = b, append(b.items, it), b.size+len(it.stored)
		if len(b.items) == maxBatch || b.size >= maxBatchBytes {
			rehearse(b)
			delete(pending, it.kind)
		}
	}
	for _, kind := range slices.SortedFunc(maps.Keys(pending), func(a, b runtimeschema.GroupKind) int { return strings.Compare(a.String(), b.String()) }) {
		rehearse(pending[kind]) // in the same order each time, because the number of findings is bounded
	}
	running.Wait()
}

// rehearsal is a call of Run.
type rehearsal struct {
	old, new map[runtimeschema.GroupKind]*side
	redact   redactor
	errs     []error // of options

	found     map[cause]*found
	calls     map[Call]int // how many objects
	ended     error        // in which conversion the context was done
	mu        sync.Mutex   // of objects, found and unchecked
	objects   int          // that were replayed
	unchecked map[string]bool
}

// side is a kind in a release.
type side struct {
	*schema.Definition
	release      string // old or new
	handler      http.Handler
	lacksHandler bool     // although a webhook converts
	path         string   // at which the webhook is called
	reviews      string   // the version of ConversionReview, if a webhook converts
	served       []string // the storage version first
	stored       []string
	namespaced   bool
}

// sides returns the kinds of a release.
func sides(release schema.Release, name string) (map[runtimeschema.GroupKind]*side, error) {
	if _, err := release.ByKind(); err != nil {
		return nil, fmt.Errorf("rehearse: the %s release: %w", name, err)
	}
	all := map[runtimeschema.GroupKind]*side{}
	several, converts := false, false
	for _, d := range release.Definitions {
		s := &side{Definition: d, release: name, handler: release.Handler}
		if err := s.read(d.CustomResourceDefinition()); err != nil {
			return nil, err
		}
		all[d.GroupKind()] = s
		several, converts = several || len(d.Versions()) > 1, converts || s.reviews != ""
	}
	if several && !converts && release.Handler != nil && len(release.Manifests) == 0 { // controller-gen writes definitions so
		return nil, fmt.Errorf("rehearse: spec.conversion.strategy is None in all definitions of the %s release, which has a webhook: want Webhook, as the cluster has it", name)
	}
	return all, nil
}

// read reads what a rehearsal needs from the definition.
func (s *side) read(crd *apiextensionsv1.CustomResourceDefinition) error {
	s.namespaced = crd.Spec.Scope == apiextensionsv1.NamespaceScoped
	s.stored = append(crd.Status.StoredVersions, s.StorageVersion())
	for i := range crd.Spec.Versions {
		switch v := &crd.Spec.Versions[i]; {
		case !v.Served:
			v.Served = true // to be read here: see item.run
		case v.Storage:
			s.served = slices.Insert(s.served, 0, v.Name)
		default:
			s.served = append(s.served, v.Name)
		}
	}
	if c := crd.Spec.Conversion; c.Strategy == apiextensionsv1.WebhookConverter {
		s.lacksHandler = s.handler == nil && len(crd.Spec.Versions) > 1
		at := ptr.Deref(c.Webhook.ClientConfig.URL, "")
		if service := c.Webhook.ClientConfig.Service; service != nil {
			at = ptr.Deref(service.Path, "")
		}
		if u, err := url.Parse(at); err == nil { // as the server has checked
			s.path = u.RequestURI()
		}
		supported := func(v string) bool { return v == "v1" || v == "v1beta1" }
		if i := slices.IndexFunc(c.Webhook.ConversionReviewVersions, supported); i >= 0 {
			s.reviews = c.Webhook.ConversionReviewVersions[i]
		}
	}
	if len(s.served) == len(crd.Spec.Versions) {
		return nil
	}
	var err error
	s.Definition, err = schema.New(crd)
	return err
}

// parse fills in the object, as far as it can be read. It gets the namespace that the server would have
// given it, and loses what each write renews. Errors quote no values: these may be secrets.
func (it *item) parse(text []byte) (err error) {
	var duplicates []error
	if !json.Valid(text) {
		if _, err = yaml.YAMLToJSONStrict(text); err != nil {
			duplicates = []error{err} // or what follows has an error, too
		}
		if text, err = yaml.YAMLToJSON(text); err != nil {
			return err
		}
	}
	u := unstructured.Unstructured{}
	if !bytes.HasPrefix(bytes.TrimSpace(text), []byte("{")) {
		return errors.New("the value is not an object")
	}
	strict, err := kjson.UnmarshalStrict(text, &u.Object, kjson.DisallowDuplicateFields)
	if err != nil {
		return err
	}
	duplicates = append(duplicates, strict...)
	gvk := u.GroupVersionKind()
	it.kind, it.version, it.name = gvk.GroupKind(), gvk.Version, u.GetName()
	old := it.old[it.kind]
	if old != nil && old.namespaced && u.GetNamespace() == "" {
		u.SetNamespace(metav1.NamespaceDefault)
	}
	if it.name != "" && u.GetNamespace() != "" {
		it.name = u.GetNamespace() + "/" + it.name
	}
	u.SetResourceVersion("")
	u.SetManagedFields(nil)
	it.stored, _ = json.Marshal(u.Object) // what was JSON is JSON
	switch {
	case len(duplicates) > 0: // which one the server would have stored is unknown
		return errors.Join(duplicates...)
	case gvk.Kind == "":
		return errors.New("the object has no kind")
	case old == nil:
		return fmt.Errorf("no matches for kind %q in version %q among the old definitions", gvk.Kind, u.GetAPIVersion())
	case !slices.Contains(old.served, it.version) && !slices.Contains(old.stored, it.version):
		return fmt.Errorf("version %s is neither served nor stored by the old definition: want one of %s", it.version, strings.Join(old.Versions(), ", "))
	case it.name == "":
		return errors.New("metadata.name is required: want an object as a server has stored it")
	}
	return nil
}
