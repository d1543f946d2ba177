package offline_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"
)

// A gadget of v2 says length where one of v1 says size. Each version has a default of its
// own, and v1alpha1 is deprecated.
const gadgetYAML = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: gadgets, kind: Gadget}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    selectableFields: [{jsonPath: .spec.color}]
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              size: {type: integer, minimum: 1}
              color: {type: string, default: grey}
              stored: {type: string, default: here}
          status: {type: object, properties: {phase: {type: string, maxLength: 10}}}
  - name: v2
    served: true
    storage: false
    subresources: {status: {}}
    selectableFields: [{jsonPath: .spec.shape}, {jsonPath: .spec.length}]
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              length: {type: integer, minimum: 1}
              color: {type: string, default: grey}
              shape: {type: string, default: round}
          status: {type: object, properties: {phase: {type: string, maxLength: 10}}}
  - name: v1alpha1
    served: true
    deprecated: true
    storage: false
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              size: {type: integer, minimum: 1}
              color: {type: string}
`

// unconverted is the definition without a webhook that converts.
func unconverted(string, []byte) *apiextensionsv1.CustomResourceDefinition {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	must(yaml.UnmarshalStrict([]byte(gadgetYAML), crd))
	return crd
}

func gadgetCRD(url string, ca []byte) *apiextensionsv1.CustomResourceDefinition {
	crd := unconverted(url, ca)
	crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{
		Strategy: apiextensionsv1.WebhookConverter,
		Webhook: &apiextensionsv1.WebhookConversion{
			ClientConfig:             &apiextensionsv1.WebhookClientConfig{URL: new(url + "/convert"), CABundle: ca},
			ConversionReviewVersions: []string{"v1"},
		},
	}
	return crd
}

// gadgetHandler serves all webhooks of the gadgets.
func gadgetHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/convert", answer(convertGadgets))
	mux.HandleFunc("/count", answer(func(request map[string]any) map[string]any {
		// How often it was called for this very request.
		annotations, _ := metadataOf(request)["annotations"].(map[string]any)
		if annotations["count"] == nil {
			return patch(metadataPatch(request, "annotations", "count", "1"))
		}
		return patch(map[string]any{"op": "replace", "path": "/metadata/annotations/count", "value": annotations["count"].(string) + "1"})
	}))
	mux.HandleFunc("/label", answer(func(request map[string]any) map[string]any {
		labels, _ := metadataOf(request)["labels"].(map[string]any)
		if labels["gadget"] != nil {
			return map[string]any{"allowed": true}
		}
		return patch(metadataPatch(request, "labels", "gadget", "yes"))
	}))
	mux.HandleFunc("/odd", answer(oddMutation))
	mux.HandleFunc("/judge", answer(judge))
	mux.HandleFunc("/never", answer(func(request map[string]any) map[string]any {
		return map[string]any{"allowed": false, "status": map[string]any{"message": "this one was not to be called"}}
	}))
	mux.HandleFunc("/deletions", answer(func(request map[string]any) map[string]any {
		return map[string]any{"allowed": !strings.HasPrefix(request["name"].(string), "kept"), "warnings": []string{"a deletion"}}
	}))
	mux.HandleFunc("/down", func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "out of order", http.StatusInternalServerError)
	})
	return mux
}

func metadataOf(request map[string]any) map[string]any {
	return request["object"].(map[string]any)["metadata"].(map[string]any)
}

func metadataPatch(request map[string]any, field, key, value string) map[string]any {
	if metadataOf(request)[field] == nil {
		return map[string]any{"op": "add", "path": "/metadata/" + field, "value": map[string]any{key: value}}
	}
	return map[string]any{"op": "add", "path": "/metadata/" + field + "/" + key, "value": value}
}

func patch(operations ...map[string]any) map[string]any {
	text, err := json.Marshal(operations)
	must(err)
	return map[string]any{"allowed": true, "patchType": "JSONPatch", "patch": text}
}

// convertGadgets renames a field, and goes wrong for some names.
func convertGadgets(request map[string]any) map[string]any {
	to := request["desiredAPIVersion"].(string)
	var converted []any
	for _, o := range request["objects"].([]any) {
		object := o.(map[string]any)
		metadata := object["metadata"].(map[string]any)
		object["apiVersion"] = to
		if spec, ok := object["spec"].(map[string]any); ok {
			from, into, lost := "length", "size", "shape"
			if to == "example.com/v2" {
				from, into, lost = into, from, "stored"
			}
			delete(spec, lost)
			if v, ok := spec[from]; ok {
				spec[into] = v
				delete(spec, from)
			}
			spec["converted"] = "the schema has no such field"
		}
		labels, _ := metadata["labels"].(map[string]any)
		switch labels["conversion"] {
		case "renames":
			metadata["name"] = "other"
		case "changes":
			metadata["annotations"] = map[string]any{"converted": "to-" + strings.TrimPrefix(to, "example.com/")}
			metadata["finalizers"] = []any{"example.com/ignored"}
		case "spoils":
			metadata["annotations"] = map[string]any{"not a key!": "x"}
		case "counts":
			metadata["annotations"] = map[string]any{"n": 1}
		case "stays":
			object["apiVersion"] = "example.com/v1alpha1"
		case "kind":
			object["kind"] = "Widget"
		case "strips":
			delete(object, "metadata")
		case "none":
			continue
		case "fails":
			return map[string]any{"result": map[string]any{"status": "Failure", "message": "out of gadgets"}}
		case "one-way":
			if to == "example.com/v2" {
				return map[string]any{"result": map[string]any{"status": "Failure", "message": "no way back"}}
			}
		case "silent":
			return map[string]any{"result": map[string]any{"status": "Failure"}}
		case "uid":
			return map[string]any{"uid": "wrong", "result": map[string]any{"status": "Success"}}
		}
		converted = append(converted, object)
	}
	return map[string]any{"result": map[string]any{"status": "Success"}, "convertedObjects": converted}
}

// oddMutation does what a mutating webhook can do, by the object's label.
func oddMutation(request map[string]any) map[string]any {
	object := request["object"].(map[string]any)
	labels, _ := metadataOf(request)["labels"].(map[string]any)
	switch labels["mutation"] {
	case "adds":
		return patch(map[string]any{"op": "add", "path": "/spec", "value": map[string]any{"unknown": true}})
	case "spoils":
		return patch(map[string]any{"op": "add", "path": "/spec", "value": map[string]any{"size": "big"}})
	case "impossible":
		return patch(map[string]any{"op": "remove", "path": "/spec/nowhere"})
	case "undecodable":
		return map[string]any{"allowed": true, "patchType": "JSONPatch", "patch": []byte("{")}
	case "untyped":
		return map[string]any{"allowed": true, "patch": []byte("[]")}
	case "strategic":
		return map[string]any{"allowed": true, "patchType": "StrategicMergePatch", "patch": []byte(`[{"op":"test","path":"/kind","value":"Gadget"}]`)}
	case "kindless":
		return patch(map[string]any{"op": "remove", "path": "/kind"})
	case "denies":
		return map[string]any{"allowed": false, "warnings": []string{"first"}, "status": map[string]any{"reason": "Forbidden", "code": 403}}
	case "renames":
		return patch(map[string]any{"op": "replace", "path": "/metadata/name", "value": "renamed"})
	case "mismanages":
		return patch(map[string]any{"op": "add", "path": "/metadata/managedFields", "value": []any{map[string]any{"manager": "x", "operation": "Sit"}}})
	case "unmanages":
		return patch(map[string]any{"op": "add", "path": "/metadata/managedFields", "value": []any{}})
	case "names":
		if object["metadata"].(map[string]any)["name"] == nil {
			return patch(map[string]any{"op": "add", "path": "/metadata/name", "value": "named"})
		}
	case "warns":
		return map[string]any{"allowed": true, "warnings": []string{"mind the gadget", "mind the gadget", ""}}
	}
	return map[string]any{"allowed": true}
}

// judge is a validating webhook that says what the object's label asks for.
func judge(request map[string]any) map[string]any {
	labels, _ := metadataOf(request)["labels"].(map[string]any)
	switch labels["verdict"] {
	case "no":
		return map[string]any{"allowed": false, "warnings": []string{"it was close"}}
	case "message":
		return map[string]any{"allowed": false, "status": map[string]any{"message": "not this one"}}
	case "status":
		return map[string]any{"allowed": false, "status": map[string]any{
			"message": `Gadget "x" is invalid`, "reason": "Invalid", "code": 422,
			"details": map[string]any{"name": "x", "group": "example.com", "kind": "Gadget", "causes": []any{map[string]any{"reason": "FieldValueInvalid", "field": "spec.size", "message": "too big"}}},
		}}
	case "success":
		return map[string]any{"allowed": false, "status": map[string]any{"status": "Success", "code": 200}}
	case "patches":
		return patch(map[string]any{"op": "add", "path": "/spec", "value": map[string]any{}})
	case "uid":
		return map[string]any{"allowed": true, "uid": "wrong"}
	case "warns":
		return map[string]any{"allowed": true, "warnings": []string{"judged"}}
	}
	return map[string]any{"allowed": true}
}

// gadgetHooks returns the registration of the webhooks.
func gadgetHooks(url string, ca []byte) (mutating []admissionregistrationv1.MutatingWebhook, validating []admissionregistrationv1.ValidatingWebhook) {
	const create, update, del = admissionregistrationv1.Create, admissionregistrationv1.Update, admissionregistrationv1.Delete
	at := func(path string) admissionregistrationv1.WebhookClientConfig {
		return admissionregistrationv1.WebhookClientConfig{URL: new(url + path), CABundle: ca}
	}
	rules := func(version, resource string, ops ...admissionregistrationv1.OperationType) []admissionregistrationv1.RuleWithOperations {
		return []admissionregistrationv1.RuleWithOperations{{Operations: ops, Rule: admissionregistrationv1.Rule{
			APIGroups: []string{"example.com"}, APIVersions: []string{version}, Resources: []string{resource},
		}}}
	}
	when := func(text string) []admissionregistrationv1.MatchCondition {
		return []admissionregistrationv1.MatchCondition{{Name: "when", Expression: text}}
	}
	none := new(admissionregistrationv1.SideEffectClassNone)
	v1 := []string{"v1"}
	labelled := func(key, value string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
	}
	mutating = []admissionregistrationv1.MutatingWebhook{
		{Name: "a-count.example.com", ClientConfig: at("/count"), Rules: rules("v1", "gadgets", create, update), SideEffects: none, AdmissionReviewVersions: v1,
			ReinvocationPolicy: new(admissionregistrationv1.IfNeededReinvocationPolicy), ObjectSelector: labelled("count", "me")},
		{Name: "b-label.example.com", ClientConfig: at("/label"), Rules: rules("v2", "gadgets", create), SideEffects: none, AdmissionReviewVersions: v1,
			ObjectSelector: labelled("count", "me"), TimeoutSeconds: new(int32(7))},
		{Name: "c-odd.example.com", ClientConfig: at("/odd"), Rules: rules("*", "gadgets", create, update), SideEffects: none, AdmissionReviewVersions: []string{"v2", "v1", "v1beta1"},
			MatchPolicy: new(admissionregistrationv1.Exact)},
		{Name: "d-exact.example.com", ClientConfig: at("/never"), Rules: rules("v2", "gadgets", create), SideEffects: none, AdmissionReviewVersions: v1,
			MatchPolicy: new(admissionregistrationv1.Exact), ObjectSelector: labelled("exact", "me")},
		{Name: "e-down.example.com", ClientConfig: at("/down"), Rules: rules("*", "gadgets", create), SideEffects: none, AdmissionReviewVersions: v1,
			FailurePolicy: new(admissionregistrationv1.Ignore), MatchConditions: when("object.metadata.name.startsWith('down-ignored')")},
		{Name: "f-elsewhere.example.com", ClientConfig: at("/never"), Rules: rules("*", "*", create), SideEffects: none, AdmissionReviewVersions: v1,
			NamespaceSelector: labelled("kubernetes.io/metadata.name", "elsewhere")},
		{Name: "g-effects.example.com", ClientConfig: at("/odd"), Rules: rules("*", "gadgets", create), SideEffects: new(admissionregistrationv1.SideEffectClassNoneOnDryRun), AdmissionReviewVersions: []string{"v1beta1"},
			ObjectSelector: labelled("old", "review")},
		{Name: "h-late.example.com", ClientConfig: at("/label"), Rules: rules("v2", "gadgets", create), SideEffects: none, AdmissionReviewVersions: v1,
			ObjectSelector: labelled("late", "me")},
		{Name: "i-team.example.com", ClientConfig: at("/label"), Rules: rules("*", "gadgets", create), SideEffects: none, AdmissionReviewVersions: v1,
			NamespaceSelector: labelled("team", "gears"), ObjectSelector: labelled("team", "me")},
		{Name: "j-other-team.example.com", ClientConfig: at("/never"), Rules: rules("*", "gadgets", create), SideEffects: none, AdmissionReviewVersions: v1,
			NamespaceSelector: labelled("team", "springs"), ObjectSelector: labelled("team", "me")},
	}
	validating = []admissionregistrationv1.ValidatingWebhook{
		{Name: "judge.example.com", ClientConfig: at("/judge"), Rules: rules("v1", "*/*", create, update), SideEffects: none, AdmissionReviewVersions: v1},
		{Name: "down.example.com", ClientConfig: at("/down"), Rules: rules("*", "gadgets", create), SideEffects: none, AdmissionReviewVersions: v1,
			MatchConditions: when("object.metadata.name == 'down-fails'")},
		{Name: "condition.example.com", ClientConfig: at("/never"), Rules: rules("*", "gadgets", create), SideEffects: none, AdmissionReviewVersions: v1,
			MatchConditions: when("object.metadata.name == 'condition' && object.spec.nothing == 1")},
		{Name: "deletions.example.com", ClientConfig: at("/deletions"), Rules: rules("v2", "gadgets", del), SideEffects: none, AdmissionReviewVersions: []string{"v1beta1"}},
	}
	return mutating, validating
}

func gadget(version, name, labels, spec string) string {
	metadata := map[string]any{}
	if strings.HasSuffix(name, "-") {
		metadata["generateName"] = name
	} else {
		metadata["name"] = name
	}
	if labels != "" {
		all := map[string]string{}
		for pair := range strings.SplitSeq(labels, ",") {
			key, value, _ := strings.Cut(pair, "=")
			all[key] = value
		}
		metadata["labels"] = all
	}
	object := map[string]any{"apiVersion": "example.com/" + version, "kind": "Gadget", "metadata": metadata}
	if spec != "" {
		object["spec"] = json.RawMessage(spec)
	}
	text, err := json.Marshal(object)
	must(err)
	return string(text)
}

// withMetadata returns an object with one more field in its metadata.
func withMetadata(object, name, value string) string {
	return strings.Replace(object, `"metadata":{`, `"metadata":{"`+name+`":"`+value+`",`, 1)
}

func set(path string, value any) func(map[string]any) {
	return func(object map[string]any) {
		keys := strings.Split(path, ".")
		for _, key := range keys[:len(keys)-1] {
			if object[key] == nil {
				object[key] = map[string]any{}
			}
			object = object[key].(map[string]any)
		}
		if last := keys[len(keys)-1]; value == nil {
			delete(object, last)
		} else {
			object[last] = value
		}
	}
}

const twoOwners = `[{"apiVersion":"v1","kind":"Pod","name":"p","uid":"p"},{"apiVersion":"v1","kind":"Pod","name":"p","uid":"p"}]`

func gadgetSteps() (steps []step) {
	add := func(s ...step) { steps = append(steps, s...) }
	add(
		step{name: "an object", verb: "create", version: "v1", object: gadget("v1", "a", "", `{"size":1}`)},
		step{name: "in another version", verb: "create", version: "v2", object: gadget("v2", "b", "", `{"length":2}`)},
		step{name: "in YAML", verb: "create", version: "v2", object: "apiVersion: example.com/v2\nkind: Gadget\nmetadata:\n  name: yaml\nspec:\n  length: 3\n"},
		step{name: "in a version that is deprecated", verb: "create", version: "v1alpha1", object: gadget("v1alpha1", "c", "", `{"size":3,"nothing":1}`)},
		step{name: "without a spec", verb: "create", version: "v2", object: gadget("v2", "empty", "", "")},
		step{name: "read it in v1", verb: "get", version: "v1", of: "b"},
		step{name: "read it in v2", verb: "get", version: "v2", of: "a"},
		step{name: "read it in v1alpha1", verb: "get", version: "v1alpha1", of: "a"},
		step{name: "read what is not there", verb: "get", version: "v1", of: "nobody"},
		step{name: "the name is taken", verb: "create", version: "v2", object: gadget("v2", "a", "", "")},
		step{name: "the name is taken, dry", verb: "create", version: "v2", dry: true, object: gadget("v2", "a", "", "")},
		step{name: "the name is taken, and one could be generated", verb: "create", version: "v2", object: withMetadata(gadget("v2", "a", "", ""), "generateName", "a-")},
		step{name: "the name is taken, and one could be generated, dry", verb: "create", version: "v2", dry: true, object: withMetadata(gadget("v2", "a", "", ""), "generateName", "a-")},
		step{name: "two names that are generated are taken", verb: "create", version: "v2", dry: true, object: gadget("v2", "taken-", "taken=2", "")},
		step{name: "all names that are generated are taken", verb: "create", version: "v1", object: gadget("v1", "all-taken-", "taken=always", "")},
		step{name: "a resource version in the object, dry", verb: "create", version: "v2", dry: true, object: withMetadata(gadget("v2", "versioned", "", ""), "resourceVersion", "7")},
		step{name: "a resource version that is no number, dry", verb: "create", version: "v2", dry: true, object: withMetadata(gadget("v2", "versioned", "", ""), "resourceVersion", "x")},
		step{name: "a resource version in the object, and the name is taken, dry", verb: "create", version: "v2", dry: true, object: withMetadata(gadget("v2", "a", "", ""), "resourceVersion", "7")},
		step{name: "a resource version in the object, and the name is taken", verb: "create", version: "v2", object: withMetadata(gadget("v2", "a", "", ""), "resourceVersion", "7")},
		step{name: "a webhook for the labels of the namespace", verb: "create", version: "v1", object: gadget("v1", "team", "team=me", "")},
		step{name: "a resource version in the object", verb: "create", version: "v2", object: strings.Replace(gadget("v2", "generated-", "", ""), `"generateName"`, `"resourceVersion":"7","generateName"`, 1)},
		step{name: "a name is generated", verb: "create", version: "v1", object: gadget("v1", "generated-", "", "")},
		step{name: "a webhook gives the name", verb: "create", version: "v1", object: gadget("v1", "generated-", "mutation=names", "")},
		step{name: "dry", verb: "create", version: "v2", dry: true, object: gadget("v2", "dry", "", `{"length":2}`)},
		step{name: "it is not there then", verb: "get", version: "v2", of: "dry"},
		step{name: "unknown fields, strict", verb: "create", version: "v2", fields: "Strict", object: gadget("v2", "strict", "", `{"lenght":2}`)},
		step{name: "unknown fields, warned of", verb: "create", version: "v2", object: gadget("v2", "unknown", "", `{"lenght":2}`)},
		step{name: "field validation that is not there", verb: "create", version: "v2", fields: "Hard", object: gadget("v2", "strict", "", "")},
		step{name: "the schema refuses it", verb: "create", version: "v2", object: gadget("v2", "small", "verdict=no", `{"length":0}`)},
		step{name: "another version in the object", verb: "create", version: "v2", object: gadget("v1", "x", "", "")},
		step{name: "no JSON", verb: "create", version: "v2", object: "{"},
	)
	for _, m := range []string{"adds", "spoils", "impossible", "undecodable", "untyped", "strategic", "kindless", "denies", "warns", "renames", "mismanages", "unmanages"} {
		add(step{name: "a mutating webhook " + m, verb: "create", version: "v1", object: gadget("v1", "mutation-"+m, "mutation="+m, `{"size":1}`)},
			step{name: "a mutating webhook " + m + ", in another version", verb: "create", version: "v2", object: gadget("v2", "mutation-"+m+"2", "mutation="+m, `{"length":1}`)})
	}
	for _, v := range []string{"no", "message", "status", "success", "patches", "uid", "warns"} {
		add(step{name: "a validating webhook says " + v, verb: "create", version: "v2", object: gadget("v2", "verdict-"+v, "verdict="+v, `{"length":1}`)})
	}
	add(
		step{name: "a verdict comes before the name is taken", verb: "create", version: "v2", object: gadget("v2", "a", "verdict=no", "")},
		step{name: "a webhook is called again", verb: "create", version: "v1", object: gadget("v1", "again", "count=me", `{"size":1}`)},
		step{name: "a webhook is called again, in another version", verb: "create", version: "v2", object: gadget("v2", "again2", "count=me", `{"length":1}`)},
		step{name: "a webhook is called again, in a third version", verb: "create", version: "v1alpha1", object: gadget("v1alpha1", "again3", "count=me", `{"size":1}`)},
		step{name: "a webhook is not called again without need", verb: "create", version: "v2", object: gadget("v2", "once", "count=me,gadget=yes", "")},
		step{name: "a webhook in another version gets its defaults, and the request not again", verb: "create", version: "v1", object: gadget("v1", "late", "late=me", `{"size":1}`)},
		step{name: "a webhook for another version alone", verb: "create", version: "v1", object: gadget("v1", "exact", "exact=me", "")},
		step{name: "a webhook for this version alone", verb: "create", version: "v2", object: gadget("v2", "exact2", "exact=me", "")},
		step{name: "a webhook with old reviews", verb: "create", version: "v2", dry: true, object: gadget("v2", "old", "old=review", "")},
		step{name: "a webhook that is down is ignored", verb: "create", version: "v2", object: gadget("v2", "down-ignored", "", "")},
		step{name: "a webhook that is down", verb: "create", version: "v2", object: gadget("v2", "down-fails", "", "")},
		step{name: "a condition that fails", verb: "create", version: "v2", object: gadget("v2", "condition", "", "")},
	)
	for _, c := range []string{"renames", "changes", "spoils", "counts", "stays", "kind", "strips", "none", "fails", "silent", "uid"} {
		add(step{name: "a conversion that " + c, verb: "create", version: "v2", object: gadget("v2", "conversion-"+c, "conversion="+c, `{"length":1}`)})
	}
	add(
		step{name: "a conversion that fails for admission", verb: "create", version: "v2", object: gadget("v2", "conversion-c", "conversion=fails,count=me", "")},

		step{name: "an update", verb: "update", version: "v1", of: "a", edit: set("spec.size", 5)},
		step{name: "an update in another version", verb: "update", version: "v2", of: "a", edit: set("spec.length", 6)},
		step{name: "an update that changes nothing", verb: "update", version: "v1", of: "a", edit: func(map[string]any) {}},
		step{name: "an update that changes nothing, in another version", verb: "update", version: "v2", of: "a", edit: func(map[string]any) {}},
		step{name: "an update of a label", verb: "update", version: "v2", of: "a", edit: set("metadata.labels", map[string]any{"x": "y"})},
		step{name: "an update that is denied", verb: "update", version: "v2", of: "a", edit: set("metadata.labels", map[string]any{"verdict": "status"})},
		step{name: "an update that is invalid", verb: "update", version: "v2", of: "a", edit: set("spec.length", 0)},
		step{name: "an update without a version", verb: "update", version: "v2", of: "a", edit: set("metadata.resourceVersion", nil)},
		step{name: "an update of an old version", verb: "update", version: "v2", of: "a", edit: set("metadata.resourceVersion", "1")},
		step{name: "an update of another object", verb: "update", version: "v2", of: "a", edit: set("metadata.uid", "11111111-1111-4111-8111-111111111111")},
		step{name: "an update of what is not there", verb: "update", version: "v2", object: gadget("v2", "nobody", "mutation=denies", "")},
		step{name: "a dry update", verb: "update", version: "v2", of: "a", dry: true, edit: set("spec.length", 9)},
		step{name: "it has changed nothing", verb: "get", version: "v2", of: "a"},
		step{name: "an update keeps the status", verb: "update", version: "v2", of: "a", edit: set("status", map[string]any{"phase": "ignored"})},
		step{name: "a dry update keeps selfLink", verb: "update", version: "v1", of: "a", dry: true, edit: set("metadata.selfLink", "/a")},
		step{name: "an update that a webhook mismanages", verb: "update", version: "v1", of: "mutation-mismanages", edit: set("spec.size", 3)},
		step{name: "an update with field validation that is not there", verb: "update", version: "v2", of: "a", fields: "Hard", edit: set("spec.length", 6)},
		step{name: "the status", verb: "status", version: "v2", of: "a", edit: func(o map[string]any) {
			set("status.phase", "fine")(o)
			set("spec.length", 77)(o)
		}},
		step{name: "the status is too long", verb: "status", version: "v2", of: "a", edit: set("status.phase", "much too long")},
		step{name: "the status of a version that has none", verb: "patch status", version: "v1alpha1", of: "a", as: types.MergePatchType, patch: `{"status":{}}`},
		step{name: "the status is judged", verb: "patch status", version: "v2", of: "verdict-warns", as: types.MergePatchType, patch: `{"status":{"phase":"x"},"spec":{"length":9}}`},

		step{name: "a merge patch", verb: "patch", version: "v2", of: "a", as: types.MergePatchType, patch: `{"spec":{"length":8,"shape":null}}`},
		step{name: "a merge patch that changes nothing", verb: "patch", version: "v2", of: "b", as: types.MergePatchType, patch: `{"spec":{"length":2}}`},
		step{name: "a merge patch with unknown fields", verb: "patch", version: "v2", of: "a", as: types.MergePatchType, patch: `{"spec":{"lenght":8}}`},
		step{name: "a merge patch with a field twice", verb: "patch", version: "v2", of: "a", as: types.MergePatchType, patch: `{"spec":{"length":8,"length":9}}`},
		step{name: "a merge patch that is no object", verb: "patch", version: "v2", of: "a", as: types.MergePatchType, patch: `[]`},
		step{name: "a merge patch that renames", verb: "patch", version: "v2", of: "a", as: types.MergePatchType, patch: `{"metadata":{"name":"other"}}`},
		step{name: "a merge patch of what is not there", verb: "patch", version: "v2", of: "nobody", as: types.MergePatchType, patch: `{}`},
		step{name: "a merge patch with an old version", verb: "patch", version: "v2", of: "a", as: types.MergePatchType, patch: `{"metadata":{"resourceVersion":"1"}}`},
		step{name: "a JSON patch", verb: "patch", version: "v1", of: "a", as: types.JSONPatchType, patch: `[{"op":"replace","path":"/spec/size","value":4}]`},
		step{name: "a JSON patch whose test fails", verb: "patch", version: "v1", of: "a", as: types.JSONPatchType, patch: `[{"op":"test","path":"/spec/size","value":7}]`},
		step{name: "a JSON patch with an unknown field", verb: "patch", version: "v1", of: "a", as: types.JSONPatchType, patch: `[{"op":"test","path":"/spec/size","value":4,"why":1}]`},
		step{name: "a JSON patch that is none", verb: "patch", version: "v1", of: "a", as: types.JSONPatchType, patch: `{}`},

		step{name: "a JSON patch with an unknown field, strict", verb: "patch", version: "v1", of: "a", fields: "Strict", as: types.JSONPatchType, patch: `[{"op":"test","path":"/spec/size","value":4,"why":1},{"op":"add","path":"/spec/siez","value":4}]`},
		step{name: "a JSON patch with an unknown field and a test that fails, strict", verb: "patch", version: "v1", of: "a", fields: "Strict", as: types.JSONPatchType, patch: `[{"op":"test","path":"/spec/size","value":7,"why":1}]`},
		step{name: "a merge patch with a field twice, strict", verb: "patch", version: "v2", of: "a", fields: "Strict", as: types.MergePatchType, patch: `{"spec":{"length":8,"length":9}}`},
		step{name: "a merge patch with unknown fields, strict", verb: "patch", version: "v2", of: "a", fields: "Strict", as: types.MergePatchType, patch: `{"spec":{"lenght":8,"lenght":9}}`},
		step{name: "a merge patch with unknown fields, ignored", verb: "patch", version: "v2", of: "a", fields: "Ignore", as: types.MergePatchType, patch: `{"spec":{"lenght":8,"lenght":9}}`},
		step{name: "a merge patch after which nothing can be decoded", verb: "patch", version: "v2", of: "a", as: types.MergePatchType, patch: `{"metadata":{"labels":{"a":{}}},"spec":{"lenght":8,"lenght":9}}`},
		step{name: "a merge patch that takes the kind away", verb: "patch", version: "v2", of: "a", as: types.MergePatchType, patch: `{"kind":null}`},
		step{name: "a merge patch to another kind", verb: "patch", version: "v2", of: "a", as: types.MergePatchType, patch: `{"kind":"Widget"}`},
		step{name: "a merge patch to another version", verb: "patch", version: "v2", of: "a", as: types.MergePatchType, patch: `{"apiVersion":"example.com/v1","spec":{"size":3}}`},
		step{name: "a merge patch to a version that is not there", verb: "patch", version: "v2", of: "a", as: types.MergePatchType, patch: `{"apiVersion":"example.com/v3"}`},
		step{name: "a merge patch to another group", verb: "patch", version: "v1", of: "a", as: types.MergePatchType, patch: `{"apiVersion":"v1"}`},
		step{name: "a merge patch to another uid", verb: "patch", version: "v2", of: "a", as: types.MergePatchType, patch: `{"metadata":{"uid":"11111111-1111-4111-8111-111111111111"}}`},
		step{name: "a merge patch to another namespace", verb: "patch", version: "v2", of: "a", as: types.MergePatchType, patch: `{"metadata":{"namespace":"other"}}`},
		step{name: "a merge patch with an owner twice", verb: "patch", version: "v2", of: "a", dry: true, as: types.MergePatchType, patch: `{"metadata":{"ownerReferences":` + twoOwners + `}}`},
		step{name: "an update with an owner twice", verb: "update", version: "v2", of: "a", dry: true, edit: set("metadata.ownerReferences", json.RawMessage(twoOwners))},
		step{name: "a merge patch with field validation that is not there", verb: "patch", version: "v2", of: "nobody", fields: "Hard", as: types.MergePatchType, patch: `{}`},
		step{name: "a strategic merge patch", verb: "patch", version: "v2", of: "a", as: types.StrategicMergePatchType, patch: `{"spec":{"length":8}}`},
		step{name: "a strategic merge patch of what is not there", verb: "patch", version: "v2", of: "nobody", fields: "Hard", as: types.StrategicMergePatchType, patch: `{}`},
		step{name: "a patch of a type that is not there", verb: "patch status", version: "v1", of: "a", as: "application/merge-patch+yaml", patch: `{}`},
		step{name: "a patch of a type that is not there, of a status that is not there", verb: "patch status", version: "v1alpha1", of: "a", as: "application/merge-patch+yaml", patch: `{}`},

		step{name: "list by name", verb: "list", version: "v2", fieldSelector: "metadata.name=a"},
		step{name: "list by a name that is not there", verb: "list", version: "v2", fieldSelector: "metadata.name=nobody"},
		step{name: "list all others", verb: "list", version: "v1", fieldSelector: "metadata.name!=a,metadata.namespace=default"},
		step{name: "list another namespace", verb: "list", version: "v1", fieldSelector: "metadata.namespace=other"},
		step{name: "list by a field", verb: "list", version: "v1", fieldSelector: "spec.color=grey"},
		step{name: "list by a field that is a number", verb: "list", version: "v2", fieldSelector: "spec.length=8,spec.shape="},
		step{name: "list by a field that has another name in storage", verb: "list", version: "v2", fieldSelector: "spec.length=4"},
		step{name: "list by a field of another version", verb: "list", version: "v2", fieldSelector: "spec.color=grey"},
		step{name: "list by a field that is not selectable", verb: "list", version: "v1alpha1", fieldSelector: "spec.size=1"},
		step{name: "list by a label", verb: "list", version: "v1", labelSelector: "gadget=yes,count"},
		step{name: "list by a label and a field", verb: "list", version: "v1", labelSelector: "gadget", fieldSelector: "metadata.name=again"},

		step{name: "list v1", verb: "list", version: "v1"},
		step{name: "list v2", verb: "list", version: "v2"},
		step{name: "list v1alpha1", verb: "list", version: "v1alpha1"},

		step{name: "delete", verb: "delete", version: "v1", of: "b"},
		step{name: "delete it again", verb: "delete", version: "v1", of: "b"},
		step{name: "delete, dry", verb: "delete", version: "v2", of: "c", dry: true},
		step{name: "it is still there", verb: "get", version: "v2", of: "c"},
		step{name: "one that is kept", verb: "create", version: "v1", object: gadget("v1", "kept", "", "")},
		step{name: "a deletion is denied", verb: "delete", version: "v1", of: "kept"},
		step{name: "one with finalizers", verb: "create", version: "v2", object: strings.Replace(gadget("v2", "final", "", `{"length":1}`), `"metadata":{`, `"metadata":{"finalizers":["example.com/a","bad"],`, 1)},
		step{name: "its deletion would wait", verb: "delete", version: "v2", of: "final", dry: true},
		step{name: "its deletion waits", verb: "delete", version: "v2", of: "final"},
		step{name: "its deletion still waits", verb: "delete", version: "v1", of: "final"},
		step{name: "its name is taken", verb: "create", version: "v1", object: gadget("v1", "final", "", "")},
		step{name: "its name is taken, and one could be generated", verb: "create", version: "v1", object: withMetadata(gadget("v1", "final", "", ""), "generateName", "a-")},
		step{name: "it is read", verb: "get", version: "v1", of: "final"},
		step{name: "it gets no more finalizers", verb: "update", version: "v1", of: "final", edit: set("metadata.finalizers", []any{"example.com/a", "example.com/b"})},
		step{name: "it loses a finalizer", verb: "update", version: "v1", of: "final", edit: set("metadata.finalizers", []any{"example.com/a"})},
		step{name: "it would lose the last one", verb: "patch", version: "v2", of: "final", dry: true, as: types.MergePatchType, patch: `{"metadata":{"finalizers":null}}`},
		step{name: "it loses the last one", verb: "patch", version: "v2", of: "final", as: types.MergePatchType, patch: `{"metadata":{"finalizers":null}}`},
		step{name: "it has gone", verb: "get", version: "v2", of: "final"},
	)
	return steps
}

// undecodableSteps are about gadgets that can be stored in v1, and not read in v2.
func undecodableSteps() []step {
	stuck := gadget("v2", "stuck", "", "")
	return []step{
		{name: "an object", verb: "create", version: "v1", object: gadget("v1", "a", "", `{"size":1}`)},
		{name: "stored before it cannot be converted", verb: "create", version: "v1", object: gadget("v1", "stuck", "conversion=fails", `{"size":1}`)},
		{name: "read what cannot be converted", verb: "get", version: "v2", of: "stuck"},
		{name: "list what cannot be converted", verb: "list", version: "v2"},
		{name: "list what can be converted, by its name", verb: "list", version: "v2", fieldSelector: "metadata.name=a"},
		{name: "list what cannot be converted, by its name", verb: "list", version: "v2", fieldSelector: "metadata.name=stuck"},
		{name: "list what can be converted, by a label", verb: "list", version: "v2", labelSelector: "count=me"},
		{name: "create it again", verb: "create", version: "v2", object: stuck},
		{name: "update what cannot be converted", verb: "update", version: "v2", object: stuck},
		{name: "update what cannot be converted, dry", verb: "update", version: "v2", dry: true, object: stuck},
		{name: "patch what cannot be converted", verb: "patch", version: "v2", of: "stuck", as: types.MergePatchType, patch: `{"spec":{"length":2}}`},
		{name: "patch what cannot be converted, dry", verb: "patch", version: "v2", of: "stuck", dry: true, as: types.MergePatchType, patch: `{"spec":{"length":2}}`},
		{name: "delete what cannot be converted", verb: "delete", version: "v1alpha1", of: "stuck"},
		{name: "delete it in its version", verb: "delete", version: "v1", of: "stuck"},
		{name: "a new object that cannot be answered", verb: "create", version: "v2", object: gadget("v2", "one-way", "conversion=one-way", `{"length":1}`)},
		{name: "a new object that cannot be answered, dry", verb: "create", version: "v2", dry: true, object: gadget("v2", "dry", "conversion=one-way", `{"length":1}`)},
		{name: "it is stored", verb: "get", version: "v1", of: "one-way"},
		{name: "list two that cannot be converted", verb: "list", version: "v2"},
	}
}

// storeInV2 makes v2 the storage version.
func storeInV2(crd *apiextensionsv1.CustomResourceDefinition) {
	for i := range crd.Spec.Versions {
		crd.Spec.Versions[i].Storage = crd.Spec.Versions[i].Name == "v2"
	}
}

// upgradeSteps are for gadgets that were stored in v1, when v2 has become the storage version.
func upgradeSteps() []step {
	return []step{
		{name: "an old object, in the new version", verb: "get", version: "v2", of: "a"},
		{name: "an old object, in its version", verb: "get", version: "v1", of: "again"},
		{name: "all old objects", verb: "list", version: "v1"},
		{name: "an update that changes nothing migrates it", verb: "update", version: "v1", of: "a", edit: func(map[string]any) {}},
		{name: "once", verb: "update", version: "v1", of: "a", edit: func(map[string]any) {}},
		{name: "a patch that changes nothing migrates it", verb: "patch", version: "v2", of: "again", as: types.MergePatchType, patch: `{}`},
		{name: "an update of an old object", verb: "update", version: "v2", of: "once", edit: set("spec.length", 4)},
		{name: "an old object is deleted", verb: "delete", version: "v2", of: "c"},
		{name: "a new object", verb: "create", version: "v1", object: gadget("v1", "new", "", `{"size":1}`)},
		{name: "old and new objects", verb: "list", version: "v1"},
	}
}

// clusterWide is the definition of gadgets that are in no namespace.
func clusterWide(url string, ca []byte) *apiextensionsv1.CustomResourceDefinition {
	crd := unconverted(url, ca)
	crd.Spec.Scope = apiextensionsv1.ClusterScoped
	return crd
}

// clusterHooks ask all gadgets of a cluster: no namespaceSelector is in their way.
func clusterHooks(url string, ca []byte) (mutating []admissionregistrationv1.MutatingWebhook, validating []admissionregistrationv1.ValidatingWebhook) {
	mutating, validating = gadgetHooks(url, ca)
	label := mutating[slices.IndexFunc(mutating, func(w admissionregistrationv1.MutatingWebhook) bool { return w.Name == "j-other-team.example.com" })]
	label.ClientConfig.URL = new(url + "/label")
	return []admissionregistrationv1.MutatingWebhook{label}, validating
}

func clusterSteps() []step {
	const elsewhere = "default"
	edit := set("spec.size", 5)
	merge := `{"spec":{"size":6}}`
	return []step{
		{name: "an object", verb: "create", version: "v1", object: gadget("v1", "a", "", `{"size":1}`)},
		{name: "one with a namespace", verb: "create", version: "v1", object: withMetadata(gadget("v1", "b", "", `{"size":1}`), "namespace", "x")},
		{name: "the name is taken", verb: "create", version: "v2", object: gadget("v2", "a", "", "")},
		{name: "a name is generated", verb: "create", version: "v2", object: gadget("v2", "generated-", "", "")},
		{name: "a webhook with a selector of namespaces", verb: "create", version: "v2", object: gadget("v2", "team", "team=me", "")},
		{name: "read it", verb: "get", version: "v2", of: "a"},
		{name: "read it in a namespace", verb: "get", version: "v2", of: "a", namespace: elsewhere},
		{name: "read what is not there in a namespace", verb: "get", version: "v2", of: "nobody", namespace: elsewhere},
		{name: "update it", verb: "update", version: "v1", of: "a", edit: edit},
		{name: "update it with a namespace", verb: "update", version: "v1", of: "a", edit: set("metadata.namespace", "x")},
		{name: "update another object", verb: "update", version: "v1", of: "a", edit: set("metadata.uid", "11111111-1111-4111-8111-111111111111")},
		{name: "patch it", verb: "patch", version: "v1", of: "a", as: types.MergePatchType, patch: merge},
		{name: "patch it in a namespace", verb: "patch", version: "v1", of: "a", as: types.MergePatchType, patch: merge, namespace: elsewhere},
		{name: "patch its status in a namespace", verb: "patch status", version: "v1alpha1", of: "a", as: types.MergePatchType, patch: merge, namespace: elsewhere},
		{name: "list", verb: "list", version: "v1"},
		{name: "list in a namespace", verb: "list", version: "v1", namespace: elsewhere},
		{name: "list by name", verb: "list", version: "v1", fieldSelector: "metadata.name=a"},
		{name: "list by namespace", verb: "list", version: "v1", fieldSelector: "metadata.namespace=x"},
		{name: "delete it in a namespace", verb: "delete", version: "v1", of: "a", namespace: elsewhere},
		{name: "delete it", verb: "delete", version: "v1", of: "a"},
		{name: "it has gone", verb: "get", version: "v1", of: "a"},
	}
}
