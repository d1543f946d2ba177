package breaking_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// pair is a definition that another one replaces, and what breaks.
type pair struct {
	name, old, new string
	want           []string
}

const spec = "spec: {type: object, properties: {a: {type: string}}}"

func metadata(s string) string {
	return withSchema("{type: object, properties: {metadata: {type: object, properties: {" + s + "}}, " + spec + "}}")
}

var metadataPairs = []pair{
	{"shorter names", withSchema("{type: object, properties: {" + spec + "}}"), metadata("name: {type: string, maxLength: 10}"), []string{
		`v1 metadata.name: maxLength 253 is now 10 {"name":"aaaaaaaaaaa"} => metadata.name: Too long: may not be more than 10 bytes`}},
	{"shorter names than before", metadata("name: {type: string, maxLength: 20}"), metadata("name: {type: string, maxLength: 10}"), []string{
		`v1 metadata.name: maxLength 20 is now 10 {"name":"aaaaaaaaaaa"} => metadata.name: Too long: may not be more than 10 bytes`}},
	{"a pattern of names", metadata("name: {type: string}"), metadata("name: {type: string, pattern: '^[a-y]+$'}"), []string{
		`v1 metadata.name: it has the pattern ^[a-y]+$ now {"name":"0"} => metadata.name: Invalid value: "0": metadata.name in body should match '^[a-y]+$'`}},
	{"a pattern of prefixes", withSchema("{type: object, properties: {" + spec + "}}"), metadata("generateName: {type: string, pattern: '^p-'}"), []string{
		`v1 metadata.generateName: it has the pattern ^p- now {"generateName":"a","name":"a"} => metadata.generateName: Invalid value: "a": metadata.generateName in body should match '^p-'`}},
	{"shorter prefixes", metadata("generateName: {type: string, maxLength: 9}"), metadata("generateName: {type: string, maxLength: 5}"), []string{
		`v1 metadata.generateName: maxLength 9 is now 5 {"generateName":"aaaaaa","name":"a"} => metadata.generateName: Too long: may not be more than 5 bytes`}},
	{"a rule about names", withSchema("{type: object, properties: {" + spec + "}}"), withSchema("{type: object, properties: {" + spec + "}, x-kubernetes-validations: [{rule: size(self.metadata.name) <= 10}]}"), []string{
		`v1 .: there is a new rule: size(self.metadata.name) <= 10 {"name":"xxxxxxxxxxx"} => <nil>: Invalid value: failed rule: size(self.metadata.name) <= 10`}},
	{"longer names", metadata("name: {type: string, maxLength: 10}"), withSchema("{type: object, properties: {" + spec + "}}"), nil},
	{"an embedded resource", property("{type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true}"),
		property("{type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true, properties: {metadata: {type: object, properties: {name: {type: string, maxLength: 3}}}}}"),
		[]string{`v1 spec.a.metadata.name: maxLength is 3 now`}},
	{"no embedded resource", property("{type: object, x-kubernetes-embedded-resource: true, properties: {b: {type: string}}}"),
		property("{type: object, properties: {b: {type: string}}}"),
		[]string{`v1 spec.a.apiVersion: the field is removed`, `v1 spec.a.kind: the field is removed`, `v1 spec.a.metadata: the field is removed`}},
}

