package equivalence

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"regexp"
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/crdkit/crdkit/internal/choices"
	"github.com/crdkit/crdkit/internal/jsondiff"
	"github.com/crdkit/crdkit/internal/logtext"
	"github.com/crdkit/crdkit/internal/shrink"
)

// write is a request to both releases.
type write struct {
	kind      *kind
	createdAs *kind // in another version, or nil
	op        Operation
	user      rest.ImpersonationConfig
	creator   rest.ImpersonationConfig
	namespace string
	name      string         // of a stored object, or one that rules mention; otherwise that of the worker
	stored    bool           // before the first request
	object    map[string]any // nil for a deletion
	old       map[string]any // nil for a creation
}

// worker sends some of the requests.
type worker struct {
	*comparison
	number, left    int
	made            int // objects
	names           int // that were used
	random          *rand.Rand
	pool, generated map[*kind][]map[string]any // objects that both releases accept, and generated ones
}

// round creates an object, updates it, and deletes it.
func (w *worker) round(ctx context.Context) {
	k, namespace := pick(w.random, w.kinds), ""
	if k.namespaced {
		namespace = pick(w.random, w.namespaceNames())
	}
	w.names++ // an object of the last round may be left
	fresh := w.generate(k)
	if ctx.Err() != nil {
		return
	}
	e := &editor{w.random, w.rules.all, w.bounds.all, w.generated[k]}
	object := fresh
	if pool := w.pool[k]; len(pool) > 0 && w.random.IntN(4) > 0 {
		object = e.edit(pick(w.random, pool))
	} else if w.random.IntN(4) == 0 {
		object = e.edit(object)
	}
	if len(w.objectLabels) > 0 && w.random.IntN(4) == 0 {
		object = runtime.DeepCopyJSON(object)
		label := pick(w.random, w.objectLabels)
		_ = unstructured.SetNestedField(object, label[1], "metadata", "labels", label[0]) // unless the labels are no map
	}
	user := pick(w.random, w.users)
	created := write{kind: k, op: Create, user: user, creator: user, namespace: namespace, object: object}
	if len(w.objectNames) > 0 && w.random.IntN(2) == 0 {
		created.name = pick(w.random, w.objectNames)
		k.named.Lock()
		defer k.named.Unlock()
	}
	now := w.both(ctx, created, state{})
	if now.same {
		w.keep(k, now.object)
		if len(k.others) > 0 && w.random.IntN(2) == 0 { // what is stored differs if another version does
			read := created
			read.kind, read.createdAs, read.op, read.object, read.old = pick(w.random, k.others), k, Read, nil, now.object
			if now = w.both(ctx, read, now); !now.same {
				w.cleanUp(ctx, created)
				return
			}
			k, created.kind = read.kind, read.kind
			e.others = append(slices.Clip(w.generated[k]), now.object)
		}
		for i := range 3 {
			next := created
			next.op, next.user, next.old = Update, pick(w.random, w.users), now.object
			if k.hasStatus && w.random.IntN(2+i) == 0 {
				next.op, next.object = UpdateStatus, e.editStatus(now.object)
			} else {
				next.object = e.edit(now.object)
			}
			if w.random.IntN(8) == 0 {
				next.object = fresh
			}
			var ok bool
			if now, ok = w.update(ctx, next, now); !ok {
				w.cleanUp(ctx, created)
				return
			}
		}
		last := created
		last.op, last.user, last.object, last.old = Delete, pick(w.random, w.users), nil, now.object
		now = w.both(ctx, last, now)
		now.exists = !now.same
	}
	if now.exists {
		w.cleanUp(ctx, created)
	}
}

// replay reads a stored object in each version, and updates it.
func (w *worker) replay(ctx context.Context, object map[string]any) {
	u := unstructured.Unstructured{Object: object}
	for _, k := range w.kinds {
		if k.gvk.GroupKind() != u.GroupVersionKind().GroupKind() {
			continue
		}
		request := write{kind: k, op: Read, user: w.users[0], name: u.GetName(), stored: true, old: object}
		if k.namespaced {
			request.namespace = cmp.Or(u.GetNamespace(), metav1.NamespaceDefault)
		}
		now := w.both(ctx, request, state{})
		if !now.same {
			continue
		}
		w.keep(k, now.object)
		e := &editor{w.random, w.rules.all, w.bounds.all, append(w.generated[k], now.object)}
		operations := []Operation{Update}
		if k.hasStatus {
			operations = append(operations, UpdateStatus)
		}
		ok := false
		for _, request.user = range w.users {
			for _, request.op = range operations {
				request.old, request.object = now.object, now.object
				if now, ok = w.update(ctx, request, now); !ok {
					return
				}
			}
		}
		for range 3 {
			request.op, request.user = Update, pick(w.random, w.users)
			request.old, request.object = now.object, e.edit(now.object)
			if now, ok = w.update(ctx, request, now); !ok {
				return
			}
		}
	}
}

