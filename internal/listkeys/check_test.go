package listkeys_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/crdkit/crdkit/internal/listkeys"
)

type route struct {
	Spec struct {
		Hosts []*host `json:"hosts"`
		Pools map[string]struct {
			Members []map[string]string `json:"members"`
		} `json:"pools"`
		Title string               `json:"title"`
		Raw   runtime.RawExtension `json:"raw"`
	} `json:"spec"`
}

type host struct {
	base  `json:",inline"`
	Paths [][]struct {
		Path string `json:"path"`
	} `json:"paths"`
}

type base struct {
	Host string `json:"host"`
}

// A type must have the list, and the error says why it does not.
func TestAddFor(t *testing.T) {
	for call, want := range map[string]string{
		"spec.hosts host":           "",
		"spec.hosts.paths path":     "",
		"spec.pools.a.members ip":   "",
		"spec.pools.*.members ip":   "",
		"spec.* host":               "",
		"spec.*.paths path":         "",
		"spec.raw.any.list key":     "",
		"spec.raw key":              "",
		"spec.hosts host,port":      `listkeys_test.host has no field "port"`,
		"spec.hostss host":          `has no field "hostss"`,
		"spec.hosts.host name":      `type string, expected a list`,
		"spec.title name":           `type string, expected a list`,
		"spec.title.parts name":     `string has no field "parts"`,
		"spec.hosts.paths.sub name": `has no field "sub"`,
	} {
		path, keys, _ := strings.Cut(call, " ")
		err := new(listkeys.Tree).AddFor([]reflect.Type{reflect.TypeFor[*route]()}, path, strings.Split(keys, ",")...)
		if got := fmt.Sprint(err); (err == nil) != (want == "") || !strings.Contains(got, want) || want != "" && !strings.Contains(got, path) {
			t.Errorf("%s: got %v, want %s", call, err, want)
		}
	}
}

// One of several types is enough, and any list may be in an unknown one.
func TestAddFor_SeveralTypes(t *testing.T) {
	object, other := reflect.TypeFor[route](), reflect.TypeFor[host]()
	for _, c := range []struct {
		types []reflect.Type
		want  string
	}{
		{nil, ""},
		{[]reflect.Type{nil}, ""},
		{[]reflect.Type{other, object}, ""},
		{[]reflect.Type{other, nil}, ""},
		{[]reflect.Type{other}, `ListMapKeys "spec.hosts": listkeys_test.host: listkeys_test.host has no field "spec"`},
	} {
		tree := &listkeys.Tree{}
		if err := tree.AddFor(c.types, "spec.hosts", "host"); (err == nil) != (c.want == "") || err != nil && err.Error() != c.want {
			t.Errorf("%v: got %v, want %s", c.types, err, c.want)
		}
		if got := tree.At([]string{"spec", "hosts"}); len(got) != 1 {
			t.Errorf("%v: the keys are %q", c.types, got)
		}
	}
}
