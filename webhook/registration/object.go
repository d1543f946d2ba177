package registration

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	definitionKind  = "CustomResourceDefinition"
	webhookStrategy = "Webhook"
	matchConditions = "matchConditions"
)

var definitionResource = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// object is something that is registered with the API server, as it is declared.
type object struct {
	kind     string
	resource schema.GroupVersionResource
	name     string
	manager  string // of the fields
	// declared has what is ours of the object: no CA bundle, and no annotation of ours.
	declared map[string]any
	digest   string
	// empty is a configuration without webhooks, or a definition that is not converted, which
	// is never written. There need not be one; but what an older release has registered in it,
	// nobody serves any more.
	empty bool
}

func (o *object) String() string { return o.kind + " " + o.name }

func (o *object) isDefinition() bool { return o.kind == definitionKind }

// newObject completes an object with its name and annotations.
func (s *settings) newObject(o *object) *object {
	o.manager = s.name
	metadata := map[string]any{"name": o.name}
	if len(s.annotations) > 0 && !o.empty {
		annotations := map[string]any{}
		for key, value := range s.annotations {
			annotations[key] = value
		}
		metadata["annotations"] = annotations
	}
	o.declared["apiVersion"], o.declared["kind"] = o.resource.GroupVersion().String(), o.kind
	o.declared["metadata"] = metadata
	text, err := json.Marshal(o.declared)
	if err != nil {
		panic(err) // of strings, numbers, maps and lists
	}
	digest := sha256.Sum256(text)
	o.digest = hex.EncodeToString(digest[:16])
	return o
}

// definitionObject returns the conversion stanza of a definition.
func (s *settings) definitionObject(d convertedDefinition) *object {
	return s.newObject(&object{
		kind:     definitionKind,
		resource: definitionResource,
		name:     d.Metadata.Name,
		declared: map[string]any{"spec": map[string]any{"conversion": map[string]any{
			"strategy": webhookStrategy,
			"webhook": map[string]any{
				"clientConfig":             s.endpoint.clientConfig(d.by.path),
				"conversionReviewVersions": list(s.reviewVersions),
			},
		}}},
	})
}

// unconvertedObject returns what is declared of a definition that is not converted: nothing.
func (s *settings) unconvertedObject(d *definition) *object {
	return s.newObject(&object{
		kind:     definitionKind,
		resource: definitionResource,
		name:     d.Metadata.Name,
		declared: map[string]any{},
		empty:    true,
	})
}

// configurationObject returns the configuration of all webhooks of a kind.
func (s *settings) configurationObject(kind hookKind) *object {
	o := &object{
		kind:     string(kind) + "WebhookConfiguration",
		resource: schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1"},
		name:     s.name,
		declared: map[string]any{},
	}
	o.resource.Resource = map[hookKind]string{mutating: "mutatingwebhookconfigurations", validating: "validatingwebhookconfigurations"}[kind]
	var webhooks []any
	for _, h := range s.hooks {
		if h.kind != kind {
			continue
		}
		s.complete(h)
		webhook, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&h.MutatingWebhook)
		if err != nil {
			s.fault("%s: %w", h, err)
			continue
		}
		webhook["clientConfig"] = s.endpoint.clientConfig(h.path)
		webhooks = append(webhooks, webhook)
	}
	if o.empty = len(webhooks) == 0; !o.empty {
		o.declared["webhooks"] = webhooks
	}
	return s.newObject(o)
}

func list(texts []string) (all []any) {
	for _, t := range texts {
		all = append(all, t)
	}
	return all
}

// desired returns what the object shall be; without pem, it says nothing of CA bundles.
func (o *object) desired(pem []byte, c claim) map[string]any {
	obj := runtime.DeepCopyJSON(o.declared)
	if len(pem) > 0 {
		for _, e := range entriesOf(obj) {
			e.clientConfig["caBundle"] = base64.StdEncoding.EncodeToString(pem)
		}
	}
	if c != (claim{}) {
		u := unstructured.Unstructured{Object: obj}
		annotations := u.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[DeclaredAnnotation] = c.String()
		u.SetAnnotations(annotations)
	}
	return obj
}

