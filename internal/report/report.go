// Package report reports what a replica changes in the cluster on its own: with a log line, an
// Event on the object, and a count for metrics.
package report

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/klog/v2"
)

const (
	// A change that repeats is logged, and written as an Event, that often at once, and then once in
	// a while with the number of repetitions. Otherwise a fight with another writer would fill the
	// log and the API server.
	burst    = 10
	interval = 5 * time.Minute
	timeout  = 10 * time.Second // of the request that creates an Event
	// noteLength is the limit of events.k8s.io/v1 for a message
	// (kubernetes/pkg/apis/core/validation/events.go).
	noteLength = 1024
)

// Change is a change of an object, or of what a replica trusts.
type Change struct {
	Reason  string // of the Event, and the label of the metric
	Message string // of the log line and the Event
	Values  []any  // keys and values for the log line and the Event
	// Warning makes the log line an error, with this cause, and the Event a warning.
	Warning error
}

// Object is an object about which a replica reports. Its methods are safe for concurrent use.
type Object struct {
	ref       corev1.ObjectReference
	component string
	counts    map[string]*count // by reasons

	mu      sync.Mutex
	refused bool // the permission to create Events is missing
	writing sync.WaitGroup
}

type count struct {
	total, repeated int
	since           time.Time // the first change that has not been reported
	limit           *rate.Limiter
}

// New returns an Object. The reference has no UID. The component is the name of the controller in
// Events. The reasons are those of all changes.
func New(ref corev1.ObjectReference, component string, reasons ...string) *Object {
	o := &Object{ref: ref, component: component, counts: map[string]*count{}}
	for _, reason := range reasons {
		o.counts[reason] = &count{limit: rate.NewLimiter(rate.Every(interval), burst)}
	}
	return o
}

// Totals yields how often there was a change of each reason, in alphabetical order. A reason
// without changes has the total 0, because Prometheus does not see the first increase of a counter
// otherwise.
func (o *Object) Totals(yield func(kind, name, reason string, total int)) {
	for _, reason := range slices.Sorted(maps.Keys(o.counts)) {
		o.mu.Lock()
		total := o.counts[reason].total
		o.mu.Unlock()
		yield(o.ref.Kind, o.ref.Name, reason, total)
	}
}

// Report reports a change: it counts it, logs it with the logger of ctx, which should have the
// object among its values, and creates an Event in the background.
func (o *Object) Report(ctx context.Context, client dynamic.Interface, uid types.UID, c Change) {
	o.mu.Lock()
	n := o.counts[c.Reason]
	now := time.Now()
	if n.total, n.repeated = n.total+1, n.repeated+1; n.repeated == 1 {
		n.since = now
	}
	times, since := n.repeated, n.since
	reported := n.limit.Allow()
	if reported {
		n.repeated = 0
	}
	o.mu.Unlock()
	if !reported {
		return
	}
	values := append([]any{"reason", c.Reason}, c.Values...)
	if times > 1 {
		values = append(values, "times", times)
	}
	kind := corev1.EventTypeNormal
	if c.Warning == nil {
		klog.FromContext(ctx).Info(c.Message, values...)
	} else {
		kind = corev1.EventTypeWarning
		klog.FromContext(ctx).Error(c.Warning, c.Message, values...)
	}
	host, _ := os.Hostname() // the name of the Pod
	event := &corev1.Event{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Event"},
		// The API server accepts Events on cluster-scoped objects in this namespace
		// (kubernetes/pkg/apis/core/validation/events.go, legacyValidateEvent).
		ObjectMeta:          metav1.ObjectMeta{Namespace: cmp.Or(o.ref.Namespace, metav1.NamespaceDefault), GenerateName: o.ref.Name + "."},
		InvolvedObject:      o.ref,
		Reason:              c.Reason,
		Message:             c.text(),
		Type:                kind,
		Count:               int32(times),
		FirstTimestamp:      metav1.NewTime(since),
		LastTimestamp:       metav1.NewTime(now),
		Source:              corev1.EventSource{Component: o.component, Host: host},
		ReportingController: o.component,
		ReportingInstance:   host,
	}
	event.InvolvedObject.UID = uid
	o.writing.Go(func() { o.create(ctx, client, event) })
}

// text returns the message of an Event.
func (c Change) text() string {
	var b strings.Builder
	b.WriteString(c.Message)
	if c.Warning != nil {
		fmt.Fprintf(&b, ": %s", c.Warning)
	}
	for i := 0; i+1 < len(c.Values); i += 2 {
		fmt.Fprintf(&b, "; %s: %v", c.Values[i], c.Values[i+1])
	}
	text := b.String()
	return strings.ToValidUTF8(text[:min(len(text), noteLength)], "")
}

// create creates an Event. Without the permission, this is logged once.
func (o *Object) create(ctx context.Context, client dynamic.Interface, event *corev1.Event) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(event)
	if err == nil {
		_, err = client.Resource(corev1.SchemeGroupVersion.WithResource("events")).Namespace(event.Namespace).
			Create(ctx, &unstructured.Unstructured{Object: fields}, metav1.CreateOptions{})
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if err == nil || o.refused || ctx.Err() != nil {
		return
	}
	o.refused = apierrors.IsForbidden(err)
	klog.FromContext(ctx).Info("Cannot create an Event on the object", "err", err)
}

// Wait waits until all Events have been created. Call it after the last call of Report.
func (o *Object) Wait() { o.writing.Wait() }
