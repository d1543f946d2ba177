package generate

import (
	"math/rand"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/crdkit/crdkit/internal/draw"
)

// streams returns draws that begin with zero.
func streams(t *testing.T, n int) [][]uint64 {
	out := make([][]uint64, n)
	for seed := range out {
		r := rand.New(draw.New(1, t.Name(), seed))
		out[seed] = make([]uint64, 1+1<<12)
		for i := range out[seed][1:] {
			out[seed][1+i] = r.Uint64()
		}
	}
	return out
}

// outside returns an object that breaks rule number i, if the generator finds one.
func outside(t *testing.T, g *Generator, i int, stream []uint64) (object map[string]any, rule string) {
	t.Helper()
	which := uint64(i)
	if i >= named {
		which = uint64((float64(i) + 0.5) / float64(len(g.rules())) * (1 << 31))
	}
	stream[0] = which * unit
	object, rule, err := g.Outside(draw.Of(stream))
	if err != nil {
		t.Fatal(err)
	}
	return object, rule
}

// refused fails unless an object is refused at the path that a rule names.
func (s *server) refused(t *testing.T, object map[string]any, rule string) {
	t.Helper()
	path, _, _ := strings.Cut(rule, ": ")
	if path == "." {
		path = "<nil>"
	}
	// Package field writes keys of maps in brackets, and some paths are in the message.
	plain := strings.NewReplacer("[", "", "]", "", ".", "")
	at := func(errs field.ErrorList) bool {
		for _, err := range errs {
			if plain.Replace(err.Field) == plain.Replace(path) ||
				strings.Contains(err.Detail, `"`+strings.TrimPrefix(path, "<nil>")+`" must`) || strings.HasSuffix(err.Detail, " in "+path) {
				return true
			}
		}
		return false
	}
	if errs := s.validate(object); !at(errs) {
		t.Fatalf("not refused at %q: %s: %v:\n%s", path, rule, errs.ToAggregate(), text(object))
	}
	stored := runtime.DeepCopyJSON(object)
	defaulting.PruneNonNullableNullsWithoutDefaults(stored, s.structural)
	defaulting.Default(stored, s.structural)
	if errs := s.validate(stored); !at(errs) {
		t.Fatalf("not refused at %q once it has been defaulted: %s: %v:\n%s", path, rule, errs.ToAggregate(), text(object))
	}
}

// unbreakable are features of which a rule is a tautology, or is about what cannot be there.
const unbreakable = "oneOf with not, an optional contradiction"

func TestEachRuleOfEveryFeatureIsBroken(t *testing.T) {
	for name, schema := range schemas() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := schemaOf(t, schema)
			g := s.generator(t)
			streams := streams(t, 5)
			for i, r := range g.rules() {
				found := false
				for seed, stream := range streams {
					object, rule := outside(t, g, i, stream)
					s.refused(t, object, rule)
					if strings.HasSuffix(rule, ": "+r.name) {
						found = true
						if testing.Verbose() && seed == 3 {
							t.Log(rule)
						}
					}
				}
				if !found && !strings.Contains(unbreakable, name) {
					t.Errorf("%q is never broken: %s", r.place, r.name)
				}
			}
		})
	}
}
