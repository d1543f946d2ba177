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

// History checks [Total] too: that all that earlier releases may have stored converts. Each path is
// a release, the oldest first: a file of CustomResourceDefinitions, as [CRD] takes them, or a
// folder of such files, with the extension yaml, yml or json. A folder of folders has a release in
// each, in the order of their versions: v0.9 comes before v0.10.
//
//	roundtrip.Test(t, reg, roundtrip.CRD(crd), roundtrip.History("testdata/history"))
//
// Definitions of kinds that the registry does not convert are passed over, but each release needs
// one that it does convert, with a version that it still has. Today's definition of the kind must
// be there: see [CRD].
//
// A release stores objects in its storage version. With the strategy None, an object written in
// another version gets another apiVersion, and loses the fields that the schema lacks. A file
// without a conversion stanza has that strategy too, as controller-gen writes none. So it counts
// only if today's definition has the strategy Webhook.
func History(paths ...string) Option {
	return func(c *config) {
		for _, path := range paths {
			all, err := readReleases(path)
			if err != nil {
				c.fault("roundtrip.History: %w", err)
			}
			c.history = append(c.history, all...)
		}
	}
}

// release is the definition of one kind in an earlier release.
type release struct {
	*schema.Definition
	name string // the path that was given, or a folder in it
	file string
}

// readReleases reads what a path of [History] has.
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

// versionOf returns the version that a release is named for; the lowest for other names.
func versionOf(path string) *version.Version {
	for _, parse := range []func(string) (*version.Version, error){version.ParseSemantic, version.ParseGeneric} {
		if v, err := parse(filepath.Base(path)); err == nil {
			return v
		}
	}
	return version.MajorMinor(0, 0)
}

// checkHistory returns what the releases lack.
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
		if c.definition(kinds[k]) == nil {
			fault(r, "%s has no definition of today beside it: see roundtrip.CRD", r.GroupKind())
		}
		known := func(version string) bool { return slices.Contains(kinds[k].Versions, version) }
		if !slices.ContainsFunc(r.Versions(), known) {
			fault(r, "the definition of %s has the versions %v: want one of %v", r.GroupKind(), r.Versions(), kinds[k].Versions)
		}
	}
	return errors.Join(faults...)
}
