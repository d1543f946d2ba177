package at

import (
	"encoding/json"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/crdkit/crdkit/examples/at/api/v1alpha1"
	"github.com/crdkit/crdkit/schema"
)

const crdFile = "config/crd/cnat.example.com_ats.yaml"

// writes are what a user may send, and the result: the spec, or the error. They
// are sent to package schema here, and to a real API server in e2e_test.go.
var writes = []struct {
	name, spec         string
	want, fails, warns string
}{
	{name: "a default", spec: `{"schedule":"2019-07-03T02:00:00Z","command":"date"}`,
		want: `{"command":"date","image":"busybox","schedule":"2019-07-03T02:00:00Z"}`},
	{name: "no default", spec: `{"schedule":"2019-07-03T02:00:00Z","command":"date","image":"alpine"}`,
		want: `{"command":"date","image":"alpine","schedule":"2019-07-03T02:00:00Z"}`},
	{name: "a default for null", spec: `{"schedule":"2019-07-03T02:00:00Z","command":"date","image":null}`,
		want: `{"command":"date","image":"busybox","schedule":"2019-07-03T02:00:00Z"}`},
	{name: "garbage", spec: `{"schedule":"2019-07-03T02:00:00Z","command":"date","someGarbage":42}`,
		want:  `{"command":"date","image":"busybox","schedule":"2019-07-03T02:00:00Z"}`,
		warns: `unknown field "spec.someGarbage"`},
	{name: "no command", spec: `{"schedule":"2019-07-03T02:00:00Z","command":""}`,
		fails: `At.cnat.example.com "x" is invalid: spec.command: Invalid value: "": spec.command in body should be at least 1 chars long`},
	{name: "no time", spec: `{"command":"date"}`,
		fails: `At.cnat.example.com "x" is invalid: [spec.schedule: Required value, <nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation]`},
	{name: "not UTC", spec: `{"schedule":"2019-07-03T02:00:00+02:00","command":"date"}`,
		fails: `At.cnat.example.com "x" is invalid: spec.schedule: Invalid value: "2019-07-03T02:00:00+02:00": spec.schedule in body should match '^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$'`},
	{name: "no date", spec: `{"schedule":"2019-02-29T02:00:00Z","command":"date"}`,
		fails: `At.cnat.example.com "x" is invalid: [spec.schedule: Invalid value: "2019-02-29T02:00:00Z": spec.schedule in body must be of type date-time: "2019-02-29T02:00:00Z", <nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation]`},
}

func atOf(spec string) []byte {
	return fmt.Appendf(nil, `{"apiVersion":"cnat.example.com/v1alpha1","kind":"At","metadata":{"name":"x","namespace":"default"},"spec":%s}`, spec)
}

