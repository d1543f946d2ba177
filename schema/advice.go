package schema

import (
	"strings"
)

// advise returns how to fix a common problem, and nothing for others.
func advise(path, message string, rule int) string {
	path = adviseAt(path)
	for _, a := range advices {
		if a.fits(path, message, rule) {
			return a.advice
		}
	}
	return ""
}

// adviseAt is the path by which advice is looked up. Everything in a default has the path of the
// default.
func adviseAt(path string) string {
	if before, _, ok := strings.Cut(path, ".default."); ok {
		return before + ".default"
	}
	return path
}

// advice is for problems of a rule, or of any rule if that is 0, whose path ends with path and
// whose message contains message.
type advice struct {
	rule                  int
	path, message, advice string
}

func (a advice) fits(path, message string, rule int) bool {
	return (a.rule == 0 || a.rule == rule) && strings.HasSuffix(path, a.path) && strings.Contains(message, a.message)
}

// advices are in the order in which they are tried: the first that fits is given.
var advices = []advice{
	{1, ".items", "", "Add items, with the type of the elements."},
	{1, "", "must not be empty at the root", "Add type: object."},
	{1, "", "", "Add a type: object, array, string, integer, number or boolean. To allow any value, add x-kubernetes-preserve-unknown-fields: true instead. To allow a number or a string, add x-kubernetes-int-or-string: true instead."},
	{2, "", "", "Specify the field, with its type, outside of allOf, anyOf, oneOf and not as well."},
	{3, "Of[0].type", "", intOrString},
	{3, "Of[1].type", "", intOrString},
	{3, "", "", "Move it out of allOf, anyOf, oneOf and not, to where the field itself is specified."},
	{4, "", "", "Remove it: of metadata, only name and generateName may be restricted, and only outside of allOf, anyOf, oneOf and not. The API server checks the rest."},

	{0, "apiVersion", "no matches for kind", "Write it in apiextensions.k8s.io/v1, as crdcheck convert does: Kubernetes 1.22 removed this version."},
	{0, "metadata.name", "must be spec.names.plural", "Name the definition by its plural, a dot, and its group."},
	{0, "", "unknown field \"", "Remove it, or correct its name. Letter case matters."},
	{0, "", "duplicate field", "Remove one of the two."},
	{0, "spec.group", "", "Take a domain that is yours, such as stable.example.com."},
	{0, "spec.scope", "", "Take Namespaced or Cluster."},
	{0, "spec.names.listKind", "may not be the same", "Leave it out: by default, it is the kind followed by List."},
	{0, "api-approved.kubernetes.io]", "", "Groups below k8s.io and kubernetes.io belong to Kubernetes: take another group."},
	{0, "spec.preserveUnknownFields", "", "Set it to false, the default of apiextensions.k8s.io/v1, and set x-kubernetes-preserve-unknown-fields: true in the schema where unknown fields are wanted."},
	{0, "", "exactly one version marked as storage", "Set storage: true in one version, and storage: false in the others."},
	{0, "status.storedVersions", "", "Set storage: true in one version."},
	{0, "", "must contain unique version names", "Rename or remove one of the versions of the same name."},
	{0, ".openAPIV3Schema", "Required value", "Add a schema. The smallest one that keeps every field is {type: object, x-kubernetes-preserve-unknown-fields: true}."},
	{0, ".deprecationWarning", "only be set for deprecated", "Set deprecated: true, or remove the warning."},

	{0, "", "spec.preserveUnknownFields is true", "Set spec.preserveUnknownFields: false."},
	{0, "", "should not be set when strategy is not set to Webhook", "Set strategy: Webhook, or remove it."},
	{0, ".clientConfig", "", "Set either service, with namespace and name, or url."},
	{0, ".conversionReviewVersions", "", "List the versions of ConversionReview that the webhook takes, such as [v1]."},

	{0, ".type", "must be object at the root", "Set type: object. A Kubernetes object has no other type."},
	{0, ".additionalProperties", "must not be used at the root", "Move the map to a field, such as spec."},
	{0, ".additionalProperties", "mutual exclusive", "Keep one of the two: properties for known fields, or additionalProperties for a map with any keys. To keep unknown fields beside known ones, set x-kubernetes-preserve-unknown-fields: true."},
	{0, ".uniqueItems", "", "Remove it. For a list of scalars, x-kubernetes-list-type: set does the same."},
	{0, ".$ref", "", "Write the schema out at this place."},
	{0, ".definitions", "", "Write each definition out where it is used."},
	{0, "", "use nullable as an alternative", "Set nullable: true, and the type that the value has if it is not null."},
	{0, ".patternProperties", "", "Use additionalProperties, and a rule of x-kubernetes-validations for the keys."},
	{0, "", "items must be a schema object", "Give one schema for all items."},
	{0, ".type", "boolean,date", "The types are boolean, date, integer, number and string."},
	{0, ".type", "Unsupported value", "The types are object, array, string, integer, number and boolean."},
	{0, "", "fields are allowed at the root of the schema if the status subresource is enabled", "Move what is at the root into spec, or write it as a rule in x-kubernetes-validations."},
	{0, ".nullable", "at the root", "Remove it."},
	{0, ".x-kubernetes-preserve-unknown-fields", "must be true or undefined", "Remove it: without it, unknown fields are not kept either."},
	{0, "", "x-kubernetes-list-map-keys, so it must have a default or be a required property", "Add the key to required of the items, or give it a default."},
	{0, ".x-kubernetes-list-map-keys", "must not be empty", "List the fields that identify an item, such as [name]."},
	{0, ".x-kubernetes-list-map-keys", "names of item properties", "Specify each key under properties of the items."},
	{0, "", "must be atomic as item of a list with x-kubernetes-list-type=set", "Make the list a map, with x-kubernetes-list-type: map and x-kubernetes-list-map-keys, or set x-kubernetes-list-type: atomic."},
	{0, ".pattern", "regular expression", "Write it in the syntax of RE2, which has no look-ahead and no back references (https://golang.org/s/re2syntax)."},

	{0, ".format", "unrecognized format", "Correct it, or remove it: the server ignores this format. Strings may have date-time, date, duration, email, hostname, ipv4, ipv6, cidr, uri, uuid, byte and some others; integers int32 and int64; numbers float and double."},
	{0, ".x-kubernetes-list-type", "is not supported by server-side apply", "Make the list a map, with x-kubernetes-list-type: map and x-kubernetes-list-map-keys, or set x-kubernetes-list-type: atomic."},

	{0, ".default", "must not be set in top-level", "Remove it: the API server sets what is in metadata."},
	{0, ".default", "must not have unknown fields", "Specify these fields in the schema, or take them out of the default."},
	{0, ".default", "", "Give a default that the schema itself accepts."},

	{0, "", "estimated rule cost total for entire OpenAPIv3 schema exceeds", "Lower the cost of the rules that are reported to contribute to it."},
	{0, "", "contributed to estimated rule cost total", costAdvice},
	{0, "", "exceeds budget", costAdvice},
	{0, "", "undefined field 'n'", quoteAdvice},
	{0, "", "undefined field 'y'", quoteAdvice},
	{0, "", "undefined field", "A rule sees only what the schema specifies, and name and generateName of metadata: correct the name, or specify the field. Names that CEL cannot write are escaped: a-b is a__dash__b."},
	{0, "", "undeclared reference", "Correct the name. Fields are reached through self: self.name. has(self.name) reports whether one is there."},
	{0, "", "must evaluate to a string", "Format the value: \"%d\".format([self.size]), with %s for a value that is not an integer."},
	{0, "", "oldSelf cannot be used on the uncorrelatable portion", "Make the list around it a map, with x-kubernetes-list-type: map and x-kubernetes-list-map-keys, or move the rule above the list."},
	{0, ".optionalOldSelf", "", "Remove it, or use oldSelf in the rule."},
	{0, ".rule", "must evaluate to a bool", "A rule is true or false: compare the value with something."},
	{0, ".message", "must not contain line breaks", "Write the message in one line."},
	{0, ".message", "if rule contains line breaks", "Add a message of one line. Without one, the server would show the rule, which has several."},

	{0, "", "the server's validation panics", "The fieldPath of a rule or the jsonPath of a selectable field leads below additionalProperties: true or false, or into a schema with other problems. Give a path whose every step is specified in the schema."},
	{0, ".jsonPath", "is an invalid path", "Give the path of a field that the schema specifies, such as .spec.size; it may not go through a list."},
	{0, ".jsonPath", "Required value", "Give the path of a field, such as .spec.size."},
	{0, ".jsonPath", "must be a simple json path", "Begin with a dot, such as .spec.size."},
	{0, ".specReplicasPath", "", "Give the path of an integer under .spec, such as .spec.replicas."},
	{0, ".statusReplicasPath", "", "Give the path of an integer under .status, such as .status.replicas."},
	{0, ".labelSelectorPath", "", "Give the path of a string under .status or .spec, such as .status.selector."},
}

// The only form of anyOf with types that the server takes
// (apiextensions-apiserver/pkg/apiserver/schema/validation.go, isIntOrStringAnyOfPattern).
const intOrString = "Move it to where the field itself is specified. If the field is a number or a string, as a port is, set x-kubernetes-int-or-string: true there instead, and write anyOf: [{type: integer}, {type: string}], in this order."

const quoteAdvice = "Specify the field, with its name in quotes: YAML takes a plain n for false, and a plain y for true."

// The server has no estimate of how long a text is that an expression makes, and counts it where it
// is added up, joined or searched.
const costAdvice = "Limit what the rule has to go through: set maxItems of lists, maxProperties of maps and maxLength of strings, in this schema and around it. The server takes text that an expression makes for unlimited: write all of it in one format, without + and join: \"at most %d\".format([self.size]), with %s for a value that is not an integer. Compare such text with ==, and do not search it."
