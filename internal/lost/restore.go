package lost

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"

	"github.com/crdkit/crdkit/internal/listmapkeys"
	"github.com/crdkit/crdkit/internal/logtext"
	"github.com/crdkit/crdkit/internal/merge"
)

// Restorer restores the fields of an annotation.
type Restorer struct {
	*Settings
	Kind, Namespace, Name string // of the object, for the log
	Spoke                 string // the version; empty for any version
	ToHub, ToSpoke        Convert
	// Earlier returns what is known of the hub for which an annotation was made, which may have
	// been that of an earlier release.
	Earlier func(version string) (Hub, error)
	// Check returns an error for a restored hub that is not valid, such as that of Verify.
	Check func(ctx context.Context, hub Payload) error
}

// Hub is the hub for which an annotation was made.
type Hub struct {
	From, To Convert                  // from and to the hub of this release; nil if it is the same
	Lists    *listmapkeys.Tree        // the keys of the lists of the hub of this release
	Maps     func() *listmapkeys.Tree // which objects have fields of any name
}

func same(_ context.Context, p Payload) (Payload, error) { return p, nil }

// Restore returns the hub with the fields of an annotation. The spoke is without the annotation, and
// hub is what it is converted to. If the annotation is invalid, Restore returns a field error, or the hub
// as it is if Drop is set.
func (r *Restorer) Restore(ctx context.Context, spoke, hub Payload, text string) (Payload, error) {
	restored, err := r.restore(ctx, spoke.Without(r.Copies...), hub, text)
	restored = restored.Without(r.Copies...)
	if err == nil {
		err = r.Check(ctx, restored)
	}
	switch {
	case err == nil:
		return restored, nil
	case ctx.Err() != nil: // then the annotation may be valid
		return Payload{}, fmt.Errorf("%s: %w", Field(), ctx.Err())
	case r.Drop:
		klog.FromContext(ctx).Info("Dropped what a spoke cannot express", "kind", logtext.Text(r.Kind),
			"object", klog.KRef(logtext.Text(r.Namespace), logtext.Text(r.Name)),
			"reason", logtext.Text(fmt.Sprintf("%s: %v", Field(), err)))
		return hub, nil
	}
	return Payload{}, invalid(err)
}

func (r *Restorer) restore(ctx context.Context, spoke, hub Payload, text string) (Payload, error) {
	n, err := readNote(text, r.Spoke)
	if err != nil {
		return Payload{}, err
	}
	if n.Gzip != nil {
		if n.Lost, err = unpack(n.Gzip); err != nil {
			return Payload{}, fmt.Errorf("gzip: %w", err)
		}
	}
	changes, err := merge.Parse(n.Lost)
	if err != nil {
		return Payload{}, err
	}
	read, err := spoke.Read()
	if err != nil {
		return Payload{}, err
	}
	then, err := r.Earlier(n.Hub)
	if err != nil {
		return Payload{}, fmt.Errorf("recorded for the hub %q: %w", n.Hub, err)
	}
	if then.From == nil {
		then.From, then.To = same, same
	}
	if len(changes) == 0 {
		return hub, nil
	}
	m := restoration{Restorer: r, spoke: n.Spoke, then: then, work: 4<<20 + 32*len(hub.Body), hub: hub, written: spoke, unedited: read.Hash() == n.Of}
	if m.base, err = then.To(ctx, hub); err == nil {
		m.own, err = m.toSpoke(ctx, hub)
	}
	if err != nil {
		return Payload{}, unrelated{fmt.Errorf("converting from the hub, to restore %s: %w", Field(), err)}
	}
	return m.restore(ctx, changes)
}

// restoration applies the changes of an annotation to a hub object. It leaves out changes that
// would change the spoke, because they contradict an edit of the user.
type restoration struct {
	*Restorer
	changes  merge.Changes
	modes    []merge.Mode // of the changes, in the next attempt
	spoke    string       // its version
	then     Hub
	work     int     // how many bytes may be converted to find out which single changes show
	hub      Payload // without any changes
	base     Payload // the same for the hub that the changes were made for
	own      Payload // the spoke that hub is converted to
	written  Payload // the spoke, as the user wrote it
	unedited bool    // whether the spoke is the one that the note was made with
	views    *views  // nil if not needed yet: they take many times the memory of their text
}

