package admission

import (
	"slices"

	"github.com/crdkit/crdkit/internal/served"
)

// served returns what the handler serves, for its registration with the API server.
func (h *handler) served() (all served.Info) {
	for _, f := range h.functions {
		s := served.Function{
			Kind:        f.kind.GroupKind(),
			Versions:    h.versionsOf(f),
			Subresource: f.subresource,
			Mutates:     f.mutate != nil,
		}
		for _, op := range f.operations {
			s.Operations = append(s.Operations, string(op))
		}
		all.Functions = append(all.Functions, s)
	}
	return all
}

// versionsOf returns the versions for which matches reports true, or nil for all versions.
func (h *handler) versionsOf(f *function) []string {
	if f.kind.Empty() || f.seesMetadata() {
		return nil
	}
	if h.converter == nil {
		return []string{f.kind.Version}
	}
	versions := slices.Clone(h.converter.Versions(f.kind.GroupKind()))
	if !slices.Contains(versions, f.kind.Version) {
		versions = append(versions, f.kind.Version) // needs no conversion
	}
	return versions
}
