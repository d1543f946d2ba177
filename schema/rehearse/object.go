package rehearse

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdkit/crdkit/internal/jsondiff"
	"github.com/crdkit/crdkit/internal/logtext"
	"github.com/crdkit/crdkit/schema"
)

// item is an object that is rehearsed.
type item struct {
	*rehearsal
	where, name string // the name has the namespace
	kind        runtimeschema.GroupKind
	version     string // in which it is stored
	stored      []byte
	batch       *batch
	asks        *question // now
	asked       []*question
	seen        [][]byte // every form that it had, if there are secrets in it
	found       []found
}

// view is what a release makes of an object in one version.
type view struct {
	object []byte
	err    error
}

// known reports whether the object was read at all.
func (v view) known() bool { return v.object != nil || v.err != nil }

// run replays an object: the old release reads it; the new one reads it in every version,
// and writes it without a change; and the old one reads what that has stored.
func (it *item) run(ctx context.Context) {
	old, now := it.old[it.kind], it.new[it.kind]
	if !slices.Contains(old.stored, it.version) && !it.store(ctx, old) {
		return
	}
	it.see(it.stored)
	before := it.readAll(ctx, old, it.stored, it.version)
	for _, v := range old.served {
		it.fail(Before, Unreadable, v, before[v].err)
	}
	if now == nil {
		it.fail(Upgrade, Unreadable, "", errors.New("the definition is removed, and all objects of the kind with it"))
		return
	}
	after := it.readAll(ctx, now, it.stored, it.version)
	for _, v := range now.served {
		if before[v].known() {
			it.compare(Upgrade, v, old, before[v], after[v])
		} else {
			it.fail(Upgrade, Unreadable, v, after[v].err)
		}
	}
	written, migrated := it.writeAll(ctx, now, after, before)
	if written == nil {
		return
	}
	for _, v := range now.served {
		it.compare(Migration, v, now, after[v], migrated[v])
	}
	if v := it.version; !slices.Contains(now.served, v) && slices.Contains(now.Versions(), v) {
		// No client reads this version any longer, but what it had must still be there.
		it.compare(Migration, v, now, it.read(ctx, now, v, it.stored), it.read(ctx, now, v, written))
	}
	if bytes.Equal(written, it.stored) {
		return // a rollback finds what it knows
	}
	back := it.readAll(ctx, old, written, now.StorageVersion())
	for _, v := range old.served {
		b, r := before[v], back[v]
		if !b.known() || b.err != nil || !r.known() {
			continue
		}
		it.compare(Rollback, v, old, b, r)
		if r.err == nil {
			_, err := it.write(ctx, old, v, r.object, written)
			it.refuse(ctx, Rollback, v, err, b)
		}
	}
}

// store makes the stored form of an object that is in a version which is not stored.
func (it *item) store(ctx context.Context, old *side) bool {
	var err error
	var out *schema.Result
	if old.lacksHandler {
		plural := old.CustomResourceDefinition().Spec.Names.Plural
		err = fmt.Errorf("the object has version %s, and the old definition stores %s: get it as %s.%s.%s, or give the old release its webhook",
			it.version, old.StorageVersion(), plural, old.StorageVersion(), it.kind.Group)
	} else if out, err = it.write(ctx, old, it.version, it.stored, it.stored); err == nil {
		it.stored, it.version = out.Stored, old.StorageVersion()
		return true
	}
	it.fail(Input, Invalid, it.version, err)
	return false
}

// readAll reads an object that is stored in a version, in every served version that the release can
// convert it to.
func (it *item) readAll(ctx context.Context, s *side, stored []byte, version string) map[string]view {
	views := map[string]view{}
	for _, v := range s.served {
		if s.lacksHandler && v != version {
			it.skip(fmt.Sprintf("%s as %s by the old release: the webhook that converts it is not given", it.kind, v))
			continue
		}
		views[v] = it.read(ctx, s, v, stored)
	}
	return views
}

// writeAll updates the object without a change in every version in which it can be read. It
// returns what is stored then, by the storage version if that is served, and how that is read.
func (it *item) writeAll(ctx context.Context, s *side, after, before map[string]view) (written []byte, reads map[string]view) {
	reads = map[string]view{}
	for _, v := range s.served {
		a := after[v]
		if a.err != nil {
			continue
		}
		out, err := it.write(ctx, s, v, a.object, it.stored)
		if err != nil {
			it.refuse(ctx, Update, v, err, before[v])
			continue
		}
		if written == nil {
			written = out.Stored
			it.see(written)
		}
		begin := len(it.found)
		it.compare(Update, v, s, view{object: written}, view{object: out.Stored})
		it.excuse(ctx, it.found[begin:], v, before[v])
		if bytes.Equal(written, out.Stored) {
			reads[v] = view{object: out.Object}
		}
	}
	for _, v := range s.served {
		if _, known := reads[v]; !known && written != nil {
			reads[v] = it.read(ctx, s, v, written)
		}
	}
	return written, reads
}

