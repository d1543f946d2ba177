package listmapkeys_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/crdkit/crdkit/internal/listmapkeys"
	"github.com/crdkit/crdkit/test/expect"
)

func schemaOf(t *testing.T, text string) (schema map[string]any) {
	t.Helper()
	expect.NoError(t, json.Unmarshal([]byte(text), &schema))
	return schema
}

// Lists in lists are found by the path of names.
func TestOfSchema(t *testing.T) {
	keys := listmapkeys.OfSchema(schemaOf(t, `{"properties":{
		"hosts":{"type":"array","x-kubernetes-list-map-keys":["host"],"items":{"properties":{"paths":{"x-kubernetes-list-map-keys":["path","type"],"items":{"properties":{"type":{"default":"Exact"}}}}}}},
		"pools":{"additionalProperties":{"properties":{"members":{"x-kubernetes-list-map-keys":["ip"]}}}},
		"grid":{"items":{"x-kubernetes-list-map-keys":["cell"],"items":{}}},
		"free":{"additionalProperties":true}}}`))
	for path, want := range map[string][]string{
		"hosts": {"host"}, "hosts.paths": {"path", "type"}, "hosts.paths.x": nil, "pools.any.members": {"ip"}, "grid": {"cell"}, "free.any": nil, "status.hosts": nil,
	} {
		if diff := cmp.Diff(want, keys.At(strings.Split(path, "."))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", path, diff)
		}
	}
	paths := keys.Field([]byte("hosts")).Field([]byte("paths"))
	if path, typ := paths.Default("path"), paths.Default("type"); path != "" || typ != `"Exact"` {
		t.Errorf("the keys of hosts.paths have the defaults %q and %q", path, typ)
	}
	if got := (*listmapkeys.Tree)(nil).At([]string{"spec"}); got != nil {
		t.Errorf("no tree knows %q", got)
	}
}

// What is known of all names holds for one that is named, unless the tree above knows it.
func TestOver(t *testing.T) {
	named := listmapkeys.OfSchema(schemaOf(t, `{"properties":{"m":{"properties":{"foo":{"properties":{"list":{"x-kubernetes-list-map-keys":["k"]}}}}}}}`))
	all := listmapkeys.OfSchema(schemaOf(t, `{"properties":{"m":{"additionalProperties":{"properties":{
		"list":{"x-kubernetes-list-map-keys":["id"]},"other":{"x-kubernetes-list-map-keys":["id"]}}}}}}`))
	tree := named.Over(all)
	for path, want := range map[string][]string{"m.foo.other": {"id"}, "m.bar.other": {"id"}, "m.foo.list": {"k"}, "m.bar.list": {"id"}} {
		if diff := cmp.Diff(want, tree.At(strings.Split(path, "."))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", path, diff)
		}
	}
}

func TestTree_IsMap(t *testing.T) {
	declared := listmapkeys.OfSchema(schemaOf(t, `{"properties":{"env":{"additionalProperties":{"type":"string"}},"spec":{"properties":{}}}}`))
	tree := declared.Over(listmapkeys.OfType(reflect.TypeFor[struct {
		Nodes map[string]int        `json:"nodes"`
		Host  struct{ Name string } `json:"host"`
	}]()))
	for name, want := range map[string]bool{"env": true, "nodes": true, "spec": false, "host": false, "none": false} {
		if got := tree.Field([]byte(name)).IsMap(); got != want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}
