package offline

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionv1beta1 "k8s.io/api/admission/v1beta1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	webhookerrors "k8s.io/apiserver/pkg/admission/plugin/webhook/errors"
	webhookutil "k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/apiserver/pkg/warning"
)

// call asks a webhook, and returns an answer that allows the request: callHook of
// apiserver/pkg/admission/plugin/webhook/validating/dispatcher.go, and the same half of
// mutating/dispatcher.go.
func (r *request) call(ctx context.Context, call *invocation, v *admission.VersionedAttributes) (*admissionv1.AdmissionResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(*call.TimeoutSeconds)*time.Second)
	defer cancel()
	uid := r.resource.reviewUID()
	review, err := call.send(ctx, newReview(call, v, uid))
	if err != nil {
		return nil, failed(call, "failed to call webhook: %w", err)
	}
	answer, err := verify(review, uid, call.hook)
	if err != nil {
		return nil, failed(call, "received invalid webhook response: %w", err)
	}
	for _, w := range answer.Warnings {
		warning.AddWarning(ctx, "", w)
	}
	if !answer.Allowed {
		return nil, &webhookutil.ErrWebhookRejection{Status: webhookerrors.ToStatusErr(call.Name, answer.Result)}
	}
	return answer, nil
}

// send sends a review, in the version that the webhook is to get, and returns the answer.
func (k *hook) send(ctx context.Context, question *admissionv1.AdmissionReview) (*admissionv1.AdmissionReview, error) {
	var body, into runtime.Object = question, &admissionv1.AdmissionReview{}
	if k.reviewVersion == "v1beta1" {
		body, into = &admissionv1beta1.AdmissionReview{}, &admissionv1beta1.AdmissionReview{}
		if err := recode(question, body); err != nil {
			return nil, err
		}
	}
	post := k.client.Post().Body(body)
	deadline, _ := ctx.Deadline()
	if timeout := time.Until(deadline); timeout > 0 {
		if whole := timeout.Truncate(time.Second); whole != timeout {
			timeout = whole + time.Second
		}
		post.Timeout(timeout)
	}
	if err := post.Do(ctx).Into(into); err != nil {
		return nil, err
	}
	if answer, ok := into.(*admissionv1.AdmissionReview); ok {
		return answer, nil
	}
	answer := &admissionv1.AdmissionReview{}
	return answer, recode(into, answer)
}

// recode makes of a review one of the other version, which has the same JSON.
func recode(from, to runtime.Object) error {
	text, err := json.Marshal(from)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, to)
}

// failed is the error of a webhook that was not heard.
func failed(call *invocation, format string, args ...any) error {
	return &webhookutil.ErrCallingWebhook{WebhookName: call.Name, Reason: fmt.Errorf(format, args...)}
}
