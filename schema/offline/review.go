package offline

import (
	"errors"
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"
	admissionv1beta1 "k8s.io/api/admission/v1beta1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
)

// answer is a review that a webhook fills in.
type answer struct {
	into   runtime.Object
	verify func(uid types.UID, mutating bool) (*admissionv1.AdmissionResponse, error)
}

// newReview is CreateAdmissionObjects of
// apiserver/pkg/admission/plugin/webhook/request/admissionreview.go.
func newReview(call *invocation, v *admission.VersionedAttributes, uid types.UID) (question runtime.Object, _ answer) {
	info := authenticationv1.UserInfo{
		Username: v.GetUserInfo().GetName(), UID: v.GetUserInfo().GetUID(), Groups: v.GetUserInfo().GetGroups(), Extra: map[string]authenticationv1.ExtraValue{},
	}
	for key, value := range v.GetUserInfo().GetExtra() {
		info.Extra[key] = value
	}
	request := &admissionv1.AdmissionRequest{
		UID:                uid,
		Kind:               metav1.GroupVersionKind(call.kind),
		Resource:           metav1.GroupVersionResource(call.resource),
		SubResource:        v.GetSubresource(),
		RequestKind:        new(metav1.GroupVersionKind(v.GetKind())),
		RequestResource:    new(metav1.GroupVersionResource(v.GetResource())),
		RequestSubResource: v.GetSubresource(),
		Name:               v.GetName(),
		Namespace:          v.GetNamespace(),
		Operation:          admissionv1.Operation(v.GetOperation()),
		UserInfo:           info,
		Object:             runtime.RawExtension{Object: v.VersionedObject.Object()},
		OldObject:          runtime.RawExtension{Object: v.VersionedOldObject.Object()},
		DryRun:             new(v.IsDryRun()),
		Options:            runtime.RawExtension{Object: v.GetOperationOptions()},
	}
	if call.reviewVersion == "v1" {
		review := &admissionv1.AdmissionReview{}
		return &admissionv1.AdmissionReview{Request: request}, answer{review, func(uid types.UID, mutating bool) (*admissionv1.AdmissionResponse, error) {
			return verify(review, uid, mutating)
		}}
	}
	review := &admissionv1beta1.AdmissionReview{}
	return &admissionv1beta1.AdmissionReview{Request: v1beta1Request(request)}, answer{review, func(_ types.UID, mutating bool) (*admissionv1.AdmissionResponse, error) {
		return verifyV1beta1(review, mutating)
	}}
}

// verify is VerifyAdmissionResponse of admissionreview.go.
func verify(review *admissionv1.AdmissionReview, uid types.UID, mutating bool) (*admissionv1.AdmissionResponse, error) {
	r := review.Response
	if r == nil {
		return nil, errors.New("webhook response was absent")
	}
	want, got := admissionv1.SchemeGroupVersion.WithKind("AdmissionReview"), review.GroupVersionKind()
	switch {
	case r.UID != uid:
		return nil, fmt.Errorf("expected response.uid=%q, got %q", uid, r.UID)
	case got != want:
		return nil, fmt.Errorf("expected webhook response of %v, got %v", want.String(), got.String())
	case !mutating && len(r.Patch) > 0:
		return nil, errors.New("validating webhook may not return response.patch")
	case !mutating && r.PatchType != nil:
		return nil, errors.New("validating webhook may not return response.patchType")
	case len(r.Patch) > 0 && r.PatchType == nil:
		return nil, errors.New("webhook returned response.patch but not response.patchType")
	case len(r.Patch) == 0 && r.PatchType != nil:
		return nil, errors.New("webhook returned response.patchType but not response.patch")
	case r.PatchType != nil && *r.PatchType == "":
		return nil, fmt.Errorf("webhook returned invalid response.patchType of %q", *r.PatchType)
	}
	return r, nil
}

// verifyV1beta1 is the same for v1beta1, of which less is asked.
func verifyV1beta1(review *admissionv1beta1.AdmissionReview, mutating bool) (*admissionv1.AdmissionResponse, error) {
	r := review.Response
	if r == nil {
		return nil, errors.New("webhook response was absent")
	}
	out := &admissionv1.AdmissionResponse{UID: r.UID, Allowed: r.Allowed, Result: r.Result, AuditAnnotations: r.AuditAnnotations, Warnings: r.Warnings}
	if mutating && len(r.Patch) > 0 {
		out.Patch, out.PatchType = r.Patch, new(admissionv1.PatchTypeJSONPatch)
	}
	return out, nil
}

func v1beta1Request(r *admissionv1.AdmissionRequest) *admissionv1beta1.AdmissionRequest {
	return &admissionv1beta1.AdmissionRequest{
		UID: r.UID, Kind: r.Kind, Resource: r.Resource, SubResource: r.SubResource,
		RequestKind: r.RequestKind, RequestResource: r.RequestResource, RequestSubResource: r.RequestSubResource,
		Name: r.Name, Namespace: r.Namespace, Operation: admissionv1beta1.Operation(r.Operation), UserInfo: r.UserInfo,
		Object: r.Object, OldObject: r.OldObject, DryRun: r.DryRun, Options: r.Options,
	}
}

// userInfo is a user as admission knows one.
type userInfo struct{ info authenticationv1.UserInfo }

func (u userInfo) GetName() string     { return u.info.Username }
func (u userInfo) GetUID() string      { return u.info.UID }
func (u userInfo) GetGroups() []string { return u.info.Groups }

func (u userInfo) GetExtra() map[string][]string {
	extra := make(map[string][]string, len(u.info.Extra))
	for key, value := range u.info.Extra {
		extra[key] = value
	}
	return extra
}

var _ user.Info = userInfo{}
