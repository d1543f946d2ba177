package listkeys_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/crdkit/crdkit/internal/listkeys"
)

// Lists in lists are found by the path of names.
func TestTree_ListsInLists(t *testing.T) {
	var keys listkeys.Tree
	for path, names := range map[string][]string{"spec.hosts": {"host"}, "spec.hosts.paths": {"path", "type"}} {
		if err := keys.Add(path, names...); err != nil {
			t.Fatal(err)
		}
	}
	for path, want := range map[string][]string{
		"spec.hosts": {"host"}, "spec.hosts.paths": {"path", "type"}, "spec": nil, "status.hosts": nil, "spec.hosts.paths.x": nil,
	} {
		if diff := cmp.Diff(want, keys.At(strings.Split(path, "."))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", path, diff)
		}
	}
	if got := (*listkeys.Tree)(nil).At([]string{"spec"}); got != nil {
		t.Errorf("no tree knows %q", got)
	}
}

func TestAdd_RefusesEmptyPathsAndKeys(t *testing.T) {
	var keys listkeys.Tree
	for _, err := range []error{keys.Add("", "name"), keys.Add("spec..x", "name"), keys.Add("spec.x"), keys.Add("spec.x", "name", "")} {
		if err == nil || !strings.Contains(err.Error(), "must not be empty") {
			t.Errorf("got %v", err)
		}
	}
}

func TestAdd_RefusesBrackets(t *testing.T) {
	var keys listkeys.Tree
	for _, path := range []string{"spec.hosts[*]", "spec.hosts[*].paths", "spec['hosts']"} {
		if err := keys.Add(path, "name"); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: got %v", path, err)
		}
	}
}

func TestAddSchema(t *testing.T) {
	const text = `{"properties":{
		"hosts":{"type":"array","x-kubernetes-list-map-keys":["host"],"items":{"properties":{"paths":{"x-kubernetes-list-map-keys":["path","type"],"items":{"properties":{"type":{"default":"Exact"}}}}}}},
		"pools":{"additionalProperties":{"properties":{"members":{"x-kubernetes-list-map-keys":["ip"]}}}},
		"free":{"additionalProperties":true}}}`
	var schema map[string]any
	if err := json.Unmarshal([]byte(text), &schema); err != nil {
		t.Fatal(err)
	}
	var keys listkeys.Tree
	if err := keys.Add("hosts", "name"); err != nil {
		t.Fatal(err)
	}
	keys.AddSchema(schema)
	got := map[string][]string{}
	for _, path := range []string{"hosts", "hosts.paths", "pools.any.members", "free.any"} {
		got[path] = keys.At(strings.Split(path, "."))
	}
	paths := keys.Field([]byte("hosts")).Field([]byte("paths"))
	if path, typ := paths.Default("path"), paths.Default("type"); path != "" || typ != `"Exact"` {
		t.Errorf("the keys of hosts.paths have the defaults %q and %q", path, typ)
	}
	want := map[string][]string{"hosts": {"host"}, "hosts.paths": {"path", "type"}, "pools.any.members": {"ip"}, "free.any": nil}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The keys for all names hold for one that is named.
func TestTree_AllNames(t *testing.T) {
	tree := &listkeys.Tree{}
	tree.AddSchema(map[string]any{"properties": map[string]any{"m": map[string]any{"additionalProperties": map[string]any{
		"properties": map[string]any{"other": map[string]any{"x-kubernetes-list-map-keys": []any{"id"}}}}}}})
	for _, path := range []string{"m.foo.list", "m.*.every"} {
		if err := tree.Add(path, "k"); err != nil {
			t.Fatal(err)
		}
	}
	for path, want := range map[string][]string{"m.foo.other": {"id"}, "m.bar.other": {"id"}, "m.foo.list": {"k"}, "m.bar.list": nil, "m.bar.every": {"k"}} {
		if diff := cmp.Diff(want, tree.At(strings.Split(path, "."))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", path, diff)
		}
	}
}

func TestTree_IsMap(t *testing.T) {
	var declared listkeys.Tree
	declared.AddSchema(map[string]any{"properties": map[string]any{
		"env":  map[string]any{"additionalProperties": map[string]any{"type": "string"}},
		"spec": map[string]any{"properties": map[string]any{}},
	}})
	tree := declared.Over(listkeys.OfType(reflect.TypeFor[struct {
		Nodes map[string]int        `json:"nodes"`
		Host  struct{ Name string } `json:"host"`
	}]()))
	for name, want := range map[string]bool{"env": true, "nodes": true, "spec": false, "host": false, "none": false} {
		if got := tree.Field([]byte(name)).IsMap(); got != want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}
