package registration

import (
	"errors"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestWhatTheClusterHasIsKnownInItsOrder(t *testing.T) {
	obj := func(version string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: map[string]any{}}
		u.SetName("x")
		u.SetResourceVersion(version)
		return u
	}
	for name, c := range map[string]struct {
		do   func(l *live) error
		want string
	}{
		"events": {func(l *live) error { return l.Update(obj("12")) }, "12"},
		"an event from before our write": {func(l *live) error {
			l.wrote(obj("12"))
			return l.Update(obj("11"))
		}, "12"},
		"a deletion from before our write": {func(l *live) error {
			l.wrote(obj("12"))
			return l.Delete(obj("11"))
		}, "12"},
		"a deletion": {func(l *live) error {
			l.wrote(obj("12"))
			return l.Delete(obj("13"))
		}, ""},
		"a deletion that is known before the answer to the write that it undoes": {func(l *live) error {
			err := errors.Join(l.Update(obj("12")), l.Delete(obj("13")))
			l.wrote(obj("12"))
			return err
		}, ""},
		"an empty list that is known before the answer to an older write": {func(l *live) error {
			err := l.Replace(nil, "13")
			l.wrote(obj("12"))
			return err
		}, ""},
		"our write after a deletion": {func(l *live) error {
			err := l.Delete(obj("13"))
			l.wrote(obj("14"))
			return err
		}, "14"},
		"our write": {func(l *live) error {
			l.wrote(obj("12"))
			return l.Update(obj("12"))
		}, "12"},
		"the answer to our write after a later event": {func(l *live) error {
			err := l.Update(obj("13"))
			l.wrote(obj("12"))
			return err
		}, "13"},
		"a list that was asked for before our write": {func(l *live) error {
			l.beaten = false
			l.wrote(obj("12"))
			return l.Replace([]any{obj("10")}, "11")
		}, "12"},
		"an empty list that was asked for before our write": {func(l *live) error {
			l.beaten = false
			l.wrote(obj("12"))
			return l.Replace(nil, "11")
		}, "12"},
		"a list after our write": {func(l *live) error {
			l.wrote(obj("12"))
			return l.Replace([]any{obj("12")}, "20")
		}, "12"},
		"a list that has none": {func(l *live) error { return l.Replace(nil, "20") }, ""},
		"a backup that was restored": {func(l *live) error {
			l.wrote(obj("1000"))
			l.beaten = false // it is listed again
			return l.Replace([]any{obj("2")}, "3")
		}, "2"},
		"events after a backup was restored": {func(l *live) error {
			l.wrote(obj("1000"))
			l.beaten = false
			if err := l.Replace([]any{obj("2")}, "3"); err != nil {
				return err
			}
			return l.Update(obj("4"))
		}, "4"},
	} {
		var mu sync.Mutex
		woken := 0
		l := &live{object: &object{name: "x"}, mu: &mu, wake: func() { woken++ }}
		if err := l.Add(obj("10")); err != nil {
			t.Fatal(err)
		}
		if err := c.do(l); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		got := ""
		if l.current != nil {
			got = l.current.GetResourceVersion()
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if woken < 2 {
			t.Errorf("%s: the reconciler was woken %d times", name, woken)
		}
	}
	l := &live{object: &object{name: "x"}, mu: &sync.Mutex{}, wake: func() {}}
	for _, other := range []any{nil, "x", func() any { u := obj("1"); u.SetName("y"); return u }()} {
		if l.Add(other) == nil {
			t.Errorf("%v is taken for the object", other)
		}
	}
}
