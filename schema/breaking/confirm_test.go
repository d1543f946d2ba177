package breaking_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/crdkit/crdkit/schema"
	"github.com/crdkit/crdkit/schema/breaking"
	"github.com/crdkit/crdkit/test/expect"
	"github.com/crdkit/crdkit/test/testobj"
)

// confirm sends the requests of a proof to both definitions, as package schema processes them.
func confirm(t testing.TB, before, after *schema.Definition, c breaking.Change) {
	t.Helper()
	was, is, p := before.Version(c.Version), after.Version(c.Version), c.Proof
	if p == nil || !was.Served() || !is.Served() {
		return
	}
	var stored []byte
	storedBy := func(r *schema.Result) []byte {
		if r.Stored == nil { // a webhook would convert it
			return r.Object
		}
		return r.Stored
	}
	if p.Stored != nil {
		r, err := was.Create(t.Context(), p.Stored)
		if err != nil {
			t.Fatalf("%s: the old definition refuses what is stored, %s: %v", c, p.Stored, err)
		}
		stored = storedBy(r)
		if bytes.Contains(p.Stored, []byte(`"status":`)) && hasStatus(before, c.Version) {
			if r, err = was.UpdateStatus(t.Context(), p.Stored, stored); err != nil {
				t.Fatalf("%s: the old definition refuses the status of %s: %v", c, p.Stored, err)
			}
			stored = storedBy(r)
		}
	}
	write := func(v *schema.Version, d *schema.Definition) (*schema.Result, error) {
		if p.Stored == nil {
			return v.Create(t.Context(), p.Object)
		}
		if p.Subresource == "status" && hasStatus(d, c.Version) {
			return v.UpdateStatus(t.Context(), p.Object, stored)
		}
		return v.Update(t.Context(), p.Object, stored)
	}
	old, err := write(was, before)
	if err != nil {
		t.Fatalf("%s: the old definition refuses %s: %v", c, p.Object, err)
	}
	now, err := write(is, after)
	for _, want := range p.Errors {
		if err == nil || !strings.Contains(err.Error(), want.Detail) {
			t.Errorf("%s: %s: the error is %v, want %v", c, p.Object, err, want)
		}
	}
	if len(p.Errors) > 0 {
		if u, err := is.Read(t.Context(), storedBy(old)); err == nil {
			_, err = is.Update(t.Context(), u.Object, storedBy(old))
			if (err != nil) != p.Blocked {
				t.Errorf("%s: an update of %s that changes nothing: %v, want an error: %t", c, storedBy(old), err, p.Blocked)
			}
		}
		return
	}
	if err != nil {
		t.Fatalf("%s: the new definition refuses %s: %v", c, p.Object, err)
	}
	if bytes.Equal(withoutMetadata(t, old.Object), withoutMetadata(t, now.Object)) {
		t.Errorf("%s: %s is stored as before: %s", c, p.Object, now.Object)
	}
}

func withoutMetadata(t testing.TB, object []byte) []byte {
	t.Helper()
	u := testobj.Parse(t, string(object))
	delete(u.Object, "metadata")
	out, err := json.Marshal(u.Object)
	expect.NoError(t, err)
	return out
}

// hasStatus reports whether the status is a subresource of a version.
func hasStatus(d *schema.Definition, version string) bool {
	return slices.ContainsFunc(d.CustomResourceDefinition().Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool {
		return v.Name == version && v.Subresources != nil && v.Subresources.Status != nil
	})
}
