package rehearse

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/crdkit/crdkit/internal/fieldpath"
	"github.com/crdkit/crdkit/schema"
)

// Release is one side of an upgrade.
type Release struct {
	Definitions []*schema.Definition
	// Webhook converts the objects of CRDs whose conversion strategy is Webhook. A new release with
	// such a CRD requires it. An old release without it reads objects of such a CRD only in their
	// stored version: see [Report.Unchecked].
	Webhook Webhook
}

// Object is a stored object.
type Object struct {
	// Where names the source of the object in messages, for example a file and a line.
	Where string
	// Text is the object as JSON or YAML. If its version is served, but not stored, by the old CRD,
	// the object is first converted to the storage version.
	Text []byte
}

// Option configures [Run].
type Option func(*rehearsal) error

// Redact removes the values of fields from the report, and from errors that quote them. Examples of
// paths are spec.password and spec.users[*].token, where [*] stands for all elements of a list or
// map. Pass the path in each version in which it differs.
func Redact(paths ...string) Option {
	return func(r *rehearsal) error {
		for _, path := range paths {
			steps, err := fieldpath.Parse(path)
			if err != nil {
				return fmt.Errorf("rehearse: redacted path %w", err)
			}
			r.redact = append(r.redact, steps)
		}
		return nil
	}
}

// A batch is what the API server's lists have at most by default, in objects; and at most so many
// bytes, which bounds the memory.
const (
	maxBatch      = 500
	maxBatchBytes = 8 << 20
)

// Run replays objects through an upgrade from one release to another, and through a rollback.
// Objects that cannot be replayed, and errors of the sequence, are findings of the step [Input]. An
// object that comes with an error is named, but not replayed.
//
// Run returns an error if
//
//   - an option is invalid,
//   - a kind has two CRDs in a release,
//   - the new release has no webhook for a CRD with the strategy Webhook,
//   - a release has a webhook, but none of its CRDs has the strategy Webhook,
//   - the context is done, or
//   - a webhook is unreachable (see [ErrUnreachable]).
//
// In the last two cases, the report has the findings up to then. Webhooks must be safe for concurrent
// use.
func Run(ctx context.Context, before, after Release, objects iter.Seq2[Object, error], opts ...Option) (*Report, error) {
	r := &rehearsal{found: map[cause]*found{}, calls: map[Call]int{}}
	for _, opt := range opts {
		if err := opt(r); err != nil {
			return nil, err
		}
	}
	var err error
	if r.old, err = sides(before, "old"); err != nil {
		return nil, err
	}
	if r.new, err = sides(after, "new"); err != nil {
		return nil, err
	}
	for kind, side := range r.new {
		if r.old[kind] != nil && side.usesWebhook && side.webhook == nil {
			return nil, fmt.Errorf("rehearse: %s of the new release is converted by a webhook: want Release.Webhook", kind)
		}
	}
	if err := errors.Join(before.check("old"), after.check("new")); err != nil {
		return nil, err
	}
	ctx, r.abort = context.WithCancelCause(ctx)
	defer r.abort(nil)
	pending := map[runtimeschema.GroupKind]*batch{}
	var running sync.WaitGroup // one batch, while the next is parsed
	rehearse := func(b *batch) {
		running.Wait()
		running.Go(func() { r.rehearse(ctx, b.items) })
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
			b = &batch{}
			pending[it.kind] = b
		}
		b.items, b.size = append(b.items, it), b.size+len(it.stored)
		if len(b.items) == maxBatch || b.size >= maxBatchBytes {
			rehearse(b)
			delete(pending, it.kind)
		}
	}
	for _, b := range pending {
		rehearse(b)
	}
	running.Wait()
	return r.report(), context.Cause(ctx)
}

// rehearsal is a call of Run.
type rehearsal struct {
	old, new map[runtimeschema.GroupKind]*side
	redact   redactor
	abort    context.CancelCauseFunc

	found     map[cause]*found
	calls     map[Call]int // how many objects
	mu        sync.Mutex   // of objects, found and unchecked
	objects   int          // that were replayed
	unchecked []string
}

type batch struct {
	items []*item
	size  int // in bytes
}

// rehearse rehearses objects of a kind side by side, so that they can be converted together.
func (r *rehearsal) rehearse(ctx context.Context, items []*item) {
	var done sync.WaitGroup
	m := &meeting{rehearsal: r, running: len(items)}
	for i, it := range items {
		it.number = i
		done.Go(func() {
			defer m.leave(ctx)
			it.run(ctx, m)
		})
	}
	done.Wait()
	if context.Cause(ctx) == nil { // else, failures may be due to that
		r.merge(items)
	}
}

// check finds a webhook that no definition calls: controller-gen writes definitions without it.
func (release Release) check(name string) error {
	several := false
	for _, d := range release.Definitions {
		several = several || len(d.Versions()) > 1
		if d.CustomResourceDefinition().Spec.Conversion.Strategy == apiextensionsv1.WebhookConverter {
			return nil
		}
	}
	if !several || release.Webhook == nil {
		return nil
	}
	return fmt.Errorf("rehearse: spec.conversion.strategy is None in all definitions of the %s release, which has a webhook: want Webhook, as the cluster has it", name)
}

// side is a kind in a release.
type side struct {
	*schema.Definition
	release     string // old or new
	webhook     Webhook
	usesWebhook bool
	reviews     string   // the version of ConversionReview
	served      []string // the storage version first
	stored      []string
	namespaced  bool
}

func sides(release Release, name string) (map[runtimeschema.GroupKind]*side, error) {
	all := map[runtimeschema.GroupKind]*side{}
	for _, d := range release.Definitions {
		crd := d.CustomResourceDefinition()
		s := &side{Definition: d, release: name, webhook: release.Webhook, namespaced: crd.Spec.Scope == apiextensionsv1.NamespaceScoped}
		if all[d.GroupKind()] != nil {
			return nil, fmt.Errorf("rehearse: %s is defined twice in the %s release", d.GroupKind(), name)
		}
		all[d.GroupKind()] = s
		for i := range crd.Spec.Versions {
			if v := &crd.Spec.Versions[i]; v.Served {
				s.served = append(s.served, v.Name)
			} else {
				v.Served = true // to be read here: see item.run
			}
		}
		if len(s.served) < len(d.Versions()) {
			all, err := schema.New(crd)
			if err != nil {
				return nil, err
			}
			s.Definition = all
		}
		if i := slices.Index(s.served, d.StorageVersion()); i >= 0 {
			s.served = slices.Insert(slices.Delete(s.served, i, i+1), 0, d.StorageVersion())
		}
		s.stored = append(crd.Status.StoredVersions, d.StorageVersion())
		if c := crd.Spec.Conversion; c.Strategy == apiextensionsv1.WebhookConverter && len(d.Versions()) > 1 {
			s.usesWebhook = true
			supported := func(v string) bool { return v == "v1" || v == "v1beta1" }
			if i := slices.IndexFunc(c.Webhook.ConversionReviewVersions, supported); i >= 0 {
				s.reviews = c.Webhook.ConversionReviewVersions[i]
			}
		}
	}
	return all, nil
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
	if it.stored, err = json.Marshal(u.Object); err != nil {
		return err
	}
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