// excuse changes the step of those findings of an update that one by a client of the old release has, too.
func (it *item) excuse(ctx context.Context, updated []found, version string, before view) {
	old := it.old[it.kind]
	if len(updated) == 0 || !before.known() || before.err != nil || it.version != old.StorageVersion() {
		return
	}
	out, err := it.write(ctx, old, version, before.object, it.stored)
	if err != nil {
		return
	}
	same := it.changes(Update, version, old, it.stored, out.Stored)
	for i := range updated {
		if slices.ContainsFunc(same, func(f found) bool { return f.cause == updated[i].cause }) {
			updated[i].Step = Before
		}
	}
}

// refuse adds the error of an update, if there is one. Where the old release refuses the update of
// what it has stored as well, that is not due to the upgrade.
func (it *item) refuse(ctx context.Context, step Step, version string, err error, before view) {
	if err == nil {
		return
	}
	if before.known() && before.err == nil {
		if _, err := it.write(ctx, it.old[it.kind], version, before.object, it.stored); err != nil {
			step = Before
		}
	}
	it.fail(step, Refused, version, err)
}

// read reads a stored object in one version.
func (it *item) read(ctx context.Context, s *side, version string, stored []byte) view {
	out, err := s.Version(version).Read(ctx, stored, it.converting(s))
	it.see(out.Object)
	return view{out.Object, err}
}

// write writes an object as it was read.
func (it *item) write(ctx context.Context, s *side, version string, object, stored []byte) (*schema.Result, error) {
	return s.Version(version).Update(ctx, object, stored, it.converting(s), schema.FieldValidation(metav1.FieldValidationIgnore))
}

// converting is the conversion of a release. A webhook is not asked the same twice.
func (it *item) converting(s *side) schema.Option {
	return schema.Convert(func(ctx context.Context, object []byte, to runtimeschema.GroupVersion) ([]byte, error) {
		same := func(q *question) bool { return q.side == s && q.to == to && bytes.Equal(q.object, object) }
		if i := slices.IndexFunc(it.asked, same); i >= 0 {
			return it.asked[i].answer, it.asked[i].err
		}
		q := &question{item: it, side: s, object: object, to: to}
		it.asked = append(it.asked, q)
		return it.batch.convert(ctx, q)
	})
}

// compare adds how a view differs from the one before. An object that could not be read before is left out.
func (it *item) compare(step Step, version string, s *side, before, after view) {
	if before.err != nil || after.err != nil {
		if before.err == nil {
			it.fail(step, Unreadable, version, after.err)
		}
		return
	}
	it.found = append(it.found, it.changes(step, version, s, before.object, after.object)...)
}

// changes returns how an object differs from the one before.
func (it *item) changes(step Step, version string, s *side, before, after []byte) (all []found) {
	if bytes.Equal(before, after) {
		return nil
	}
	in := s.Version(version)
	if step == Update {
		in = s.Version(s.StorageVersion())
	}
	jsondiff.Walk(contents(before), contents(after), func(d jsondiff.Difference) {
		f := found{cause: cause{Kind: it.kind.String(), Step: step, Effect: Changed, Version: version}, before: d.Before, after: d.After}
		if !d.Was {
			f.Effect = Added
		} else if !d.Is {
			f.Effect = Removed
		}
		for at, i := in.Structural(), 0; i < len(d.Path); i++ {
			f.Path, at = member(at, f.Path, d.Path[i])
		}
		all = append(all, f)
	})
	return all
}

// fail adds the causes of an error, if there is one.
func (it *item) fail(step Step, effect Effect, version string, err error) {
	if err == nil {
		return
	}
	f := found{cause: cause{Kind: it.kind.String(), Step: step, Effect: effect, Version: version}, message: err.Error()}
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil || len(status.Status().Details.Causes) == 0 {
		it.found = append(it.found, f)
		return
	}
	for _, c := range status.Status().Details.Causes {
		f.Path, f.message = logtext.AnyIndex(c.Field), c.Message
		it.found = append(it.found, f)
	}
}

// general makes the message of an error that of all objects with the same cause.
func (it *item) general(message string) string {
	if it.name != "" {
		message = strings.ReplaceAll(message, it.kind.Kind+" "+it.name, it.kind.Kind)
	}
	return logtext.General(message)
}

// see keeps a form of the object.
func (it *item) see(form []byte) {
	if len(it.redact) > 0 {
		it.seen = append(it.seen, form)
	}
}

// skip records what is not rehearsed.
func (r *rehearsal) skip(what string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.unchecked[what] = true
}
