package roundtrip

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sort"

	"k8s.io/apimachinery/pkg/util/version"

	"github.com/crdkit/crdkit/conversion"
	"github.com/crdkit/crdkit/schema"
)

// History adds the law [Total], which checks that all objects that earlier releases of your
// operator may have stored can be converted. The arguments are paths, with the oldest release
// first. A path is one of these:
//
//   - a file with CRDs of one release, in the format of [CRD].
//   - a folder with files of one release, with the extension yaml, yml or json.
//   - a folder with a folder for each release. The releases are sorted by version, so that v0.9
//     comes before v0.10.
//
// Each kind of a release needs a current CRD from the option [CRD], but CRDs of kinds that the
// registry does not convert are ignored. The test fails if a release has no kind that the registry
// converts, or if the registry has none of the versions of a kind.
//
//	roundtrip.Test(t, reg, roundtrip.CRD(crd), roundtrip.History("testdata/history"))
//
// With the conversion strategy None, which a CRD without a conversion stanza has too, the API
// server stores an object of another version under the apiVersion of the storage version, without
// the fields that its schema lacks. Total generates such objects if the current CRD has the
// strategy Webhook. Otherwise it ignores the strategy in all releases, because controller-gen never
// writes the stanza.
func History(paths ...string) Option {
	return func(c *config) {
		for _, path := range paths {
			all, err := readReleases(path)
			if err != nil {
				c.errorf("roundtrip.History: %w", err)
			}
			c.history = append(c.history, all...)
		}
	}
}

// release is the CRD of one kind in an earlier release.
type release struct {
	*schema.Definition
	name string // the path that was given, or a folder in it
	file string
}

// readReleases reads the releases at a path of [History].
func readReleases(path string) (all []release, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return readRelease(path, path)
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	var files, folders []string
	for _, entry := range entries {
		switch file := filepath.Join(path, entry.Name()); {
		case entry.IsDir():
			folders = append(folders, file)
		case slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(file)):
			files = append(files, file)
		}
	}
	switch {
	case len(files) > 0 && len(folders) > 0:
		return nil, fmt.Errorf("%s: has the folder %s beside the file %s: want the files of one release, or a folder for each", path, filepath.Base(folders[0]), filepath.Base(files[0]))
	case len(files) > 0:
		return readRelease(path, files...)
	case len(folders) == 0:
		return nil, fmt.Errorf("%s: has no file with the extension yaml, yml or json", path)
	}
	sort.SliceStable(folders, func(i, j int) bool { return versionOf(folders[i]).LessThan(versionOf(folders[j])) })
	for _, folder := range folders {
		releases, errFolder := readReleases(folder)
		all, err = append(all, releases...), errors.Join(err, errFolder)
	}
	return all, err
}

func readRelease(name string, files ...string) (all []release, err error) {
	for _, file := range files {
		text, errRead := os.ReadFile(file)
		definitions, errParse := schema.ParseAll(text)
		switch {
		case errRead != nil:
			err = errors.Join(err, errRead)
		case errParse != nil:
			err = errors.Join(err, fmt.Errorf("%s: %w", file, errParse))
		case len(definitions) == 0:
			err = errors.Join(err, fmt.Errorf("%s: has no CustomResourceDefinition", file))
		}
		for _, d := range definitions {
			all = append(all, release{d, name, file})
		}
	}
	return all, err
}

// versionOf returns the version in the name of a folder, or 0.0.
func versionOf(path string) *version.Version {
	for _, parse := range []func(string) (*version.Version, error){version.ParseSemantic, version.ParseGeneric} {
		if v, err := parse(filepath.Base(path)); err == nil {
			return v
		}
	}
	return version.MajorMinor(0, 0)
}

// checkHistory returns an error for each release that Total could not check.
func (c *config) checkHistory(reg *conversion.Registry) error {
	kinds := reg.Kinds()
	kindOf := func(r release) int {
		return slices.IndexFunc(kinds, func(k conversion.Kind) bool { return k.GroupKind == r.GroupKind() })
	}
	var faults []error
	fault := func(r release, format string, args ...any) {
		faults = append(faults, fmt.Errorf("roundtrip.History: %s: "+format, append([]any{r.file}, args...)...))
	}
	if len(c.refusals) > 0 && len(c.history) == 0 {
		faults = append(faults, errors.New("roundtrip.Refuse: it needs earlier releases: see roundtrip.History"))
	}
	for _, r := range c.history {
		k := kindOf(r)
		if k < 0 {
			converts := func(other release) bool { return other.name == r.name && kindOf(other) >= 0 }
			if !slices.ContainsFunc(c.history, converts) {
				fault(r, "has a definition of %s: want one of a kind that the registry converts", r.GroupKind())
			}
			continue
		}
		if c.definition(kinds[k].GroupKind) == nil {
			fault(r, "%s has no definition of today beside it: see roundtrip.CRD", r.GroupKind())
		}
		known := func(version string) bool { return slices.Contains(kinds[k].Versions, version) }
		if !slices.ContainsFunc(r.Versions(), known) {
			fault(r, "the definition of %s has the versions %v: want one of %v", r.GroupKind(), r.Versions(), kinds[k].Versions)
		}
	}
	return errors.Join(faults...)
}