// update sends an update of an object, and returns its state. It reports whether that is the same in both releases.
func (w *worker) update(ctx context.Context, request write, now state) (_ state, ok bool) {
	updated := w.both(ctx, request, now)
	if updated.same {
		return updated, true
	}
	return now, !updated.exists
}

// maxPool is how many objects a worker keeps of each kind.
const maxPool = 64

// keep adds an accepted object to those that are edited.
func (w *worker) keep(k *kind, object map[string]any) {
	if w.pool == nil {
		w.pool = map[*kind][]map[string]any{}
	}
	if len(w.pool[k]) < maxPool {
		w.pool[k] = append(w.pool[k], object)
	} else {
		w.pool[k][w.random.IntN(maxPool)] = object
	}
}

// generate returns a sample or a generated object, which is a new one in half of the cases.
func (w *worker) generate(k *kind) map[string]any {
	if known := w.generated[k]; len(known) > 8 && w.random.IntN(2) > 0 {
		return pick(w.random, known)
	}
	w.made++
	var object map[string]any
	if len(k.samples) > 0 && (len(k.makers) == 0 || w.random.IntN(4) == 0) {
		object = pick(w.random, k.samples)
	} else {
		var err error
		object, err = k.makers[w.made%len(k.makers)].Object(choices.New(w.seed, fmt.Sprint(k.gvk, w.number), w.made))
		if err != nil {
			w.abort(err)
			return map[string]any{}
		}
	}
	if w.generated == nil {
		w.generated = map[*kind][]map[string]any{}
	}
	w.generated[k] = append(w.generated[k], object)
	if len(w.generated[k]) > maxPool {
		w.generated[k] = w.generated[k][1:]
	}
	return object
}

// name returns the name of the object of the worker. Workers have objects of their own.
func (w *worker) name() string {
	name := "worker" + strconv.Itoa(w.number)
	if w.number >= workers {
		name = string(rune('x' + w.number - workers)) // in the report
	}
	if w.names > 0 {
		name += "-" + strconv.Itoa(w.names)
	}
	return name
}

// nameOf returns the name of the object of a request.
func (w *worker) nameOf(write write) string { return cmp.Or(write.name, w.name()) }

// named returns the object of a request with its name, and with no other metadata than labels and annotations; a stored object
// also keeps its finalizers and owners.
func (w *worker) named(write write) map[string]any {
	if write.object == nil {
		return nil
	}
	u := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(write.object)}
	metadata, kept := map[string]any{"name": w.nameOf(write)}, []string{"labels", "annotations"}
	if write.stored {
		kept = append(kept, "finalizers", "ownerReferences")
	}
	if old, ok := u.Object["metadata"].(map[string]any); ok {
		for _, name := range kept {
			if value, ok := old[name]; ok {
				metadata[name] = value
			}
		}
	}
	if write.kind.namespaced {
		metadata["namespace"] = write.namespace
	}
	u.Object["metadata"] = metadata
	u.SetGroupVersionKind(write.kind.gvk)
	return u.Object
}

// state is what both releases have after a request.
type state struct {
	object   map[string]any
	versions [2]string // of the resource
	same     bool      // both allow the request, and any difference is expected
	exists   bool      // a release allows the request
}

// ruleSample is how many allowed requests there are for each one in which the rules of schemas are counted.
const ruleSample = 4

