package schema

import (
	"slices"
	"strings"
)

// advise returns how to fix a common problem, and nothing for others.
func advise(path, message string) string {
	if i := adviceFor(path, message); i >= 0 {
		return advices[i].advice
	}
	return ""
}

// adviceFor returns the number of the advice for a problem, or -1. Everything in a default has
// the path of the default.
func adviceFor(path, message string) int {
	if before, _, ok := strings.Cut(path, ".default."); ok {
		path = before + ".default"
	}
	return slices.IndexFunc(advices, func(a advice) bool {
		return strings.HasSuffix(path, a.path) && strings.Contains(message, a.message)
	})
}

// advice is for problems whose path ends with path and whose message contains message.
type advice struct{ path, message, advice string }

// advices are in the order in which they are tried: the first that fits is given.
var advices = []advice{
	{".items", "must be specified", "Add items, with the type of the elements."},
	{"", "must not be empty at the root", "Add type: object."},
	{".type", "must not be empty", "Add a type: object, array, string, integer, number or boolean. To allow any value, add x-kubernetes-preserve-unknown-fields: true instead. To allow a number or a string, add x-kubernetes-int-or-string: true instead."},
	{"", "because it is defined in ", "Specify the field, with its type, outside of allOf, anyOf, oneOf and not as well."},
	{"Of[0].type", "to be structural", intOrString},
	{"Of[1].type", "to be structural", intOrString},
	{"", "to be structural", "Move it out of allOf, anyOf, oneOf and not, to where the field itself is specified."},
	{"", "must not be specified in a nested context", metadataAdvice},
	{"", "must not specify anything other than name and generateName", metadataAdvice},

	{"apiVersion", "no matches for kind", "Write it in apiextensions.k8s.io/v1, as crdcheck convert does: Kubernetes 1.22 removed this version."},
	{"metadata.name", "must be spec.names.plural", "Name the definition by its plural, a dot, and its group."},
	{"", "unknown field \"", "Remove it, or correct its name. Letter case matters."},
	{"api-approved.kubernetes.io]", "", "Groups below k8s.io and kubernetes.io belong to Kubernetes: take another group."},
	{"spec.preserveUnknownFields", "", "Set it to false, the default of apiextensions.k8s.io/v1, and set x-kubernetes-preserve-unknown-fields: true in the schema where unknown fields are wanted."},
	{".openAPIV3Schema", "Required value", "Add a schema. The smallest one that keeps every field is {type: object, x-kubernetes-preserve-unknown-fields: true}."},

	{"", "spec.preserveUnknownFields is true", "Set spec.preserveUnknownFields: false."},

	{".additionalProperties", "mutual exclusive", "Keep one of the two: properties for known fields, or additionalProperties for a map with any keys. To keep unknown fields beside known ones, set x-kubernetes-preserve-unknown-fields: true."},
	{".uniqueItems", "", "Remove it. For a list of scalars, x-kubernetes-list-type: set does the same."},
	{".$ref", "", "Write the schema out at this place."},
	{".patternProperties", "", "Use additionalProperties, and a rule of x-kubernetes-validations for the keys."},
	{"", "fields are allowed at the root of the schema if the status subresource is enabled", "Move what is at the root into spec, or write it as a rule in x-kubernetes-validations."},
	{"", "must be atomic as item of a list with x-kubernetes-list-type=set", "Make the list a map, with x-kubernetes-list-type: map and x-kubernetes-list-map-keys, or set x-kubernetes-list-type: atomic."},
	{".pattern", "regular expression", "Write it in the syntax of RE2, which has no look-ahead and no back references (https://golang.org/s/re2syntax)."},

	{".format", "unrecognized format", "Correct it, or remove it: the server ignores this format. Strings may have date-time, date, duration, email, hostname, ipv4, ipv6, cidr, uri, uuid, byte and some others; integers int32 and int64; numbers float and double."},
	{".x-kubernetes-list-type", "is not supported by server-side apply", "Make the list a map, with x-kubernetes-list-type: map and x-kubernetes-list-map-keys, or set x-kubernetes-list-type: atomic."},

	{".default", "must not be set in top-level", "Remove it: the API server sets what is in metadata."},
	{".default", "it must have a default or be a required property", "Add the key to required of the items, or give it a default."},
	{".default", "must not have unknown fields", "Specify these fields in the schema, or take them out of the default."},
	{".default", "", "Give a default that the schema itself accepts."},

	{"", "estimated rule cost total for entire OpenAPIv3 schema exceeds", "Lower the cost of the rules that are reported to contribute to it. A server before 1.37 may accept them if they call matches(self, pattern), and not self.matches(pattern)."},
	{"", "contributed to estimated rule cost total", costAdvice},
	{"", "exceeds budget", costAdvice},
	{"", "undefined field 'n'", quoteAdvice},
	{"", "undefined field 'y'", quoteAdvice},
	{"", "undefined field", "A rule sees only what the schema specifies, and name and generateName of metadata: correct the name, or specify the field. Names that CEL cannot write are escaped: a-b is a__dash__b."},
	{"", "undeclared reference", "Correct the name. Fields are reached through self: self.name. has(self.name) reports whether one is there."},
	{"", "must evaluate to a string", "Format the value: \"%d\".format([self.size]), with %s for a value that is not an integer."},
	{"", "oldSelf cannot be used on the uncorrelatable portion", "Make the list around it a map, with x-kubernetes-list-type: map and x-kubernetes-list-map-keys, or move the rule above the list."},

	{"", "the server's validation panics", "The fieldPath of a rule or the jsonPath of a selectable field leads below additionalProperties: true or false, or into a schema with other problems. Give a path whose every step is specified in the schema."},
	{".jsonPath", "is an invalid path", "Give the path of a field that the schema specifies, such as .spec.size; it may not go through a list."},
}

// The only form of anyOf with types that the server takes
// (apiextensions-apiserver/pkg/apiserver/schema/validation.go, isIntOrStringAnyOfPattern).
const intOrString = "Move it to where the field itself is specified. If the field is a number or a string, as a port is, set x-kubernetes-int-or-string: true there instead, and write anyOf: [{type: integer}, {type: string}], in this order."

const metadataAdvice = "Remove it: of metadata, only name and generateName may be restricted, and only outside of allOf, anyOf, oneOf and not. The API server checks the rest."

const quoteAdvice = "Specify the field, with its name in quotes: YAML takes a plain n for false, and a plain y for true."

// The server has no estimate of how long a text is that an expression makes, and counts it where it
// is added up, joined or searched. Since cel-go v0.29 the global function matches has the cost of the
// method (checker/cost.go, functionCost).
const costAdvice = "Limit what the rule has to go through: set maxItems of lists, maxProperties of maps and maxLength of strings, in this schema and around it. The server takes text that an expression makes for unlimited: write all of it in one format, without + and join: \"at most %d\".format([self.size]), with %s for a value that is not an integer. Compare such text with ==, and do not search it. To a server before 1.37, matches(self, pattern) costs nothing, unlike self.matches(pattern): it may accept the rule."
