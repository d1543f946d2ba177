package registration

import (
	"net/http"
	"slices"
	"strings"

	"github.com/crdkit/crdkit/internal/handlerinfo"
)

// conversion is a conversion webhook.
type conversion struct {
	path    string
	handler http.Handler
	names   []string
}

func (c *conversion) String() string { return "Conversion " + c.path }

// Conversion adds a conversion webhook: the handler of package conversion, and the path on
// which it is served. Each of [Definitions] whose kind it converts, and which has more than
// one version, gets a conversion stanza. Where no Conversion converts a definition, it is a
// fault that several of its versions are served or stored, unless [NoConversion] names it.
//
// For a handler that does not say what it converts, give the names of the definitions, such
// as pizzas.example.com.
func Conversion(path string, h http.Handler, definitions ...string) Option {
	return func(s *settings) {
		s.conversions = append(s.conversions, &conversion{path, h, definitions})
	}
}

// NoConversion says that this operator does not convert a definition of several versions, such
// as pizzas.example.com: another one does, or the API server with strategy None, which changes
// nothing but apiVersion, so that its versions must have the same fields.
//
// While the cluster has a conversion that leads to this operator, such as that of an earlier
// release, [Webhooks.Check] fails. Server-side apply of the manifests takes it away, where it has
// applied it.
func NoConversion(definition string) Option {
	return func(s *settings) { s.unconverted = append(s.unconverted, definition) }
}

// converted returns which definitions are converted, and by what.
func (s *settings) converted() map[*definition]*conversion {
	by := map[*definition]*conversion{}
	for _, c := range s.conversions {
		for _, d := range s.convertedBy(c) {
			if other := by[d]; other != nil {
				s.fault("%s is converted twice: by %s and by %s", d, other, c)
			}
			by[d] = c
		}
	}
	for _, name := range s.unconverted {
		if s.named(name) == nil {
			s.fault("NoConversion: there is no definition %q: give it with Definitions", name)
		}
	}
	for _, d := range s.definitions {
		c, none := by[d], slices.Contains(s.unconverted, d.Metadata.Name)
		used := d.Used()
		switch {
		case c != nil && none:
			s.fault("%s: %s converts it, and NoConversion names it", d, c)
		case c == nil && !none && len(used) > 1:
			s.fault("%s has the versions %s, and nothing converts them: add Conversion, or NoConversion(%q)", d, strings.Join(used, ", "), d.Metadata.Name)
		case len(d.Spec.Versions) == 1:
			delete(by, d)
		case c != nil && d.Spec.PreserveUnknownFields:
			s.fault("%s: spec.preserveUnknownFields must be false with a conversion webhook", d)
		}
	}
	return by
}

func (s *settings) convertedBy(c *conversion) (found []*definition) {
	if c.handler == nil {
		return nil // a fault already
	}
	known, ok := handlerinfo.By(c.handler)
	switch {
	case ok && len(known.Conversions) == 0:
		s.fault("%s: the handler converts nothing: give one of conversion.NewHandler", c)
		return nil
	case !ok && len(c.names) == 0:
		s.fault("%s: the handler does not say what it converts: give one of conversion.NewHandler, or the names of the definitions", c)
		return nil
	case ok && len(c.names) > 0:
		s.fault("%s: the handler says what it converts: leave out the names of the definitions", c)
		return nil
	}
	for _, name := range c.names {
		d := s.named(name)
		if d == nil {
			s.fault("%s: there is no definition %q: give it with Definitions", c, name)
			continue
		}
		found = append(found, d)
	}
	for _, k := range known.Conversions {
		d := s.definition(k.GroupKind)
		if d == nil {
			s.fault("%s converts %s, of which there is no definition: give it with Definitions", c, k.GroupKind)
			continue
		}
		var missing []string
		for _, v := range d.Used() {
			if !slices.Contains(k.Versions, v) {
				missing = append(missing, v)
			}
		}
		if len(missing) > 0 {
			s.fault("%s: %s does not convert version %s: add the conversions, or do not serve the version", d, c, strings.Join(missing, ", "))
		}
		found = append(found, d)
	}
	return found
}
