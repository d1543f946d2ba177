package conversion

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Observation is the outcome of a ConversionReview.
type Observation struct {
	// To is the desired version of the review.
	To schema.GroupVersion
	// Objects counts the objects of the review by their kind and version, including objects that
	// had the desired version already. Objects of a kind or version that the registry does not know
	// are counted under the empty kind. The map is empty if the review failed.
	Objects map[schema.GroupVersionKind]int
	// Failed is the kind and version of the first object that failed. It is empty if no object
	// failed, or if the registry does not know the kind and version, because the names that a
	// client sends must not become labels of a metric.
	Failed schema.GroupVersionKind
	// Err is the reason why the review failed, or nil.
	Err error
	// Duration is the time that it took to convert the objects, without reading the review and
	// writing the answer.
	Duration time.Duration
}

// Observe registers a function that is called with the outcome of each review, before the review is
// answered, unless it cannot be read, has no desired version, or is refused for lack of memory. f must be safe for concurrent use.
// If several Observe options are given, their functions are called in the order of the options. Package
// conversion/metrics has an Observe option for Prometheus.
func Observe(f func(Observation)) Option {
	return func(h *handler) { h.observers = append(h.observers, f) }
}

// count adds n objects of a kind.
func (p *part) count(kind schema.GroupVersionKind, n int) {
	if p.seen == nil {
		p.seen = map[schema.GroupVersionKind]int{}
	}
	p.seen[kind] += n
}

// known returns the kind and version of an object, or the empty kind if the registry does not
// know them.
func (g graph) known(o *object) schema.GroupVersionKind {
	if gvk := o.gv.WithKind(o.kind); g.has(gvk) {
		return gvk
	}
	return schema.GroupVersionKind{}
}
