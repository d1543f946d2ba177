package conversion

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Observation is the outcome of one review.
type Observation struct {
	// To is the version that was asked for.
	To schema.GroupVersion
	// Objects says how many objects of each kind and version were converted, or had
	// the version already; those of kinds that the registry does not know count as the
	// empty kind. There are none if the review failed or was empty.
	Objects map[schema.GroupVersionKind]int
	// Failed is the kind and version of the first object that failed. It is empty if
	// none did, and if the registry does not know that kind and version: what a
	// client makes up is not for the label of a metric.
	Failed schema.GroupVersionKind
	// Err is why the review failed; nil if it did not.
	Err error
	// Duration is how long the conversion of the objects took, without reading the review
	// and writing the answer.
	Duration time.Duration
}

// Observe has a function called with each review that can be read and asks for a version,
// before it is answered. Package conversion/metrics has one for Prometheus. It may be
// called from several goroutines at a time.
func Observe(f func(Observation)) Option {
	return func(h *handler) { h.observe = f }
}

// count notes n objects of a kind.
func (b *batch) count(kind schema.GroupVersionKind, n int) {
	if b.seen == nil {
		b.seen = map[schema.GroupVersionKind]int{}
	}
	b.seen[kind] += n
}

// knownKind returns the kind and version of the converter's object; nothing if the
// registry does not know it.
func (c *converter) knownKind() schema.GroupVersionKind {
	gvk := c.object.gv.WithKind(c.object.kind)
	if k := c.registry.kinds[gvk.GroupKind()]; k != nil {
		if _, ok := k.routes[[2]string{gvk.Version, gvk.Version}]; ok {
			return gvk
		}
	}
	return schema.GroupVersionKind{}
}
