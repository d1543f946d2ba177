package offline

import (
	"maps"
	"net/http"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Option adds a webhook to a Resource, or changes how the Resource works.
type Option func(*settings)

// settings are what the options say.
type settings struct {
	converter     http.Handler // nil if there is none
	registrations []registration
	namespaces    map[string]map[string]string
	stored        [][]byte
	user          authenticationv1.UserInfo
	now           func() time.Time
	uid           func() types.UID
}

// Convert names the conversion webhook. The handler gets a ConversionReview, at the path of
// the definition's clientConfig. So it can be the mux that the operator serves. If the
// definition has no clientConfig, the path is "/".
//
// A definition without a conversion, as controller-gen writes it, is taken to name this
// webhook, with reviews of v1. Without this option, New refuses a definition whose
// conversion is a webhook.
func Convert(h http.Handler) Option {
	return func(s *settings) { s.converter = h }
}

// Mutate adds the mutating webhooks of one configuration. They are called in their order,
// after those of earlier options. (A server sorts the configurations by name.) The handler
// gets an AdmissionReview, at the path of the webhook's clientConfig. So it can be one
// handler, or the mux that serves all webhooks. Without a clientConfig, the path is "/".
//
//	offline.Mutate(mux, configuration.Webhooks...)
//
// A field that is not set has the API's default. Three fields that the API requires may be
// left out too:
//
//   - rules: the webhook is called when an object of this resource is created or updated, in
//     any version;
//   - admissionReviewVersions: it gets v1;
//   - sideEffects: it has none.
//
// Without webhooks, there is one, for which all of this holds.
func Mutate(h http.Handler, webhooks ...admissionregistrationv1.MutatingWebhook) Option {
	g := registration{handler: h, mutating: true}
	for _, w := range webhooks {
		g.webhooks = append(g.webhooks, *w.DeepCopy())
	}
	return func(s *settings) { s.registrations = append(s.registrations, g) }
}

// Validate adds the validating webhooks of one configuration: see [Mutate]. Without rules,
// they are called for deletions too; a handler of package admission allows the operations
// for which it has no function. All webhooks are called, one after the other, and the first
// error is the result. (A server calls them at the same time.)
func Validate(h http.Handler, webhooks ...admissionregistrationv1.ValidatingWebhook) Option {
	g := registration{handler: h}
	for _, w := range webhooks {
		g.add(w)
	}
	return func(s *settings) { s.registrations = append(s.registrations, g) }
}

// Namespaces gives namespaces their labels, for the namespaceSelector of webhooks. The keys
// are names of namespaces. Every namespace exists, also one that is not in the map, and
// every one has the label kubernetes.io/metadata.name.
func Namespaces(labels map[string]map[string]string) Option {
	all := make(map[string]map[string]string, len(labels))
	for name, set := range labels {
		all[name] = maps.Clone(set)
	}
	return func(s *settings) { s.namespaces = all }
}

// Stored puts objects into the store, in JSON or YAML, as an older release has left them
// there: in any version of the definition, and without admission or validation. With it, a
// test can upgrade. It takes the Stored of results from a Resource with the old definition,
// or files that were kept.
//
// An object needs apiVersion, kind and metadata.name. Where it has no namespace, uid,
// creationTimestamp or generation, it gets them as if it was created here.
func Stored(objects ...[]byte) Option {
	return func(s *settings) { s.stored = append(s.stored, objects...) }
}

// User is who sends the requests, unless a request says otherwise with [As]. Without this
// option it is kubernetes-admin, in the group system:authenticated.
func User(info authenticationv1.UserInfo) Option {
	return func(s *settings) { s.user = info }
}

// Clock tells the time of creations and deletions. Without this option it is 2000-01-01,
// and each call is a second later.
func Clock(now func() time.Time) Option {
	return func(s *settings) { s.now = now }
}

// UIDs makes the UIDs of new objects. Without this option they are counted. The first is
// 00000000-0000-4000-8000-000000000001.
func UIDs(next func() types.UID) Option {
	return func(s *settings) { s.uid = next }
}