// both sends a request to both releases, which have the given state.
func (w *worker) both(ctx context.Context, write write, now state) state {
	write.object = w.named(write)
	d, r := w.ask(ctx, write, now.versions)
	w.left--
	if ctx.Err() != nil {
		return state{}
	}
	for i, s := range w.sides {
		if !r[i].Allowed || w.left%ruleSample == 0 {
			s.countRulesOf(ctx, write, r[i])
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sent++
	same := d == nil || w.add(d)
	now = state{r[0].object, [2]string{r[0].version, r[1].version}, same && r[0].Allowed && r[1].Allowed, r[0].Allowed || r[1].Allowed}
	if now.same && write.op == Create {
		write.kind.created++
	}
	return now
}

// expect returns the reason why a difference is expected, or an empty text.
func (c *comparison) expect(d *Difference) string {
	for _, e := range c.expected {
		if e.applies(*d) {
			return e.reason
		}
	}
	return ""
}

// add adds a difference, unless it is expected, or a smaller one is known. It reports whether it is expected.
func (c *comparison) add(d *Difference) (expected bool) {
	if reason := c.expect(d); reason != "" {
		c.declared[reason]++
		return true
	}
	size := func(d *Difference) string { return fmt.Sprintf("%9d%s%s", len(d.Object)+len(d.Old), d.Object, d.Old) }
	if known := c.found[d.key]; known == nil || size(d) < size(known) {
		c.found[d.key] = d
	}
	return false
}

// ask sends a request to both releases, and compares the responses. The difference is nil if the responses agree.
func (w *worker) ask(ctx context.Context, write write, versions [2]string) (*Difference, [2]response) {
	var r [2]response
	name := w.nameOf(write)
	for i, s := range w.sides {
		object := write.object
		if versions[i] != "" && object != nil {
			u := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(object)}
			u.SetResourceVersion(versions[i])
			object = u.Object
		}
		r[i] = s.send(ctx, write.kind, write.op, write.user, write.namespace, name, object)
		if r[i].fault != nil {
			if ctx.Err() == nil {
				w.abort(fmt.Errorf("%s: %s %s: %w", s.name, write.op, write.kind.gvk, r[i].fault))
			}
			return nil, r
		}
	}
	d := &Difference{Kind: write.kind.gvk, Operation: write.op, User: write.user, Before: r[0].Response, After: r[1].Response, write: write}
	d.key = signature{write.kind, write.op, "", ""}
	switch {
	case r[0].Allowed != r[1].Allowed:
		d.key.how, d.key.text = "denied before", d.Before.general(name)
		if r[0].Allowed {
			d.key.how, d.key.text = "denied after", d.After.general(name)
		}
	case !r[0].Allowed:
		return nil, r
	default:
		jsondiff.Walk(r[0].object, r[1].object, func(found jsondiff.Difference) {
			d.Changed = append(d.Changed, found.Where())
		})
		if len(d.Changed) == 0 {
			return nil, r
		}
		d.key.how, d.key.text = "changed", logtext.AnyIndex(d.Changed[0])
	}
	d.Object, d.Old = jsonOf(write.object), jsonOf(write.old)
	d.Before.Object, d.After.Object = jsonOf(r[0].object), jsonOf(r[1].object)
	return d, r
}

// signature is what differences with one cause have in common.
type signature struct {
	kind      *kind
	op        Operation
	how, text string
}

var objects = regexp.MustCompile(`\{.*\}`)

// general returns why a request is denied, without values and the name of the object.
func (r Response) general(name string) string {
	text := r.Message
	if len(r.Causes) > 0 {
		// They come in an order that changes.
		first := slices.MinFunc(r.Causes, func(a, b metav1.StatusCause) int {
			return cmp.Or(cmp.Compare(a.Field, b.Field), cmp.Compare(a.Message, b.Message))
		})
		text = first.Field + ": " + first.Message
	}
	text = regexp.MustCompile(`\b`+name+`\b`).ReplaceAllString(text, "…")
	return objects.ReplaceAllString(logtext.General(text), "…")
}

func jsonOf(object map[string]any) json.RawMessage {
	if object == nil {
		return nil
	}
	text, _ := json.Marshal(object) // what was JSON is JSON
	return text
}

// cleanUp deletes what is left of an object. If it remains in a release, the worker goes on with another name.
func (w *worker) cleanUp(ctx context.Context, created write) {
	denied := false
	for _, s := range w.sides {
		r := s.send(ctx, created.kind, Delete, rest.ImpersonationConfig{}, created.namespace, w.nameOf(created), nil)
		denied = denied || r.remains || !r.Allowed && r.code != http.StatusNotFound
	}
	if denied {
		w.names++
	}
}

// again sends the request of a difference once more, with other objects, and returns the difference.
func (w *worker) again(ctx context.Context, write write) *Difference {
	create, versions := write, [2]string{}
	if write.op != Create {
		create.kind, create.op, create.user, create.object, create.old = cmp.Or(write.createdAs, write.kind), Create, write.creator, write.old, nil
		create.object = w.named(create)
		d, r := w.ask(ctx, create, versions)
		if r[0].Allowed || r[1].Allowed {
			defer w.cleanUp(ctx, create)
		}
		if d != nil && w.expect(d) == "" || !r[0].Allowed || !r[1].Allowed {
			return nil
		}
		write.old, versions = r[0].object, [2]string{r[0].version, r[1].version}
	}
	write.object = w.named(write)
	d, r := w.ask(ctx, write, versions)
	if write.op == Create && (r[0].Allowed || r[1].Allowed) {
		w.cleanUp(ctx, create)
	}
	return d
}

// shrinkTries is how many requests are tried to make a difference smaller. Those that exceed the cost limit of an expression take two
// minutes in all.
const shrinkTries = 300

// shrink makes the request of a difference smaller.
func (w *worker) shrink(ctx context.Context, d *Difference) {
	tries := 0
	keep := func(write write) bool {
		tries++
		got := w.again(ctx, write)
		if got == nil || got.key != d.key || w.expect(got) != "" || len(got.Object)+len(got.Old) > len(d.Object)+len(d.Old) {
			return false
		}
		*d = *got
		return true
	}
	if d.write.stored {
		return // an object that may be stored, but not created
	}
	if d.write.name != "" {
		d.write.kind.named.Lock()
		defer d.write.kind.named.Unlock()
	}
	if !keep(d.write) {
		return
	}
	over := func() bool { return tries >= shrinkTries || ctx.Err() != nil }
	shrink.Objects([]map[string]any{d.write.object, d.write.old}, over, func(objects []map[string]any) bool {
		next := d.write
		next.object, next.old = objects[0], objects[1]
		return keep(next)
	})
}
