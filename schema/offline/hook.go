package offline

import (
	"errors"
	"net/http"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	"k8s.io/client-go/rest"
)

// hook is an admission webhook, with its defaults.
type hook struct {
	admissionregistrationv1.MutatingWebhook
	mutating      bool
	client        *rest.RESTClient
	namespaces    labels.Selector
	objects       labels.Selector
	conditions    matchconditions.Matcher // nil if there are none
	reviewVersion string                  // v1 or v1beta1
}

// newHook returns a webhook that has been checked.
func newHook(h http.Handler, w admissionregistrationv1.MutatingWebhook, mutating bool, conditions *conditionCompiler) (*hook, error) {
	client, err := newClient(h, w.Name, w.ClientConfig)
	namespaces, badNamespaces := metav1.LabelSelectorAsSelector(w.NamespaceSelector)
	objects, badObjects := metav1.LabelSelectorAsSelector(w.ObjectSelector)
	if err := errors.Join(err, badNamespaces, badObjects); err != nil {
		return nil, err
	}
	return &hook{
		MutatingWebhook: w, mutating: mutating, client: client, namespaces: namespaces, objects: objects,
		conditions: conditions.compile(&w), reviewVersion: reviewVersion(w.AdmissionReviewVersions),
	}, nil
}

// ignored reports whether the webhook's failures are.
func (k *hook) ignored() bool { return *k.FailurePolicy == admissionregistrationv1.Ignore }
