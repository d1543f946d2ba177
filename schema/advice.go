package schema

import "strings"

// advise says how to mend a common fault; it is empty for others.
func advise(path, message string, rule int) string {
	if before, _, ok := strings.Cut(path, ".default."); ok {
		path = before + ".default"
	}
	for _, a := range advices {
		if (a.rule == 0 || a.rule == rule) && strings.HasSuffix(path, a.path) && strings.Contains(message, a.message) {
			return a.advice
		}
	}
	return ""
}

// advices are for faults of a rule, at a path that ends so, of which the message has these
// words. The first that fits is given.
var advices = []struct {
	rule                  int
	path, message, advice string
}{
	{1, ".items", "", "Add items, with the type of the elements."},
	{1, "", "must not be empty at the root", "Add type: object."},
	{1, "", "", "Add a type: object, array, string, integer, number or boolean. Where any value may be, add x-kubernetes-preserve-unknown-fields: true; where a number or a name, x-kubernetes-int-or-string: true."},
	{2, "", "", "Specify the field, with its type, outside of allOf, anyOf, oneOf and not too."},
	{3, "Of[0].type", "", intOrString},
	{3, "Of[1].type", "", intOrString},
	{3, "", "", "Move it out of allOf, anyOf, oneOf and not, to where the field itself is specified."},
	{4, "", "", "Remove it: of metadata, only name and generateName may be restricted, and only outside of allOf, anyOf, oneOf and not. The API server checks the rest."},

	{0, "metadata.name", "must be spec.names.plural", "Name the definition by its plural, a dot, and its group."},
	{0, "", "unknown field \"", "Remove it, or correct its name. Letter case matters."},
	{0, "", "duplicate field", "Remove one of both."},
	{0, "", "cannot unmarshal", "Give it a value of that type: in YAML, quotes make a string."},
	{0, "spec.group", "", "Take a domain that is yours, such as stable.example.com."},
	{0, "spec.scope", "", "Take Namespaced or Cluster."},
	{0, "spec.names.listKind", "may not be the same", "Leave it out: it is the kind and List, then."},
	{0, "api-approved.kubernetes.io]", "", "Groups below k8s.io and kubernetes.io belong to Kubernetes: take another group."},
	{0, "spec.preserveUnknownFields", "", "Remove it, and set x-kubernetes-preserve-unknown-fields: true in the schema where unknown fields are wanted."},
	{0, "", "exactly one version marked as storage", "Set storage: true in one version, and storage: false in the others."},
	{0, "status.storedVersions", "", "Set storage: true in one version."},
	{0, "", "must contain unique version names", "Rename or remove one of the versions of the same name."},
	{0, ".openAPIV3Schema", "Required value", "Add a schema. The least one, that keeps every field, is {type: object, x-kubernetes-preserve-unknown-fields: true}."},
	{0, ".deprecationWarning", "only be set for deprecated", "Set deprecated: true, or remove the warning."},

	{0, "", "spec.preserveUnknownFields is true", "Set spec.preserveUnknownFields: false."},
	{0, ".clientConfig", "", "Set either service, with namespace and name, or url."},
	{0, ".conversionReviewVersions", "", "List the versions of ConversionReview that the webhook takes, such as [v1]."},
	{0, "", "should not be set when strategy is not set to Webhook", "Set strategy: Webhook, or remove it."},

	{0, ".type", "must be object at the root", "Set type: object: an object of Kubernetes is never anything else."},
	{0, ".additionalProperties", "must not be used at the root", "Move the map to a field, such as spec."},
	{0, ".additionalProperties", "mutual exclusive", "Keep one of both: properties for known fields, additionalProperties for a map with any keys. Unknown fields beside known ones are kept with x-kubernetes-preserve-unknown-fields: true."},
	{0, ".uniqueItems", "", "Remove it. x-kubernetes-list-type: set says the same of scalars."},
	{0, ".$ref", "", "Write the schema out at this place."},
	{0, ".definitions", "", "Write each definition out where it is used."},
	{0, "", "use nullable as an alternative", "Set the type of the values that are not null, and nullable: true."},
	{0, ".patternProperties", "", "Use additionalProperties, and a rule of x-kubernetes-validations for the keys."},
	{0, "", "items must be a schema object", "Give one schema for all items."},
	{0, ".type", "boolean,date", "The types are boolean, date, integer, number and string."},
	{0, ".type", "Unsupported value", "The types are object, array, string, integer, number and boolean."},
	{0, "", "fields are allowed at the root of the schema if the status subresource is enabled", "Move what is at the root into spec, or, as a rule, into x-kubernetes-validations."},
	{0, ".nullable", "at the root", "Remove it."},
	{0, ".x-kubernetes-preserve-unknown-fields", "must be true or undefined", "Remove it: that is what false would mean."},
	{0, "", "x-kubernetes-list-map-keys, so it must have a default or be a required property", "Add the key to required of the items, or give it a default."},
	{0, ".x-kubernetes-list-map-keys", "must not be empty", "List the fields that identify an item, such as [name]."},
	{0, ".x-kubernetes-list-map-keys", "names of item properties", "Specify each key under properties of the items."},
	{0, "", "must be atomic as item of a list with x-kubernetes-list-type=set", "Set it to atomic, or make the list a map: x-kubernetes-list-type: map, with x-kubernetes-list-map-keys."},
	{0, ".pattern", "regular expression", "Patterns have the syntax of RE2, which knows no look-ahead and no back references (https://golang.org/s/re2syntax)."},

	{0, ".default", "must not be set in top-level", "Remove it: the API server sets what is in metadata."},
	{0, ".default", "must not have unknown fields", "Specify these fields in the schema, or take them out of the default."},
	{0, ".default", "", "Give a default that the schema itself accepts."},
	{0, "", "must be false in order to use defaults", "Set spec.preserveUnknownFields: false."},

	{0, "", "contributed to estimated rule cost total", "Bound what the rule goes over: maxItems of lists, maxProperties of maps, maxLength of strings, in this schema and around it."},
	{0, "", "exceeds budget", "Bound what the rule goes over: maxItems of lists, maxProperties of maps, maxLength of strings, in this schema and around it."},
	{0, "", "undefined field", "A rule sees only what the schema specifies: correct the name, or specify the field. Names that CEL cannot write are escaped: a-b is a__dash__b."},
	{0, "", "undeclared reference", "Fields are reached through self: self.name. has(self.name) says whether one is there."},
	{0, "", "oldSelf cannot be used on the uncorrelatable portion", "Make the list around it a map, with x-kubernetes-list-type: map and x-kubernetes-list-map-keys, or move the rule above the list."},
	{0, ".optionalOldSelf", "", "Remove it, or use oldSelf in the rule."},
	{0, ".rule", "must evaluate to a bool", "A rule says true or false: compare the value with something."},
	{0, ".message", "line breaks", "Add a message of one line: without one, the server would show the rule."},

	{0, ".jsonPath", "is an invalid path", "Give the path of a field that the schema specifies, such as .spec.size; it may not go through a list."},
	{0, ".jsonPath", "Required value", "Give the path of a field, such as .spec.size."},
	{0, ".jsonPath", "must be a simple json path", "Begin with a dot, such as .spec.size."},
	{0, ".specReplicasPath", "", "Give the path of an integer under .spec, such as .spec.replicas."},
	{0, ".statusReplicasPath", "", "Give the path of an integer under .status, such as .status.replicas."},
	{0, ".labelSelectorPath", "", "Give the path of a string under .status or .spec, such as .status.selector."},
}

const intOrString = "Move it to where the field itself is specified. Where it is a number or a string, such as the name of a port, set x-kubernetes-int-or-string: true there, and keep anyOf."
