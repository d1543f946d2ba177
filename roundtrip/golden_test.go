package roundtrip

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/crdkit/crdkit/conversion"
	"github.com/crdkit/crdkit/test/expect"
)

// The promises of a release are kept.
func TestGolden_KeepsPromises(t *testing.T) {
	dir := t.TempDir()
	reg := bug{}.jobs(t)
	write := func(release string) {
		t.Helper()
		t.Setenv("CRDKIT_ROUNDTRIP_UPDATE", "true")
		Golden(t, reg, dir, release, Funcs(jobFuncs...))
		t.Setenv("CRDKIT_ROUNDTRIP_UPDATE", "")
	}
	write("v1.0.0")
	Golden(t, reg, dir, "v1.0.0")
	files, err := filepath.Glob(filepath.Join(dir, "*", "*"))
	expect.NoError(t, err)
	want := []string{
		filepath.Join(dir, "v1.0.0", "Job.v1."+jobGroup+".json"),
		filepath.Join(dir, "v1.0.0", "Job.v1alpha1."+jobGroup+".json"),
	}
	if !slices.Equal(files, want) {
		t.Fatalf("got the files %q", files)
	}
	text, err := os.ReadFile(files[0])
	expect.NoError(t, err)
	for _, want := range []string{"\t\"object\": {", "\t\t\"v1alpha1\": {", `"note"`, `"replicas"`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %q in the file:\n%s", want, text)
		}
	}

	if err := checkGolden(t, reg, []byte(strings.Replace(string(text), `"v1alpha1": {`, `"v1alpha0": {`, 1))); err != nil {
		t.Errorf("it need not convert to a version that is gone: %v", err)
	}

	// Another release is written, and this one is not.
	expect.NoError(t, os.WriteFile(files[0], append(text, '\n'), 0o600))
	write("v1.1.0")
	if again, err := os.ReadFile(files[0]); err != nil || len(again) != len(text)+1 {
		t.Errorf("the file of an old release was written: %v", err)
	}

	gone := conversion.NewRegistry(runtime.NewScheme())
	for _, c := range []struct {
		name string
		reg  *conversion.Registry
		text string
		want []string
	}{
		{"a field is dropped", bugNamed(t, "dropped field").jobs(t), string(text), []string{"converted to v1alpha1 is not what it was", "- spec.note: "}},
		{"the hub's type loses a field", reg, strings.Replace(string(text), `"note"`, `"remark"`, 1), []string{"what the Go type writes is not what it was", "- spec.remark: "}},
		{"the kind is gone", gone, string(text), []string{"Kind=Job does not convert any more"}},
		{"a field is of another type", reg, strings.Replace(string(text), `"replicas": `, `"replicas": "many", "x": `, 1), []string{"cannot unmarshal string"}},
		{"not JSON", reg, "{", []string{"unexpected end of JSON input"}},
		{"not an object", reg, `{"object":5}`, []string{"object: json"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			expect.ErrorContains(t, checkGolden(t, c.reg, []byte(c.text)), c.want...)
		})
	}
}

// Text counts: the order of members, and characters that are written in another way.
func TestGolden_ComparesTexts(t *testing.T) {
	for _, c := range []struct {
		want, got string
		same      bool
	}{
		{`{"a": 1, "b":"<"}`, `{"a":1,"b":"<"}`, true},
		{`{"a":1,"b":2}`, `{"b":2,"a":1}`, false},
		{`{"a":"<"}`, `{"a":"\u003c"}`, false},
		{`{"a":1}`, `{"a":1.0}`, false},
	} {
		if err := sameText("it", []byte(c.want), []byte(c.got)); (err == nil) != c.same {
			t.Errorf("%s and %s: %v", c.want, c.got, err)
		}
	}
}