// views are what outcomes are compared with if their text differs: the spoke as the user wrote it, the
// spoke that the hub object is converted to, and the hub object that this spoke is converted to.
// The last two are compared, because the functions may not restore the object exactly.
type views struct {
	written, spoke, hub merge.Object
}

// outcome is the result of applying some changes.
type outcome struct {
	hub   Payload
	spoke Payload
	void  []int // changes that had no effect
}

// restore applies the changes that do not change the spoke. If the spoke has not been
// edited, all of them must be applied.
func (m *restoration) restore(ctx context.Context, changes merge.Changes) (Payload, error) {
	if m.unedited {
		m.changes = changes
		return m.all(ctx)
	}
	m.changes = changes.Parts()
	m.modes = slices.Repeat([]merge.Mode{merge.Never}, len(m.changes))
	good, err := m.add(ctx, &outcome{hub: m.hub}, m.changes.Choices(), merge.Unedited)
	if err == nil && len(good.void) > 0 {
		// A void note shows nowhere, so its value may still be one that only the hub can express.
		good, err = m.add(ctx, good, good.void, merge.Always)
	}
	if err != nil {
		return Payload{}, err
	}
	return good.hub, nil
}

// all applies all changes to an object whose spoke has not been edited. The converted
// object may still differ from the original, because functions of another release may have
// converted it.
func (m *restoration) all(ctx context.Context) (Payload, error) {
	m.modes = slices.Repeat([]merge.Mode{merge.Always}, len(m.changes))
	made, err := m.attempt(ctx)
	if err != nil {
		return Payload{}, err
	}
	if len(made.void) > 0 {
		return Payload{}, fmt.Errorf("%s: cannot be restored in the result of the current conversion from %s", m.changes[made.void[0]].Path(), m.spoke)
	}
	differences, err := m.shows(ctx, made)
	if err != nil || len(differences) == 0 {
		return made.hub, err
	}
	// This release may show more fields in the spoke than the release that wrote the
	// annotation. That adds to the spoke, and does not contradict it.
	larger, err := made.spoke.Read()
	if err != nil {
		return Payload{}, err
	}
	if m.views.written.Within(larger) || m.views.spoke.Within(larger) {
		return made.hub, nil
	}
	return Payload{}, fmt.Errorf("%s: would change the object in version %s", differences[differences.Choices()[0]].Path(), m.spoke)
}

// add applies more changes, which were left out or void, in another mode. It returns the
// outcome with the changes that do not change the spoke.
func (m *restoration) add(ctx context.Context, good *outcome, more []int, mode merge.Mode) (*outcome, error) {
	leave := merge.Never
	if mode == merge.Always {
		leave = merge.Unedited // they are void then
	}
	// All of them, and then without those that are nearest to what shows.
	var blamed [][]int
	m.set(more, mode)
	for len(more) > 0 {
		if m.work <= 0 || ctx.Err() != nil {
			m.set(more, leave)
			return good, ctx.Err()
		}
		made, nearest, err := m.try(ctx, more)
		if err != nil {
			return nil, err
		}
		if nearest == nil {
			good = made
			break
		}
		m.set(slices.Concat(nearest...), leave)
		blamed = append(blamed, nearest...)
		more = slices.DeleteFunc(slices.Clone(more), func(i int) bool { return m.modes[i] == leave })
	}
	return m.acquit(ctx, good, blamed, mode, leave)
}

