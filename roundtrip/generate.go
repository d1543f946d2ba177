package roundtrip

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/randfill"

	"github.com/crdkit/crdkit/conversion"
	"github.com/crdkit/crdkit/internal/draw"
	"github.com/crdkit/crdkit/internal/rawjson"
)

// generator makes objects of one version of a kind.
type generator struct {
	registry *conversion.Registry
	kind     schema.GroupVersionKind
	typed    schema.GroupVersionKind // the version that has a Go type
	filler   *randfill.Filler
}

// newGenerator returns an error if no version of the kind has a Go type, or if a function
// is none.
func newGenerator(reg *conversion.Registry, cfg *config, kind conversion.Kind, version string) (g *generator, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("roundtrip.Funcs: %v", v)
		}
	}()
	typed, err := typedVersion(reg, kind, version)
	if err != nil {
		return nil, err
	}
	// About as many elements as a reader would write into an example.
	filler := randfill.New().NilChance(0.2).NumElements(0, 3)
	filler.Funcs(fillers(typed.GroupVersion())...).Funcs(cfg.functions(reg.Scheme())...)
	return &generator{reg, kind.WithVersion(version), typed, filler}, nil
}

// typedVersion returns the version to generate objects in: the one that is wanted, or the
// newest one that has a Go type.
func typedVersion(reg *conversion.Registry, kind conversion.Kind, wanted string) (schema.GroupVersionKind, error) {
	var found schema.GroupVersionKind
	for _, v := range append(slices.Clip(kind.Versions), wanted) {
		if gvk := kind.WithVersion(v); reg.Scheme().Recognizes(gvk) {
			found = gvk
		}
	}
	if found.Empty() {
		return found, fmt.Errorf("no version of %s has a Go type to make objects of: register the type of one version in the scheme that the registry is made with", kind.GroupKind)
	}
	return found, nil
}

// object makes an object. It is an error if a function does not end, panics, or makes what
// is no object.
func (g *generator) object(ctx context.Context, src *draw.Source) (text []byte, err error) {
	defer func() {
		if v := recover(); v != nil {
			if endless, _ := v.(error); errors.Is(endless, draw.ErrEndless) {
				err = draw.ErrEndless
				return
			}
			err = fmt.Errorf("cannot make a %s: panic: %v: if the type is the reason, give a function for it with roundtrip.Funcs\n%s", g.typed, v, debug.Stack())
		}
	}()
	obj, err := g.registry.Scheme().New(g.typed)
	if err != nil {
		return nil, err
	}
	g.filler.RandSource(src).Fill(obj)
	obj.GetObjectKind().SetGroupVersionKind(g.typed)
	if text, err = json.Marshal(obj); err == nil {
		text, err = rewrite(g.registry.Scheme(), g.typed, text)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot make a %s: %w", g.typed, err)
	}
	if g.kind == g.typed {
		return text, nil
	}
	if text, err = g.registry.Convert(ctx, text, g.kind.GroupVersion()); err != nil {
		return nil, fmt.Errorf("version %s has no Go type, and an object of %s does not become one: %w", g.kind.Version, g.typed.Version, err)
	}
	return text, nil
}

// object makes an object for a subject.
func (s *subject) object(ctx context.Context, g *generator, src *draw.Source) ([]byte, error) {
	if s.law != Partial {
		return g.object(ctx, src)
	}
	keep := src.Uint64() // comes first: what else is drawn does not change what is kept
	text, err := g.object(ctx, src)
	if err != nil {
		return nil, err
	}
	return leaveOut(text, keep)
}

// rewrite returns what the Go type of a version writes when it has read an object. Not all
// that is made of a Go value is such a text: a Quantity of 1000 is 1k once it has been read.
func rewrite(s *runtime.Scheme, kind schema.GroupVersionKind, object []byte) ([]byte, error) {
	obj, err := s.New(kind)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(object, obj); err != nil {
		return nil, err
	}
	return json.Marshal(obj)
}

// leaveOut leaves out top-level members of an object, except for those that each object
// has. A member stays if its bit is set.
func leaveOut(object []byte, keep uint64) ([]byte, error) {
	out := object
	keep >>= 33 // math/rand takes the upper bits, and draw.Shrink tries these
	for member, err := range rawjson.Members(object) {
		if err != nil {
			return nil, err
		}
		switch string(member.Name) {
		case "apiVersion", "kind", "metadata":
			continue
		}
		if keep&1 == 0 {
			if out, err = rawjson.Set(out, string(member.Name), nil); err != nil {
				return nil, err
			}
		}
		keep >>= 1
	}
	return out, nil
}
