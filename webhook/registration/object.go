package registration

import (
	"encoding/base64"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const definitionKind = "CustomResourceDefinition"

// object is an object of the cluster in which the API server is told about webhooks.
type object struct {
	kind     string
	resource schema.GroupVersionResource
	name     string
	// declared is what the manifests say of it, without a CA bundle; of a definition,
	// spec.conversion alone. It is nil if nothing is declared: then what another release has
	// left there is looked at.
	declared map[string]any
}

func (o *object) String() string { return o.kind + " " + o.name }

func (s *settings) newObject(kind, group, resource, name string, declared map[string]any) *object {
	o := &object{kind: kind, resource: schema.GroupVersionResource{Group: group, Version: "v1", Resource: resource}, name: name, declared: declared}
	if declared == nil {
		return o
	}
	u := unstructured.Unstructured{Object: declared}
	u.SetGroupVersionKind(o.resource.GroupVersion().WithKind(kind))
	u.SetName(name)
	if len(s.annotations) > 0 {
		u.SetAnnotations(s.annotations)
	}
	return o
}

// definitionObject returns the conversion stanza of a definition, which c converts, if not nil.
func (s *settings) definitionObject(d *definition, c *conversion) *object {
	var declared map[string]any
	if c != nil {
		declared = map[string]any{"spec": map[string]any{"conversion": map[string]any{
			"strategy": "Webhook",
			"webhook": map[string]any{
				"clientConfig":             s.endpoint.clientConfig(c.path),
				"conversionReviewVersions": list(s.reviewVersions),
			},
		}}}
	}
	return s.newObject(definitionKind, "apiextensions.k8s.io", "customresourcedefinitions", d.Metadata.Name, declared)
}

// configurationObject returns the configuration of all webhooks of a kind.
func (s *settings) configurationObject(kind hookKind, resource string) *object {
	var declared map[string]any
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
		declared = map[string]any{"webhooks": webhooks}
	}
	return s.newObject(string(kind)+"WebhookConfiguration", "admissionregistration.k8s.io", resource, s.name, declared)
}

func list(texts []string) (all []any) {
	for _, t := range texts {
		all = append(all, t)
	}
	return all
}

// manifest returns what is declared of the object, with a CA bundle if there is one.
func (o *object) manifest(pem []byte) map[string]any {
	obj := runtime.DeepCopyJSON(o.declared)
	if len(pem) > 0 {
		for _, e := range entriesOf(obj) {
			e.clientConfig["caBundle"] = base64.StdEncoding.EncodeToString(pem)
		}
	}
	return obj
}

// entry is a place where the API server is told about a webhook.
type entry struct {
	name         string         // of the webhook; empty in a definition
	field        string         // such as webhooks[validate.pizzas.example.com]
	webhook      map[string]any // what is there
	clientConfig map[string]any
}

// entriesOf returns the entries of an object, which are not copies.
func entriesOf(obj map[string]any) (entries []entry) {
	add := func(name, field string, value any) {
		webhook, _ := value.(map[string]any)
		if c, ok := webhook["clientConfig"].(map[string]any); ok {
			entries = append(entries, entry{name, field, webhook, c})
		}
	}
	if obj["kind"] == definitionKind {
		webhook, _, _ := unstructured.NestedFieldNoCopy(obj, "spec", "conversion", "webhook")
		add("", "spec.conversion.webhook", webhook)
		return entries
	}
	webhooks, _ := obj["webhooks"].([]any)
	for _, w := range webhooks {
		webhook, _ := w.(map[string]any)
		name, _ := webhook["name"].(string)
		add(name, "webhooks["+name+"]", w)
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
