package roundtrip

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime/debug"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"

	"github.com/crdkit/crdkit/internal/draw"
)

// made is what a law is checked with: the JSON of an object, or a Go value for laws that
// are about values.
type made struct {
	json  []byte
	value runtime.Object
}

// text is what a reader sees of it, and what its size is measured by.
func (m made) text() (text []byte) {
	if m.value == nil {
		return m.json
	}
	defer func() {
		if recover() != nil {
			text = fmt.Appendf(nil, "%+v", m.value)
		}
	}()
	text, err := json.Marshal(m.value.DeepCopyObject()) // which may change it
	if err != nil {
		return fmt.Appendf(nil, "%+v", m.value)
	}
	return text
}

// make makes an object of draws.
func (s *subject) make(ctx context.Context, src *draw.Source) (m made, err error) {
	if s.checkValue == nil {
		m.json, err = s.object(ctx, src)
	} else {
		m.value, err = s.start.(*typeGenerator).value(src)
	}
	return m, err
}

// nth makes object number i, and returns the source that it is made of.
func (s *subject) nth(ctx context.Context, i int) (*draw.Source, made, error) {
	name := s.String()
	if s.pool != nil {
		if i < len(s.pool.objects) {
			return s.pool.sources[i], s.pool.objects[i], nil
		}
		name = s.pool.name
	}
	src := draw.New(s.cfg.seed, name, i)
	m, err := s.make(ctx, src)
	if s.pool != nil && err == nil {
		s.pool.add(i, src, m)
	}
	return src, m, err
}

// pool keeps objects for several laws, none of which changes them: to make them takes as
// long as to check a law.
type pool struct {
	name    string // of the draws
	sources []*draw.Source
	objects []made
}

// pooled is how many objects are kept at most.
const pooled = 250

func (p *pool) add(i int, src *draw.Source, m made) {
	if i == len(p.objects) && i < pooled {
		p.sources, p.objects = append(p.sources, src), append(p.objects, m)
	}
}

// broken returns how an object breaks the law; nil if it does not.
func (s *subject) broken(ctx context.Context, m made) (f *failure) {
	if s.checkValue == nil {
		return s.check(ctx, s, m.json)
	}
	defer func() {
		if v := recover(); v != nil {
			klog.FromContext(ctx).Error(nil, "panic", "stack", string(debug.Stack())) // for stackOf
			f = &failure{err: fmt.Errorf("panic: %v", v)}
		}
	}()
	return s.checkValue(s, m.value)
}
