package reference

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/tools/cache"
)

// Ref is one reference that an object holds.
type Ref struct {
	// Path of the field that holds the name. Without one, messages have the plural of
	// the named kind in its place.
	Path *field.Path
	// Namespace of the named object. Empty means the namespace of the object that
	// holds the reference. If the named kind is cluster-scoped, it is ignored.
	Namespace string
	// Name of the named object, or the label selector of a [NewSelectorTarget]. An empty name is no reference: whether it is
	// allowed is for the schema to say.
	Name string
	// Optional says that the named object need not exist, as does the field
	// "optional" of core/v1's SecretKeySelector. [CrossNamespace] and [Authorize]
	// hold all the same. An optional reference does not keep what it names from
	// deletion: [NewReferrers] passes it over.
	Optional bool

	fault string // of [Fields]: why there is no name
}

// Optional makes all references that a function returns optional.
func Optional[T runtime.Object](refs func(obj T) []Ref) func(obj T) []Ref {
	return func(obj T) []Ref {
		all := slices.Clone(refs(obj))
		for i := range all {
			all[i].Optional = true
		}
		return all
	}
}

// maxName is how many bytes the name of an object has at most, that of a DNS
// subdomain; also names that are checked less have no more here.
const maxName = content.DNS1123SubdomainMaxLength

// impossible returns why no object can have the name, whatever the cluster holds; it
// is empty if one can. What cannot be a segment of a URL must never be asked for.
func impossible(name cache.ObjectName) string {
	if len(name.Name) > maxName {
		return fmt.Sprintf("a name has at most %d bytes, and this has %d", maxName, len(name.Name))
	}
	if faults := content.IsPathSegmentName(name.Name); len(faults) > 0 {
		return "no object can have this name: it " + strings.Join(faults, ", ")
	}
	if name.Namespace != "" && len(content.IsDNS1123Label(name.Namespace)) > 0 {
		return fmt.Sprintf("there can be no namespace %q", shortened(name.Namespace))
	}
	return ""
}

// shortened returns a name that fits into a message.
func shortened(name string) string {
	const most = 64
	if len(name) <= maxName {
		return name
	}
	return strings.ToValidUTF8(name[:most], "") + "…"
}
