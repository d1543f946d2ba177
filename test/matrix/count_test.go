package matrix

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/crdkit/crdkit/test/expect"
)

// said counts the events that go test -json has for two packages, in part.
func said(t *testing.T, tests []Test, events string) *Count {
	t.Helper()
	c := newCount(tests)
	expect.NoError(t, readEvents(strings.NewReader(events), func(e event) error { c.add(e); return nil }))
	return c
}

const events = `{"Action":"start","Package":"p"}
{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestA","Output":"=== RUN   TestA\n"}
{"Action":"attr","Package":"p","Test":"TestA","Key":"kube-apiserver","Value":"v1.33.13"}
{"Action":"run","Package":"p","Test":"TestA/old"}
{"Action":"output","Package":"p","Test":"TestA/old","Output":"    a_test.go:12: it came with 1.34\n"}
{"Action":"output","Package":"p","Test":"TestA/old","Output":"    --- SKIP: TestA/old (0.00s)\n"}
{"Action":"skip","Package":"p","Test":"TestA/old","Elapsed":0}
{"Action":"attr","Package":"p","Test":"TestA/new","Key":"kube-apiserver","Value":"v1.36.3"}
{"Action":"attr","Package":"p","Test":"TestA/new","Key":"something","Value":"else"}
{"Action":"pass","Package":"p","Test":"TestA/new","Elapsed":0}
{"Action":"pass","Package":"p","Test":"TestA","Elapsed":1}
{"Action":"output","Package":"p","Test":"TestB","Output":"    b_test.go:3: it is wrong\n"}
{"Action":"fail","Package":"p","Test":"TestB","Elapsed":1}
{"Action":"fail","Package":"p","Elapsed":2}
{"Action":"skip","Package":"q","Test":"TestC","Elapsed":0}
{"Action":"pass","Package":"q","Test":"TestD","Elapsed":0}
{"Action":"pass","Package":"q","Elapsed":2}
`

// Tests are counted with their subtests.
func TestCount_Subtests(t *testing.T) {
	c := said(t, []Test{{Package: "p", Name: "TestA"}, {Package: "p", Name: "TestB"}, {Package: "q", Name: "TestC"}}, events)
	if diff := cmp.Diff("1 end-to-end tests passed, 1 failed, 1 skipped (with 2 subtests)", c.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"TestA/old: it came with 1.34", "TestC: "}, c.Reasons); diff != "" {
		t.Errorf("reasons (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff("p \np TestB\n    b_test.go:3: it is wrong\n", c.Failures()); diff != "" {
		t.Errorf("failures (-want +got):\n%s", diff)
	}
}

// Another control plane than that of the release is an error.
func TestCheck_OtherControlPlane(t *testing.T) {
	c := said(t, []Test{{Package: "p", Name: "TestA"}}, events)
	r := &Release{Version: "v1.33.13"}
	if err := r.check(c); err == nil || err.Error() != "matrix: v1.33.13: p.TestA had v1.36.3" {
		t.Errorf("got %v", err)
	}
	c = said(t, []Test{{Package: "p", Name: "TestA"}}, strings.ReplaceAll(events, "v1.36.3", "v1.33.13"))
	if err := r.check(c); err != nil {
		t.Error(err)
	}
}

// A test that did not end is an error.
func TestCheck_TestDidNotEnd(t *testing.T) {
	c := said(t, []Test{{Package: "q", Name: "TestD"}, {Package: "q", Name: "TestE"}, {Package: "p", Name: "TestD"}}, events)
	if err := (&Release{Version: "v1.33.13"}).check(c); err == nil || err.Error() != "matrix: v1.33.13: not run: p.TestD, q.TestE" {
		t.Errorf("got %v", err)
	}
}

// A failed build is shown.
func TestCount_FailedBuild(t *testing.T) {
	c := said(t, nil, `{"Action":"build-output","ImportPath":"p","Output":"p.go:1: undefined: x\n"}
{"Action":"build-fail","ImportPath":"p"}
{"Action":"fail","Package":"p","Elapsed":0,"FailedBuild":"p"}
`)
	if diff := cmp.Diff("p.go:1: undefined: x\np \n", c.Failures()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestReadEvents_NoEvent(t *testing.T) {
	err := readEvents(strings.NewReader("{}\nFAIL\n"), func(event) error { return nil })
	expect.ErrorContains(t, err, `"FAIL\n"`)
	enough := errors.New("enough")
	if err := readEvents(strings.NewReader("{}"), func(event) error { return enough }); !errors.Is(err, enough) {
		t.Errorf("got %v", err)
	}
}
