package roundtrip

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/crdkit/crdkit/test/expect"
)

// folder writes files, and returns the path of the folder that has them.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		expect.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		expect.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	return dir
}

func TestHistory_ReadsReleasesInTheirOrder(t *testing.T) {
	text := thingDefinition(byWebhook, "v1", anyNumber, anyNumber)
	dir := folder(t, map[string]string{
		"all/v0.10/crd.yaml": text, "all/v0.9.0/crd.json": text, "all/v0.9.0-rc.1/a.yml": text, "all/first/crd.yaml": text,
		"all/v0.9.0/README.md": "not a definition", "last/crd.yaml": text,
	})
	c, err := newConfig([]Option{History(filepath.Join(dir, "last", "crd.yaml"), filepath.Join(dir, "all"), filepath.Join(dir, "last"))})
	expect.NoError(t, err)
	var got []string
	for _, r := range c.history {
		got = append(got, strings.TrimPrefix(r.name, dir))
	}
	want := []string{"/last/crd.yaml", "/all/first", "/all/v0.9.0-rc.1", "/all/v0.9.0", "/all/v0.10", "/last"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestHistory_NamesTheWrongFile(t *testing.T) {
	text := thingDefinition(byWebhook, "v1", anyNumber, anyNumber)
	today := CRD([]byte(text))
	for name, c := range map[string]struct {
		files map[string]string
		opts  []Option
		want  []string
	}{
		"no such file": {nil, []Option{today}, []string{"/v0.1: no such file"}},
		"nothing":      {map[string]string{"v0.1/README.md": ""}, []Option{today}, []string{"/v0.1: has no file with the extension yaml, yml or json"}},
		"empty":        {map[string]string{"v0.1/crd.yaml": ""}, []Option{today}, []string{"/v0.1/crd.yaml: has no CustomResourceDefinition"}},
		"two that cannot be parsed": {map[string]string{"v0.1/a.yaml": "{", "v0.1/b.yaml": "kind: Pod"}, []Option{today},
			[]string{"/v0.1/a.yaml: ", "/v0.1/b.yaml: ", "want CustomResourceDefinition"}},
		"a release beside files": {map[string]string{"v0.1/crd.yaml": text, "v0.1/old/crd.yaml": text}, []Option{today},
			[]string{"/v0.1: has the folder old beside the file crd.yaml"}},
		"another kind": {map[string]string{"v0.1/crd.yaml": strings.NewReplacer("thing", "other", "Thing", "Other").Replace(text)}, []Option{today},
			[]string{"/v0.1/crd.yaml: has a definition of Other.example.com: want one of a kind that the registry converts"}},
		"no version in common": {map[string]string{"v0.1/crd.yaml": strings.NewReplacer("v1beta1", "v1alpha1", "name: v1,", "name: v1alpha2,").Replace(text)}, []Option{today},
			[]string{"/v0.1/crd.yaml: the definition of Thing.example.com has the versions [v1alpha2 v1alpha1]: want one of [v1beta1 v1]"}},
		"no definition of today": {map[string]string{"v0.1/crd.yaml": text}, nil,
			[]string{"/v0.1/crd.yaml: Thing.example.com has no definition of today beside it: see roundtrip.CRD"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := folder(t, c.files)
			reg := numbers(func(in number) (number, error) { return in, nil }).registry(t)
			_, err := newConfigFor(reg, append(c.opts, History(filepath.Join(dir, "v0.1"))))
			if err == nil {
				t.Fatal("no error")
			}
			for _, want := range append(c.want, "roundtrip.History: ", dir) {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("got %v, want %q", err, want)
				}
			}
		})
	}
}
