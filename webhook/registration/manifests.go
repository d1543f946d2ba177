package registration

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/yaml"

	"github.com/crdkit/crdkit/internal/report"
)

const (
	apiextensions         = "apiextensions.k8s.io"
	admissionregistration = "admissionregistration.k8s.io"
	definitionKind        = "CustomResourceDefinition"
)

// object is an object of the cluster that configures webhooks.
type object struct {
	kind     string
	resource schema.GroupVersionResource
	name     string
	// declared is the manifest without a CA bundle. It is nil if the release declares no
	// such object; then the webhooks of another release are looked at.
	declared        map[string]any
	declaresWebhook bool
	watched         bool   // by Inject
	guard           bool   // a part of the Guard, which Inject observes
	limits          string // the user whom it limits, if it is the policy of the Guard
	changes         *report.Object
}

func (o *object) String() string { return o.kind + " " + o.name }

// definitionObject returns the object of a CRD with its conversion.
func (s *settings) definitionObject(d *definition) *object {
	o := &object{
		kind:            definitionKind,
		resource:        schema.GroupVersion{Group: apiextensions, Version: "v1"}.WithResource("customresourcedefinitions"),
		name:            d.Metadata.Name,
		declared:        d.Object,
		declaresWebhook: d.convertedBy != nil,
		watched:         len(d.Spec.Versions) > 1,
	}
	if o.declaresWebhook {
		o.declared["spec"].(map[string]any)["conversion"] = map[string]any{
			"strategy": "Webhook",
			"webhook": map[string]any{
				"clientConfig": s.endpoint.clientConfig(d.convertedBy.path),
			},
		}
		_ = unstructured.SetNestedStringSlice(o.declared, s.reviewVersions, "spec", "conversion", "webhook", "conversionReviewVersions")
	}
	return o
}

// configurationObject returns the configuration of all webhooks of a kind.
func (s *settings) configurationObject(kind hookKind, resource string) *object {
	o := &object{
		kind:     string(kind) + "WebhookConfiguration",
		resource: schema.GroupVersion{Group: admissionregistration, Version: "v1"}.WithResource(resource),
		name:     s.name,
		watched:  true,
	}
	var webhooks []any
	for _, h := range s.hooks {
		if h.kind != kind {
			continue
		}
		s.complete(h)
		webhook, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&h.MutatingWebhook)
		utilruntime.Must(err) // of a struct, which cannot fail
		webhook["clientConfig"] = s.endpoint.clientConfig(h.path)
		webhooks = append(webhooks, webhook)
	}
	if len(webhooks) > 0 {
		o.declaresWebhook = true
		o.declared = map[string]any{
			"apiVersion": o.resource.GroupVersion().String(), "kind": o.kind,
			"metadata": map[string]any{"name": o.name}, "webhooks": webhooks,
		}
	}
	return o
}

// Manifests returns the objects to apply, as YAML documents in this order:
//
//   - the CRDs of [CRDs], with spec.conversion if a [Conversion] converts them
//   - the MutatingWebhookConfiguration
//   - the ValidatingWebhookConfiguration
//   - the NetworkPolicy, if there is a [NetworkPolicy]
//   - the ValidatingAdmissionPolicy and its binding, if there is a [Guard]
//
// A configuration without webhooks is left out. All webhooks have the CA bundle or, if it is empty,
// none until [Webhooks.Inject] writes it: see "Installing, updating and uninstalling" in the
// package documentation. Manifests returns an error if caBundle is not empty and has no PEM
// certificates.
func (w *Webhooks) Manifests(caBundle []byte) ([]byte, error) {
	if len(caBundle) > 0 {
		if _, err := cert.ParseCertsPEM(caBundle); err != nil {
			return nil, fmt.Errorf("registration: CA bundle: %w", err)
		}
	}
	var all bytes.Buffer
	for _, o := range w.objects {
		if o.declared == nil {
			continue
		}
		obj := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(o.declared)}
		for _, e := range w.entries(obj) {
			if len(caBundle) > 0 {
				e.clientConfig["caBundle"] = base64.StdEncoding.EncodeToString(caBundle)
			}
		}
		text, err := yaml.Marshal(obj.Object)
		utilruntime.Must(err) // of a JSON object, which cannot fail
		all.WriteString("---\n")
		all.Write(text)
	}
	return all.Bytes(), nil
}

// PolicyRules returns the permissions that [Webhooks.Inject] needs, as rules of a ClusterRole.
// Those on the objects are limited by names, even for watches, because the API server authorizes a
// watch with the field selector metadata.name as a request for that name
// (apiserver/pkg/endpoints/request/requestinfo.go).
//
// The rules include both webhook configurations, and CRDs with several versions, even if only
// another release declares webhooks in them. The last rule is for Events on these objects, in the
// namespace default; as a rule of a ClusterRole, it allows Events in every namespace.
// Without it, Inject logs once that it cannot create them. With a [Guard], there is a rule to get
// its objects. Without that rule, Inject logs once that it cannot read them.
func (w *Webhooks) PolicyRules() (rules []rbacv1.PolicyRule) {
	add := func(verbs, group string, names []string, resources ...string) {
		rules = append(rules, rbacv1.PolicyRule{Verbs: strings.Fields(verbs), APIGroups: []string{group}, Resources: resources, ResourceNames: names})
	}
	const write = "get watch update"
	var definitions []string
	for _, o := range w.objects {
		if o.kind == definitionKind && o.watched {
			definitions = append(definitions, o.name)
		}
	}
	if len(definitions) > 0 {
		add(write, apiextensions, definitions, "customresourcedefinitions")
	}
	add(write, admissionregistration, []string{w.name}, "mutatingwebhookconfigurations", "validatingwebhookconfigurations")
	if last := w.objects[len(w.objects)-1]; last.guard {
		add("get", admissionregistration, []string{last.name}, "validatingadmissionpolicies", "validatingadmissionpolicybindings")
	}
	add("create", "", nil, "events")
	return rules
}

// entry is a webhook or a conversion in an object.
type entry struct {
	name         string         // of the webhook; empty in a definition
	field        string         // such as webhooks[validate.pizzas.example.com]
	webhook      map[string]any // the whole webhook
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

// bundlePath returns the path of the CA bundle in managedFields.
func (e entry) bundlePath() fieldpath.Path {
	if e.name == "" {
		return fieldpath.MakePathOrDie("spec", "conversion", "webhook", "clientConfig", "caBundle")
	}
	return fieldpath.MakePathOrDie("webhooks", fieldpath.KeyByFields("name", e.name), "clientConfig", "caBundle")
}

// caBundle returns the CA bundle of an entry, or nil if there is no valid one.
func (e entry) caBundle() []byte {
	text, _ := e.clientConfig["caBundle"].(string)
	pem, _ := base64.StdEncoding.DecodeString(text) // which the API server has encoded
	return pem
}
