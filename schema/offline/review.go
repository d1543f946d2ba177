package offline

import (
	"errors"
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
)

// The two functions of this file are exported functions of
// apiserver/pkg/admission/plugin/webhook/request/admissionreview.go. They are written again
// because that package imports informers.

// newReview is CreateAdmissionObjects.
func newReview(call *invocation, v *admission.VersionedAttributes, uid types.UID) *admissionv1.AdmissionReview {
	info := authenticationv1.UserInfo{
		Username: v.GetUserInfo().GetName(), UID: v.GetUserInfo().GetUID(), Groups: v.GetUserInfo().GetGroups(), Extra: map[string]authenticationv1.ExtraValue{},
	}
	for key, value := range v.GetUserInfo().GetExtra() {
		info.Extra[key] = value
	}
	return &admissionv1.AdmissionReview{Request: &admissionv1.AdmissionRequest{
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
	}}
}

// verify is VerifyAdmissionResponse. Of an answer in v1beta1, less is asked.
func verify(review *admissionv1.AdmissionReview, uid types.UID, k *hook) (*admissionv1.AdmissionResponse, error) {
	r := review.Response
	if r == nil {
		return nil, errors.New("webhook response was absent")
	}
	if k.reviewVersion == "v1beta1" {
		r.PatchType = nil
		if !k.mutating {
			r.Patch = nil
		}
		if len(r.Patch) > 0 {
			r.PatchType = new(admissionv1.PatchTypeJSONPatch)
		}
		return r, nil
	}
	want, got := admissionv1.SchemeGroupVersion.WithKind("AdmissionReview"), review.GroupVersionKind()
	switch {
	case r.UID != uid:
		return nil, fmt.Errorf("expected response.uid=%q, got %q", uid, r.UID)
	case got != want:
		return nil, fmt.Errorf("expected webhook response of %v, got %v", want.String(), got.String())
	case !k.mutating && len(r.Patch) > 0:
		return nil, errors.New("validating webhook may not return response.patch")
	case !k.mutating && r.PatchType != nil:
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