// definition returns the definition of Ats.
func definition(t testing.TB) *schema.Definition {
	t.Helper()
	crd, err := os.ReadFile(crdFile)
	if err != nil {
		t.Fatal(err)
	}
	d, err := schema.Parse(crd)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// preserving returns the definition that the README makes, which keeps unknown fields.
func preserving(t *testing.T) *schema.Definition {
	t.Helper()
	crd := definition(t).CustomResourceDefinition().DeepCopy()
	root := crd.Spec.Versions[0].Schema.OpenAPIV3Schema
	spec := root.Properties["spec"]
	spec.XPreserveUnknownFields = new(true)
	root.Properties["spec"] = spec
	d, err := schema.New(crd)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func specOf(t *testing.T, object []byte) string {
	t.Helper()
	var at struct {
		Spec json.RawMessage `json:"spec"`
	}
	if err := json.Unmarshal(object, &at); err != nil {
		t.Fatal(err)
	}
	return string(at.Spec)
}

// The schema sets defaults, prunes and refuses.
func TestSchema_Writes(t *testing.T) {
	v := definition(t).Version("v1alpha1")
	for _, w := range writes {
		t.Run(w.name, func(t *testing.T) {
			out, err := v.Create(t.Context(), atOf(w.spec))
			if w.fails != "" {
				if err == nil || err.Error() != w.fails {
					t.Errorf("got %v, want %s", err, w.fails)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(w.want, specOf(t, out.Object)); diff != "" {
				t.Errorf("spec (-want +got):\n%s", diff)
			}
			var warns []string
			if w.warns != "" {
				warns = []string{w.warns}
			}
			if diff := cmp.Diff(warns, out.Warnings); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}

// Unknown fields stay where the schema preserves them.
func TestSchema_PreservedUnknownFields(t *testing.T) {
	out, err := preserving(t).Version("v1alpha1").Create(t.Context(), atOf(`{"schedule":"2019-07-03T02:00:00Z","command":"date","someGarbage":42}`))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(`{"command":"date","image":"busybox","schedule":"2019-07-03T02:00:00Z","someGarbage":42}`, specOf(t, out.Object)); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}
	if len(out.Warnings) > 0 {
		t.Errorf("warnings: %q", out.Warnings)
	}
}

// A new At is PENDING.
func TestSchema_NewAt(t *testing.T) {
	out, err := definition(t).Version("v1alpha1").Create(t.Context(), atOf(`{"schedule":"2019-07-03T02:00:00Z","command":"date"}`))
	if err != nil {
		t.Fatal(err)
	}
	var at v1alpha1.At
	if err := json.Unmarshal(out.Object, &at); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(v1alpha1.AtStatus{Phase: v1alpha1.PhasePending}, at.Status); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
}

// An At that has been started cannot be changed.
func TestSchema_StartedAt(t *testing.T) {
	v := definition(t).Version("v1alpha1")
	for _, phase := range []string{"PENDING", "RUNNING", "DONE"} {
		for field, spec := range map[string]string{
			"schedule": `{"schedule":"2020-07-03T02:00:00Z","command":"date","image":"busybox"}`,
			"command":  `{"schedule":"2019-07-03T02:00:00Z","command":"cal","image":"busybox"}`,
			"image":    `{"schedule":"2019-07-03T02:00:00Z","command":"date","image":"alpine"}`,
			"":         `{"schedule":"2019-07-03T02:00:00Z","command":"date"}`, // as it was
		} {
			old := fmt.Appendf(nil, `{"apiVersion":"cnat.example.com/v1alpha1","kind":"At","metadata":{"name":"x","namespace":"default","generation":1},
				"spec":{"schedule":"2019-07-03T02:00:00Z","command":"date","image":"busybox"},"status":{"phase":%q}}`, phase)
			var want string
			if phase != "PENDING" && field != "" {
				want = fmt.Sprintf(`At.cnat.example.com "x" is invalid: spec.%s: Invalid value: the command has been started`, field)
			}
			var got string
			if _, err := v.Update(t.Context(), atOf(spec), old); err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s, %q changes (-want +got):\n%s", phase, field, diff)
			}
		}
	}
}

// One At that a client cannot decode would keep an informer from all others. So each schedule
// that the schema takes must be a time for Go. (The format date-time alone takes more: see the
// seeds.)
func FuzzEveryScheduleThatIsTakenIsATime(f *testing.F) {
	for _, seed := range []string{
		"2019-07-03T02:00:00Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "2016-12-31T23:59:60Z", "2019-02-29T00:00:00Z",
		"2019-07-03t02:00:00z", "2019-07-03T02:00:00x5Z", "2019-07-03T02:00:00ZT", "2019-07-03T02:00:00Z\n", "2019-07-03T24:00:00Z", "",
	} {
		f.Add(seed)
	}
	v := definition(f).Version("v1alpha1")
	f.Fuzz(func(t *testing.T, schedule string) {
		text, err := json.Marshal(map[string]string{"schedule": schedule, "command": "date"})
		if err != nil {
			t.Fatal(err)
		}
		out, err := v.Create(t.Context(), atOf(string(text)))
		if err != nil {
			return
		}
		var at v1alpha1.At
		if err := json.Unmarshal(out.Object, &at); err != nil {
			t.Fatalf("the schema takes what a client cannot read: %v", err)
		}
		if got := at.Spec.Schedule.UTC().Format(time.RFC3339); got != schedule {
			t.Errorf("%q was read as %s", schedule, got)
		}
	})
}
