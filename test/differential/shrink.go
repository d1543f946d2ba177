package differential

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// Shrink makes the definition and the objects of a disagreement smaller, as long as both
// sides disagree, and returns the smallest that it found in the time. Each try is a
// definition of its own on the server; many are tried at once.
func Shrink(ctx context.Context, server *Server, c Comparison, limit time.Duration) Comparison {
	s := &shrinker{server: server, best: c, until: time.Now().Add(limit)}
	if c.What != "definition" {
		one := *c.Suite
		one.Cases = []Case{c.Suite.Cases[c.Case]}
		if !one.Cases[0].Read {
			one.Cases[0].Sends = []Send{c.Send}
		}
		if c.What == "old" || c.What == "old status" {
			one.Cases[0].Sends = []Send{{}}
		}
		s.best.Suite, s.best.Case = &one, 0
		if !s.try(ctx, []*Suite{&one}) {
			s.best.Suite = &one
			s.best.Diff += "\n(It was not there again.)\n"
			return s.best
		}
	}
	for time.Now().Before(s.until) && s.shrinkOnce(ctx) {
	}
	return s.best
}

type shrinker struct {
	server *Server
	best   Comparison
	until  time.Time
}

// atOnce is how many tries are made at once.
const atOnce = 24

// shrinkOnce makes something smaller, if it can.
func (s *shrinker) shrinkOnce(ctx context.Context) bool {
	all := smaller(s.best.Suite)
	for batch := range slices.Chunk(all, atOnce) {
		if time.Now().After(s.until) {
			return false
		}
		if s.try(ctx, batch) {
			return true
		}
	}
	return false
}

// copies counts the definitions that were made for a try: each has a group of its own.
var copies atomic.Int64

// try tries suites of one case, and keeps the first that still disagrees.
func (s *shrinker) try(ctx context.Context, suites []*Suite) bool {
	results := make([]*Tally, len(suites))
	done := make(chan bool)
	for i, suite := range suites {
		results[i] = &Tally{}
		go func() {
			defer func() { done <- true }()
			suite := suite.copy(fmt.Sprintf("shrink%d.example.com", copies.Add(1)))
			if s.best.What == "definition" {
				_ = CompareDefinition(ctx, s.server, results[i], suite.Made, suite.CRD)
				return
			}
			if _, err := suite.begin(); err == nil {
				_ = suite.Run(ctx, s.server, results[i]) // an error is not a disagreement
			}
		}()
	}
	for range suites {
		<-done
	}
	for i, suite := range suites {
		for _, d := range results[i].Disagreements() {
			if d.What == s.best.What {
				d.Suite.Made = s.best.Suite.Made
				d.Suite.Cases, d.Case = suite.Cases, 0
				s.best = d
				return true
			}
		}
	}
	return false
}

// copy is the suite with another group.
func (s *Suite) copy(group string) *Suite {
	out := *s
	for _, crd := range []**apiextensionsv1.CustomResourceDefinition{&out.CRD, &out.Before} {
		if *crd != nil {
			*crd = (*crd).DeepCopy()
			(*crd).Spec.Group, (*crd).Name = group, (*crd).Spec.Names.Plural+"."+group
		}
	}
	return &out
}

