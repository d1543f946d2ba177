package roundtrip

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdkit/crdkit/conversion"
	"github.com/crdkit/crdkit/internal/choices"
)

// Golden checks that a release converts stored objects exactly as earlier releases did.
//
// A golden file, such as testdata/golden/v1.2.0/Pizza.v1alpha1.restaurant.example.com.json, records
// an object of one kind and version for one release, and the result of its conversion to each other
// version. The argument dir is the folder of all releases, such as testdata/golden, and release is
// the name of the current release, such as v1.2.0.
//
// To write the files of the current release, and never those of others, run the test with
// CRDKIT_ROUNDTRIP_UPDATE=true. Without the variable, Golden fails if a file of the current release
// is missing.
//
// Golden checks the files of all releases, with a subtest for each file. The requirements are:
//
//   - The registry has the version of the object. If the version has a Go type, decoding the
//     object into it and encoding it again returns the JSON in the file.
//   - Converting the object to each version in the file returns the JSON that is recorded there,
//     except for white space. Versions that the registry no longer has are skipped.
//
// If you change a conversion on purpose, or remove a version, remove the files that fail.
//
// Objects are generated as in [Test], one for each version, and may lack fields of their kind. Golden
// checks how values are written, and Test that none is lost. The options [Funcs], [CRD] and [Seed] apply when files are
// written; the seed is 1 by default. Other options have no effect on Golden.
func Golden(t *testing.T, reg *conversion.Registry, dir, release string, opts ...Option) {
	t.Helper()
	cfg, err := newConfigFor(reg, opts)
	if err != nil {
		t.Fatal(err)
	}
	if !cfg.seeded {
		cfg.seed = 1
	}
	if release == "" || filepath.Base(release) != release {
		t.Fatalf("roundtrip.Golden: %q cannot be the name of a release: it names a folder", release)
	}
	var faults []error
	for _, kind := range reg.Kinds() {
		for _, version := range kind.Versions {
			path := filepath.Join(dir, release, strings.Join([]string{kind.Kind, version, kind.Group, "json"}, "."))
			if updating() {
				faults = append(faults, writeGolden(t, reg, cfg, kind, version, path))
			} else if _, err := os.Stat(path); err != nil {
				faults = append(faults, fmt.Errorf("%s: no file in release %s: write it with %s=true: %w", kind.WithVersion(version), release, updateVariable, err))
			}
		}
	}
	if err := errors.Join(faults...); err != nil {
		t.Fatal(err)
	}
	files, err := fs.Glob(os.DirFS(dir), "*/*.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		t.Run(file, func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join(dir, file))
			if err != nil {
				t.Fatal(err)
			}
			if err := checkGolden(t, reg, text); err != nil {
				t.Errorf("%s: %v\nObjects like this one are stored already. If the promise to them cannot be kept, remove the file.", filepath.Join(dir, file), err)
			}
		})
	}
}

// golden is what a file holds.
type golden struct {
	Object    json.RawMessage            `json:"object"`
	Converted map[string]json.RawMessage `json:"converted"` // by version
}

// goldenTries is the number of objects of which the one with the most leaves is kept, or the shortest of
// those.
const goldenTries = 200

func writeGolden(t *testing.T, reg *conversion.Registry, cfg *config, kind conversion.Kind, version, path string) error {
	ctx := silent(t.Context())
	s := &subject{registry: reg, cfg: cfg, kind: kind, path: []string{version}, definition: cfg.definition(kind.GroupKind)}
	g, err := s.generator(version)
	if err != nil {
		return err
	}
	file, most := golden{Converted: map[string]json.RawMessage{}}, -1
	for i := range goldenTries {
		m, err := s.sample(ctx, choices.New(cfg.seed, kind.WithVersion(version).String(), i))
		if errors.Is(err, errNotMade) {
			continue
		}
		if err != nil {
			return err
		}
		c := newCoverage(g.leaves())
		c.add(m.json)
		if has, _, _ := c.count(); has.leaves > most || has.leaves == most && len(m.json) < len(file.Object) {
			most, file.Object = has.leaves, m.json
		}
	}
	if known := reg.Scheme(); known.Recognizes(kind.WithVersion(version)) {
		if file.Object, err = rewrite(known, kind.WithVersion(version), file.Object); err != nil {
			return err
		}
	}
	for _, other := range kind.Versions {
		if other == version {
			continue
		}
		if file.Converted[other], err = s.along(ctx, file.Object, other); err != nil {
			return err
		}
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false) // because texts of objects are compared
	encoder.SetIndent("", "\t")
	if err := encoder.Encode(file); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, text.Bytes(), 0o644)
}

// checkGolden returns the differences between a golden file and the current conversions.
func checkGolden(t *testing.T, reg *conversion.Registry, text []byte) error {
	var file golden
	if err := json.Unmarshal(text, &file); err != nil {
		return err
	}
	var meta runtime.TypeMeta
	if err := json.Unmarshal(file.Object, &meta); err != nil {
		return fmt.Errorf("object: %w", err)
	}
	gvk := schema.FromAPIVersionAndKind(meta.APIVersion, meta.Kind)
	kinds := reg.Kinds()
	i := slices.IndexFunc(kinds, func(k conversion.Kind) bool { return k.GroupKind == gvk.GroupKind() })
	if i < 0 || !slices.Contains(kinds[i].Versions, gvk.Version) {
		return fmt.Errorf("%s does not convert any more", gvk)
	}
	var faults []error
	if reg.Scheme().Recognizes(gvk) {
		written, err := rewrite(reg.Scheme(), gvk, file.Object)
		if err == nil {
			err = sameText("what the Go type writes", file.Object, written)
		}
		faults = append(faults, err)
	}
	s := &subject{registry: reg, kind: kinds[i]}
	for _, version := range kinds[i].Versions {
		want, ok := file.Converted[version]
		if !ok {
			continue // a version that is newer than the release
		}
		got, err := s.along(silent(t.Context()), file.Object, version)
		if err == nil {
			err = sameText("converted to "+version, want, got)
		}
		faults = append(faults, err)
	}
	return errors.Join(faults...)
}

// sameText compares JSON, except for the white space between the tokens.
func sameText(what string, want, got []byte) error {
	var w, g bytes.Buffer
	if err := errors.Join(json.Compact(&w, want), json.Compact(&g, got)); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	if bytes.Equal(w.Bytes(), g.Bytes()) {
		return nil
	}
	f := compare(want, got)
	if f == nil {
		f = &failure{diff: func() string { return diffTexts(w.String(), g.String()) }} // a difference in the order of members
	}
	if f.err != nil {
		return fmt.Errorf("%s: %w", what, f.err)
	}
	return fmt.Errorf("%s is not what it was (-want +got):\n%s", what, f.diff())
}
