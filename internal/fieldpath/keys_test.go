package fieldpath_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/crdkit/crdkit/internal/fieldpath"
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

// CheckKeys finds the list, or says why not.
func TestCheckKeys(t *testing.T) {
	for call, want := range map[string]string{
		"spec.hosts host":           "",
		"spec.hosts.paths path":     "",
		"spec.pools.a.members ip":   "",
		"spec.pools.*.members ip":   "",
		"spec.* host":               "",
		"spec.*.paths path":         "",
		"spec.raw.any.list key":     "",
		"spec.raw key":              "",
		"spec.hosts host,port":      `fieldpath_test.host has no field "port"`,
		"spec.hostss host":          `has no field "hostss"`,
		"spec.hosts.host name":      `type string, expected a list`,
		"spec.title name":           `type string, expected a list`,
		"spec.title.parts name":     `string has no field "parts"`,
		"spec.hosts.paths.sub name": `has no field "sub"`,
	} {
		path, keys, _ := strings.Cut(call, " ")
		err := fieldpath.CheckKeys(reflect.TypeFor[*route](), path, strings.Split(keys, ","))
		if got := fmt.Sprint(err); (err == nil) != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%s: got %v, want %s", call, err, want)
		}
	}
}