// entry is a place where the API server is told about a handler.
type entry struct {
	name         string         // of the webhook; empty in a definition
	path         string         // as a JSON pointer
	parent       map[string]any // the webhook, or spec.conversion.webhook
	clientConfig map[string]any
}

// entriesOf returns the entries of an object, which may be somebody else's too. They are not
// copies.
func entriesOf(obj map[string]any) (entries []entry) {
	if obj["kind"] == definitionKind {
		found, _, _ := unstructured.NestedFieldNoCopy(obj, "spec", "conversion", "webhook")
		webhook, _ := found.(map[string]any)
		if c, ok := webhook["clientConfig"].(map[string]any); ok {
			entries = append(entries, entry{"", "/spec/conversion/webhook", webhook, c})
		}
		return entries
	}
	webhooks, _ := obj["webhooks"].([]any)
	for i, w := range webhooks {
		webhook, _ := w.(map[string]any)
		name, _ := webhook["name"].(string)
		if c, ok := webhook["clientConfig"].(map[string]any); ok {
			entries = append(entries, entry{name, fmt.Sprintf("/webhooks/%d", i), webhook, c})
		}
	}
	return entries
}

// caBundle returns that of an entry, nil if there is none that could be read.
func (e entry) caBundle() []byte {
	text, _ := e.clientConfig["caBundle"].(string)
	pem, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil
	}
	return pem
}

// difference returns where an object of the cluster is not what it shall be; "" if it is.
// What is there besides is somebody else's, but for the members of atomic ones.
func difference(want, got any, path string) string {
	switch want := want.(type) {
	case map[string]any:
		members, ok := got.(map[string]any)
		if !ok {
			return path
		}
		if name := foreignCondition(want, members); name != "" {
			return path + "." + matchConditions + "[" + name + "]"
		}
		for _, name := range sortedKeys(want) {
			at := path + "." + name
			switch name {
			case "namespaceSelector", "objectSelector": // +structType=atomic
				if !equal(want[name], members[name]) {
					return at
				}
			case "clientConfig":
				for _, other := range []string{"url", "service"} {
					config, _ := members[name].(map[string]any)
					if _, ours := want[name].(map[string]any)[other]; !ours && config[other] != nil {
						return at + "." + other
					}
				}
				fallthrough
			default:
				if d := difference(want[name], members[name], at); d != "" {
					return d
				}
			}
		}
		return ""
	case []any:
		elements, ok := got.([]any)
		if !ok {
			return path
		}
		if named(want) == nil { // atomic
			if !equal(want, got) {
				return path
			}
			return ""
		}
		theirs := named(elements)
		for name, element := range named(want) {
			if d := difference(element, theirs[name], path+"["+name+"]"); d != "" {
				return d
			}
		}
		return ""
	default:
		if !equal(want, got) {
			return path
		}
		return ""
	}
}

// foreignCondition returns the name of a match condition that a webhook of ours has, and that
// is not declared; "" if there is none. They are the one list inside of a webhook that
// server-side apply merges (k8s.io/api/admissionregistration/v1/types.go, +listType=map).
func foreignCondition(want, got map[string]any) string {
	if want["clientConfig"] == nil { // it is no webhook
		return ""
	}
	theirs, _ := got[matchConditions].([]any)
	declared, _ := want[matchConditions].([]any)
	ours := named(declared)
	for _, name := range sortedKeys(named(theirs)) {
		if ours[name] == nil {
			return name
		}
	}
	return ""
}

// named returns the elements of a list by their names, nil if one has none: webhooks and
// matchConditions are maps by name (+listType=map).
func named(elements []any) map[string]any {
	all := map[string]any{}
	for _, e := range elements {
		element, _ := e.(map[string]any)
		name, ok := element["name"].(string)
		if !ok {
			return nil
		}
		all[name] = element
	}
	return all
}

// equal compares by the text: an int64 may come as another number.
func equal(a, b any) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && string(x) == string(y)
}

func sortedKeys(m map[string]any) []string { return slices.Sorted(maps.Keys(m)) }