// acquit applies those changes that were left out only because they were blamed together with
// others: each round tries one part of each set.
func (m *restoration) acquit(ctx context.Context, good *outcome, blamed [][]int, mode, leave merge.Mode) (*outcome, error) {
	var untried [][][]int // the parts of each set
	for _, some := range blamed {
		if len(some) > 1 {
			untried = append(untried, halves(some))
		}
	}
	for len(untried) > 0 && m.work > 0 {
		tried := make([][]int, len(untried))
		for n, parts := range untried {
			tried[n], untried[n] = parts[0], parts[1:]
		}
		active := slices.Concat(tried...)
		m.set(active, mode)
		made, blamed, err := m.try(ctx, active)
		if err != nil {
			return nil, err
		}
		if blamed == nil {
			good = made
		} else {
			m.set(active, leave)
			guilty := sets.New(slices.Concat(blamed...)...)
			for n, some := range tried {
				if !guilty.HasAny(some...) {
					untried[n] = append(untried[n], some) // again, without the guilty ones
				} else if len(some) > 1 {
					untried[n] = append(untried[n], halves(some)...)
				}
			}
		}
		untried = slices.DeleteFunc(untried, func(parts [][]int) bool { return len(parts) == 0 })
	}
	return good, ctx.Err()
}

// set sets the mode of some changes.
func (m *restoration) set(some []int, mode merge.Mode) {
	for _, i := range some {
		m.modes[i] = mode
	}
}

// try applies the changes. If they change the spoke, it returns sets of active changes that may
// have caused this; otherwise nil.
func (m *restoration) try(ctx context.Context, active []int) (*outcome, [][]int, error) {
	made, err := m.attempt(ctx)
	switch {
	case err == nil:
	case m.modes[active[0]] == merge.Always && ctx.Err() == nil:
		return nil, [][]int{active}, nil // the functions reject the changes: they contradict an edit
	default:
		return nil, nil, err
	}
	differences, err := m.shows(ctx, made)
	if err != nil {
		return nil, nil, err
	}
	if len(differences) == 0 {
		return made, nil, nil
	}
	if nearest := m.changes.Near(active, differences); len(nearest) > 0 {
		return nil, nearest, nil
	}
	return nil, [][]int{active}, nil
}

// attempt applies the changes, and converts the result to the spoke.
func (m *restoration) attempt(ctx context.Context) (*outcome, error) {
	document, err := m.base.Document()
	if err != nil {
		return nil, err
	}
	m.work -= len(document) + 1<<10
	made := &outcome{}
	if document, made.void, err = m.changes.Apply(document, m.then.Lists, m.then.Maps, m.modes, m.unedited); err != nil {
		return nil, err
	}
	then, err := payloadOf(document)
	if err != nil {
		return nil, err
	}
	// A hub with the annotation would restore again, in methods that call lossless.Restore.
	if made.hub, err = m.then.From(ctx, then.Without(Annotation)); err != nil {
		return nil, err
	}
	made.spoke, err = m.toSpoke(ctx, made.hub)
	return made, err
}

// toSpoke converts to the spoke, without the annotations that no user edits.
func (m *restoration) toSpoke(ctx context.Context, hub Payload) (Payload, error) {
	spoke, err := m.ToSpoke(ctx, hub)
	return spoke.Without(Annotation).Without(m.Copies...), err
}

// shows returns the differences between the hub object with and without changes, as far as
// the spoke shows them.
func (m *restoration) shows(ctx context.Context, made *outcome) (merge.Changes, error) {
	if made.spoke.SameMetadata(m.own) && bytes.Equal(made.spoke.Body, m.own.Body) {
		return nil, nil
	}
	if m.views == nil {
		if err := m.view(ctx); err != nil {
			return nil, err
		}
	}
	spoke, err := made.spoke.Read()
	if err != nil || spoke.Equal(m.views.written) || spoke.Equal(m.views.spoke) {
		return nil, err
	}
	back, err := m.ToHub(ctx, made.spoke)
	if err != nil {
		return nil, err
	}
	hub, err := back.Read()
	if err != nil {
		return nil, err
	}
	return m.views.hub.Diff(hub, m.then.Lists), nil
}

// view makes the views.
func (m *restoration) view(ctx context.Context) (err error) {
	hub, err := m.ToHub(ctx, m.own)
	if err != nil {
		return unrelated{err}
	}
	m.views = &views{}
	for object, from := range map[*merge.Object]Payload{&m.views.written: m.written, &m.views.spoke: m.own, &m.views.hub: hub} {
		if *object, err = from.Read(); err != nil {
			return err
		}
	}
	return nil
}

// halves returns two parts of some changes.
func halves(some []int) [][]int { return [][]int{some[:len(some)/2], some[len(some)/2:]} }