// smaller returns suites that lack something each, those that lack most first.
func smaller(s *Suite) []*Suite {
	type try struct {
		suite *Suite
		size  int
	}
	var all []try
	add := func(change func(s *Suite) error) {
		one := *s
		one.Cases = slices.Clone(s.Cases)
		if change(&one) != nil {
			return
		}
		all = append(all, try{&one, one.size()})
	}
	definition := jsonOf(s.CRD.Spec)
	for _, at := range places(definition, nil) {
		if slices.Contains([]string{"group", "names", "scope"}, at[0]) {
			continue
		}
		for _, both := range []bool{true, false} {
			if !both && s.Before == nil {
				continue
			}
			add(func(one *Suite) (err error) {
				if one.CRD, err = without(one.CRD, at); err == nil && both && one.Before != nil {
					one.Before, err = without(one.Before, at)
				}
				return err
			})
		}
	}
	if s.Before != nil {
		add(func(one *Suite) error { one.Before = nil; return nil })
		add(func(one *Suite) error { one.Before = one.CRD; return nil })
		for _, at := range places(jsonOf(s.Before.Spec), nil) {
			add(func(one *Suite) (err error) {
				one.Before, err = without(one.Before, at)
				return err
			})
		}
	}
	for i := range s.Cases {
		c := &s.Cases[i]
		for _, at := range places(c.Old, nil) {
			add(func(one *Suite) error {
				one.Cases[i].Old, _ = drop(jsonOf(c.Old), at).(map[string]any)
				return nil
			})
		}
		body, ok := decodeNumbers([]byte(c.Raw))
		if !ok {
			continue
		}
		for _, at := range places(body, nil) {
			if at[0] == "apiVersion" || at[0] == "kind" {
				continue
			}
			add(func(one *Suite) error {
				one.Cases[i].Raw = string(mustJSON(drop(jsonOf(body), at)))
				return nil
			})
		}
	}
	size := s.size()
	all = slices.DeleteFunc(all, func(t try) bool { return t.size >= size })
	slices.SortStableFunc(all, func(a, b try) int { return cmp.Compare(a.size, b.size) })
	out := make([]*Suite, len(all))
	for i, t := range all {
		out[i] = t.suite
	}
	return out
}

func (s *Suite) size() int {
	n := len(mustJSON(s.CRD.Spec))
	if s.Before != nil {
		n += len(mustJSON(s.Before.Spec)) + 1
	}
	for _, c := range s.Cases {
		n += len(mustJSON(c.Old)) + len(c.Raw)
	}
	return n
}

func decodeNumbers(text []byte) (v any, ok bool) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	return v, decoder.Decode(&v) == nil
}

// jsonOf is a value as JSON, with numbers as they are written.
func jsonOf(v any) any {
	out, _ := decodeNumbers(mustJSON(v))
	return out
}

// places are the paths of all that is in a value.
func places(v any, at []string) (all [][]string) {
	add := func(step string, below any) {
		next := append(slices.Clone(at), step)
		all = append(append(all, next), places(below, next)...)
	}
	switch v := v.(type) {
	case map[string]any:
		for k, below := range v {
			add(k, below)
		}
	case []any:
		for i, below := range v {
			add(strconv.Itoa(i), below)
		}
	}
	slices.SortFunc(all, func(a, b []string) int { return strings.Compare(strings.Join(a, "/"), strings.Join(b, "/")) })
	return all
}

// drop takes away what is at a path.
func drop(v any, at []string) any {
	switch v := v.(type) {
	case map[string]any:
		if len(at) == 1 {
			delete(v, at[0])
		} else if below, ok := v[at[0]]; ok {
			v[at[0]] = drop(below, at[1:])
		}
		return v
	case []any:
		i, err := strconv.Atoi(at[0])
		if err != nil || i >= len(v) {
			return v
		}
		if len(at) == 1 {
			return slices.Delete(v, i, i+1)
		}
		v[i] = drop(v[i], at[1:])
		return v
	}
	return v
}

// without is a definition without what is at a path of its spec.
func without(crd *apiextensionsv1.CustomResourceDefinition, at []string) (*apiextensionsv1.CustomResourceDefinition, error) {
	out := crd.DeepCopy()
	out.Spec = apiextensionsv1.CustomResourceDefinitionSpec{}
	if err := json.Unmarshal(mustJSON(drop(jsonOf(crd.Spec), at)), &out.Spec); err != nil {
		return nil, err
	}
	// Empty fields are not sent.
	text := mustJSON(out.Spec)
	out.Spec = apiextensionsv1.CustomResourceDefinitionSpec{}
	return out, json.Unmarshal(text, &out.Spec)
}
