package roundtrip

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/crdkit/crdkit/conversion"
	"github.com/crdkit/crdkit/test/expect"
)

// and is a conversion with two bugs.
func (b bug) and(other bug) bug {
	return bug{
		toHub: func(in *alphaJob, out *hubJob) {
			for _, f := range []func(*alphaJob, *hubJob){b.toHub, other.toHub} {
				if f != nil {
					f(in, out)
				}
			}
		},
		fromHub: func(in *hubJob, out *alphaJob) {
			for _, f := range []func(*hubJob, *alphaJob){b.fromHub, other.fromHub} {
				if f != nil {
					f(in, out)
				}
			}
		},
	}
}

// reports returns the signs of each report that Test would give, and how many tests would fail.
func (b bug) reports(t *testing.T, grouped bool) (signs [][]string, failing int) {
	t.Helper()
	reg := b.jobs(t)
	cfg, err := newConfigFor(reg, append(b.options(t), Seed(1), Iterations(200)))
	expect.NoError(t, err)
	reported := causes{}
	for _, s := range subjects(reg, cfg, reg.Kinds()[0]) {
		if grouped {
			s.reported = reported
		}
		c, err := s.search(t.Context(), cfg.budget(1))
		expect.NoError(t, err)
		if c == nil {
			continue
		}
		if failing++; c.reported == "" {
			reported.add(c)
			signs = append(signs, c.signs())
		}
	}
	return signs, failing
}

// Each fault has one report, also if there are two. A fault that shows in each object is part of the
// second report.
func TestCauses_OneReportEach(t *testing.T) {
	for _, test := range []struct {
		names []string
		want  [][]string
	}{
		{[]string{"dropped field"}, [][]string{{"spec.note"}}},
		{[]string{"replaced labels"}, [][]string{{"metadata.labels"}}},
		{[]string{"panic without spec"}, [][]string{{"panic: runtime error: invalid memory address or nil pointer dereference"}}},
		{[]string{"value unknown to the old version", "replaced labels"}, [][]string{{"metadata.labels"}, {"metadata.labels", "spec.mode"}}},
		{[]string{"int64 cut to 32 bits", "dropped field"}, [][]string{{"spec.note"}, {"spec.serial"}}},
	} {
		b := bugNamed(t, test.names[0])
		for _, name := range test.names[1:] {
			b = b.and(bugNamed(t, name))
		}
		got, failing := b.reports(t, true)
		slices.SortFunc(got, slices.Compare[[]string])
		if diff := cmp.Diff(test.want, got); diff != "" || failing < 4 {
			t.Errorf("%s: %d tests fail, want 4 or more; reports (-want +got):\n%s", test.names, failing, diff)
		}
	}
}

// A function of another version may have a fault of its own, even in the same field.
func TestCauses_OtherVersion(t *testing.T) {
	on := func(path ...string) *subject {
		return &subject{path: path, law: RoundTrip, kind: conversion.Kind{Hub: "v1"}}
	}
	broken := func(text string) *failure { return &failure{diff: func() string { return text }} }
	reported := causes{}
	reported.add(&counterexample{subject: on("v1alpha1", "v1", "v1alpha1"), failure: broken("- spec.note: \"a\"")})
	for _, test := range []struct {
		subject *subject
		diff    string
		want    bool
	}{
		{on("v1", "v1alpha1", "v1"), "- spec.note: \"b\"\n+ spec.note: \"\"", true},
		{on("v1alpha1", "v1beta1", "v1"), "+ spec.note: \"\"", true},
		{on("v1beta1", "v1", "v1beta1"), "- spec.note: \"a\"", false},
		{on("v1", "v1alpha1", "v1"), "- spec.host: \"a\"\n- spec.note: \"a\"", false},
	} {
		want := ""
		if test.want {
			want = "v1alpha1→v1→v1alpha1/round-trip"
		}
		if got := reported.known(test.subject, broken(test.diff)); got != want {
			t.Errorf("%s, %s: got %q, want %q", test.subject.route(), test.diff, got, want)
		}
	}
}

func TestSigns_OmitValues(t *testing.T) {
	for _, test := range []struct {
		diff string
		err  error
		want []string
	}{
		{diff: "- spec.a[0].b: 1\n- spec.a[12].b: 2\n+ spec.c[\"x.y\"]: \"d: e\"\nand more", want: []string{"spec.a[*].b", "spec.c[*]"}},
		{diff: "+ metadata.labels.a: \"1\"\n+ metadata.annotations[\"x.y/z\"]: \"1\"", want: []string{"metadata.annotations", "metadata.labels"}},
		{diff: "- {\"a\":1}\n+ {\"b\":1, \"c\": 1}", want: []string{""}},
		{err: errors.New(`cannot convert Job ns/x from example.com/v1 to example.com/v2: spec.port: Invalid value: "a: \"b": want 1 to 65535`), want: []string{"spec.port: Invalid value: …: want … to …"}},
		{err: errors.Join(errors.New("b 1"), errors.New("a -2.5")), want: []string{"a …", "b …"}},
	} {
		f := &failure{err: test.err, diff: func() string { return test.diff }}
		if diff := cmp.Diff(test.want, f.signs()); diff != "" {
			t.Errorf("%s%v (-want +got):\n%s", test.diff, test.err, diff)
		}
	}
}
