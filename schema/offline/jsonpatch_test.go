package offline

import (
	"strings"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
)

func TestCopiesOfCopiesAreBounded(t *testing.T) {
	var ops []string
	for range 60 {
		ops = append(ops, `{"op":"copy","from":"/a","path":"/a/b"}`, `{"op":"add","path":"/n","value":1}`, `{"op":"copy","from":"/a","path":"/a/c"}`)
	}
	patch, err := jsonpatch.DecodePatch([]byte("[" + strings.Join(ops, ",") + "]"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := applyPatch(patch, []byte(`{"a":{"x":"y"}}`)); err == nil || !strings.Contains(err.Error(), "exceeding the limit 3145728") {
		t.Errorf("got %v", err)
	}
	got, err := applyPatch(patch[:4], []byte(`{"a":{"x":"y"}}`))
	if want := `{"a":{"b":{"b":{"x":"y"},"c":{"b":{"x":"y"},"x":"y"},"x":"y"},"c":{"b":{"x":"y"},"x":"y"},"x":"y"},"n":1}`; err != nil || string(got) != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
	if got, err := applyPatch(nil, []byte(`{}`)); err != nil || string(got) != "{}" {
		t.Errorf("got %s, %v", got, err)
	}
}