func TestMetadata_RestrictedNames(t *testing.T) {
	for _, test := range metadataPairs {
		t.Run(test.name, func(t *testing.T) {
			var got []string
			for i, c := range changes(t, test.old, test.new) {
				s := strings.ReplaceAll(told(c), " {}", " ")
				if c.Proof != nil {
					_, rest, _ := strings.Cut(string(c.Proof.Object), `"metadata":`)
					s = strings.Replace(s, "  =>", " "+strings.TrimSuffix(rest, "}")+" =>", 1)
				}
				if i < len(test.want) && !strings.Contains(test.want[i], "{") {
					s = c.Version + " " + c.Path + ": " + c.What
					if c.Proof == nil {
						s += " UNPROVEN"
					}
				}
				got = append(got, s)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// versions returns a definition of two versions with these fields.
func versions(storage, v1, v2 string) string {
	text := apples
	for i, schema := range []string{v1, v2} {
		name := fmt.Sprintf("v%d", i+1)
		text += fmt.Sprintf("  - {name: %s, served: true, storage: %t, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {%s}}}}}}\n", name, name == storage, schema)
	}
	return text
}

const a, b = "a: {type: string}", "b: {type: integer}"

var storagePairs = []pair{
	{"a field that it never had", versions("v1", a+", "+b, b), versions("v2", a+", "+b, b), []string{
		`v1 spec.a: the field is removed, because the storage version is now v2 {"spec":{"a":""}} -> spec.a: removed, was ""`}},
	{"a new version", strings.ReplaceAll(versions("v1", a, b), "v2, served: true", "v2, served: false"), versions("v2", a, b), []string{
		`v1 spec.a: the field is removed, because the storage version is now v2 {"spec":{"a":""}} -> spec.a: removed, was ""`}},
	{"a field that it has", versions("v1", a, a+", "+b), versions("v2", a, a+", "+b), nil},
	{"a field that was lost before, too", versions("v1", b, a+", "+b), versions("v2", b, a+", "+b), nil},
	{"a default", versions("v1", a, a), versions("v2", a, "a: {type: string, default: x}"), []string{
		`v2 spec.a: it has the default "x" now {"spec":{}} -> spec.a: "x", was not there`,
		`v1 spec.a: it has the default "x" now, because the storage version is now v2 {"spec":{}} -> spec.a: "x", was not there`}},
	{"no null", versions("v1", "a: {type: string, nullable: true}", a), versions("v2", "a: {type: string, nullable: true}", a), []string{
		`v1 spec.a: it is no longer nullable, because the storage version is now v2 {"spec":{"a":null}} -> spec.a: removed, was null`}},
	{"no map", versions("v1", "a: {type: object, additionalProperties: {type: string}}", "a: {type: object, properties: {c: {type: string}}}"),
		versions("v2", "a: {type: object, additionalProperties: {type: string}}", "a: {type: object, properties: {c: {type: string}}}"), []string{
			`v1 spec.a: it is no longer a map, because the storage version is now v2 {"spec":{"a":{"x":""}}} -> spec.a.x: removed, was ""`}},
	{"a webhook converts", strings.Replace(versions("v1", a, b), "scope:", webhookConversion+"  scope:", 1), strings.Replace(versions("v2", a, b), "scope:", webhookConversion+"  scope:", 1), nil},
}

// Without a webhook, the storage version decides which fields are kept.
func TestStorageVersion_LosesFields(t *testing.T) {
	for _, test := range storagePairs {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, breaks(t, test.old, test.new)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

const webhookConversion = `conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {url: "https://example.com/"}}}
`

const withStatus = "{type: object, properties: {spec: {type: object, properties: {a: {type: string}}}, status: {type: object, properties: {size: SIZE}}}}"

// status returns a definition with a schema for status.size, and subresources.
func status(size string, subresources ...string) string {
	text := withSchema(strings.Replace(withStatus, "SIZE", size, 1))
	return strings.Replace(text, "schema: ", "subresources: {"+strings.Join(subresources, ", ")+"}, schema: ", 1)
}

const sub, scale = "status: {}", "scale: {specReplicasPath: .spec.a, statusReplicasPath: .status.size}"

var statusPairs = []pair{
	{"the subresource is added", status("{type: integer}"), status("{type: integer}", sub), []string{
		`v1 subresources.status: the subresource is added {"status":{}} -> status: removed, was {}`}},
	{"status and scale are added", strings.Replace(status("{type: integer}"), "a: {type: string}", "a: {type: integer, format: int32, minimum: 0}", 1), strings.Replace(status("{type: integer}", sub, scale), "a: {type: string}", "a: {type: integer, format: int32, minimum: 0}", 1), []string{
		`v1 status.size: the scale subresource reads it now {} replaced by status of {"status":{"size":-1}} => .status.size: Invalid value: -1: should be a non-negative integer`,
		`v1 subresources.status: the subresource is added {"status":{}} -> status: removed, was {}`}},
	{"a stricter status", status("{type: string}", sub), status("{type: string, maxLength: 2}", sub), []string{
		`v1 status.size: maxLength is 2 now {} replaced by status of {"status":{"size":"aaa"}} => status.size: Too long: may not be more than 2 bytes`}},
	{"another default", status("{type: string, default: x}", sub), status("{type: string, default: z}", sub), []string{
		`v1 status.size: the default "x" is now "z" {} replaced by status of {"status":{}} -> status.size: "z", was "x"`}},
	{"a field removed", status("{type: string}", sub), strings.Replace(status("{type: string}", sub), "{size: {type: string}}", "{}", 1), []string{
		`v1 status.size: the field is removed {} replaced by status of {"status":{"size":""}} -> status.size: removed, was ""`}},
	{"a rule about both", status("{type: string, maxLength: 9}", sub), strings.Replace(strings.Replace(status("{type: string, maxLength: 9}", sub), "{type: object,", `{type: object, x-kubernetes-validations: [{rule: "!has(self.status) || !has(self.status.size)"}],`, 1), "VALIDATIONS", "", 1), []string{
		`v1 .: there is a new rule: !has(self.status) || !has(self.status.size) {} replaced by status of {"status":{"size":""}} => <nil>: Invalid value: failed rule: !has(self.status) || !has(self.status.size)`}},
	{"a rule about updates of an object with a status", status("{type: string, maxLength: 9}", sub), strings.Replace(status("{type: string, maxLength: 9}", sub), "{type: object,", `{type: object, x-kubernetes-validations: [{rule: "!has(oldSelf.status) || has(oldSelf.spec) || !has(self.spec)"}],`, 1), []string{
		`v1 .: there is a new rule: !has(oldSelf.status) || has(oldSelf.spec) || !has(self.spec) {"status":{}} replaced by {"spec":{}} => <nil>: Invalid value: failed rule: !has(oldSelf.status) || has(oldSelf.spec) || !has(self.spec)`}},
}

// The server drops the status of an object that is created.
func TestStatus_ProvenAsClientsWriteIt(t *testing.T) {
	for _, test := range statusPairs {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, breaks(t, test.old, test.new)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

const notBlocked, blocked = "false", "true"

var blockedPairs = []pair{
	{"a bound", property("{type: string}"), property("{type: string, maxLength: 2}"), []string{notBlocked}},
	{"a required field", property("{type: object}"), property("{type: object, required: [b], properties: {b: {type: string}}}"), []string{notBlocked}},
	{"a rule", property("{type: integer}"), property("{type: integer, x-kubernetes-validations: [{rule: self > 5}]}"), []string{notBlocked}},
	{"another type", property("{type: string}"), property("{type: integer}"), []string{notBlocked}},
	{"a set", property("{type: array, items: {type: string}}"), property("{type: array, items: {type: string}, x-kubernetes-list-type: set}"), []string{notBlocked}},
	{"a rule that fails", property("{type: object, properties: {b: {type: integer}}}"), property("{type: object, properties: {b: {type: integer}}, x-kubernetes-validations: [{rule: self.b > 5}]}"), []string{blocked}},
	{"the scale", property("{type: integer}"), strings.Replace(property("{type: integer}"), "schema: ", "subresources: {scale: {specReplicasPath: .spec.a, statusReplicasPath: .status.a}}, schema: ", 1), []string{blocked}},
	{"an object that is embedded", property("{type: object, x-kubernetes-preserve-unknown-fields: true}"), property("{type: object, x-kubernetes-preserve-unknown-fields: true, x-kubernetes-embedded-resource: true}"), []string{blocked}},
}

// An update that changes nothing in the part that is wrong passes, with exceptions.
func TestProof_Blocked(t *testing.T) {
	for _, test := range blockedPairs {
		t.Run(test.name, func(t *testing.T) {
			var got []string
			for _, c := range changes(t, test.old, test.new) {
				got = append(got, fmt.Sprint(c.Proof != nil && c.Proof.Blocked))
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A proof about a bound is long; what is in it is as short as possible.
func TestProof_IsSmall(t *testing.T) {
	for name, test := range map[string]struct {
		old, new string
		size     int
	}{
		"many items":        {"{type: array, items: {type: object, required: [m], properties: {m: {type: string}, o: {type: string}}}}", "{type: array, maxItems: 2000, items: {type: object, required: [m], properties: {m: {type: string}, o: {type: string}}}}", 2001*len(`{"m":""},`) + 100},
		"items that differ": {"{type: array, x-kubernetes-list-type: set, items: {type: string}}", "{type: array, maxItems: 64, x-kubernetes-list-type: set, items: {type: string}}", 65*len(`"aa",`) + 100},
		"many that differ":  {"{type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [m], items: {type: object, required: [m], properties: {m: {type: string}}}}", "{type: array, maxItems: 1000, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [m], items: {type: object, required: [m], properties: {m: {type: string}}}}", 1001*len(`{"m":"aaaa"},`) + 100},
		"a long text":       {"{type: object, properties: {b: {type: string}, c: {type: string, default: x}}}", "{type: object, properties: {b: {type: string, maxLength: 5000}, c: {type: string, default: x}}}", 5001 + 100},
	} {
		t.Run(name, func(t *testing.T) {
			all := changes(t, property(test.old), property(test.new))
			if len(all) != 1 || all[0].Proof == nil {
				t.Fatalf("the changes are %v, want one with a proof", all)
			}
			if size := len(all[0].Proof.Object); size > test.size {
				t.Errorf("the proof has %d bytes, want at most %d", size, test.size)
			}
		})
	}
}

// The other fields of a sample are not part of the proof.
func TestProof_SampleIsShrunk(t *testing.T) {
	sample := map[string]any{"apiVersion": "example.com/v1", "kind": "Apple", "metadata": map[string]any{"name": "b"}, "spec": map[string]any{"a": map[string]any{
		"digest": "77", "size": int64(700), "notes": []any{"one", "two"}, "free": map[string]any{"secret": strings.Repeat("x", 100)}}}}
	text := strings.Replace(locked, "size:", "notes: {type: array, items: {type: string}}, free: {type: object, x-kubernetes-preserve-unknown-fields: true}, size:", 1)
	all := changes(t, property(text), property(strings.Replace(text, "size: {type: integer", "size: {type: integer, maximum: 3", 1)), sample)
	if len(all) != 1 || all[0].Proof == nil {
		t.Fatalf("the changes are %v, want one with a proof", all)
	}
	if diff := cmp.Diff(`{"spec":{"a":{"digest":"77","size":7}}}`, short(all[0].Proof.Object)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Each run returns the same proofs, even if rules in several places compare fields of the same name.
func TestChanges_SameOnEachRun(t *testing.T) {
	var places []string
	for _, name := range []string{"b", "c", "d", "e", "f", "g"} {
		places = append(places, name+": {type: object, required: [kind], properties: {kind: {type: string}}, x-kubernetes-validations: [{rule: \"self.kind != '"+name+"'\"}]}")
	}
	several := "{type: object, properties: {size: {type: integer}, kind: {type: string, enum: [b, c, d, e, f, g]}, " + strings.Join(places, ", ") + "}, required: [kind]}"
	for _, text := range []string{locked, several} {
		old, new := property(text), property(strings.Replace(text, "integer", "integer, maximum: 3", 1))
		want := breaks(t, old, new)
		for range 5 {
			if diff := cmp.Diff(want, breaks(t, old, new)); diff != "" {
				t.Errorf("(-first +now):\n%s", diff)
			}
		}
	}
}
