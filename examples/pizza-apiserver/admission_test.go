package apiserver

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	apiadmission "k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/crdkit/crdkit/examples/pizza/api/v1alpha1"
)

func TestTheRequestIsWhatAWebhookWouldSee(t *testing.T) {
	for name, test := range map[string]struct {
		user user.Info
		want authenticationv1.UserInfo
	}{
		"nobody":   {nil, authenticationv1.UserInfo{}},
		"no extra": {&user.DefaultInfo{Name: "ada"}, authenticationv1.UserInfo{Username: "ada"}},
		"everything": {
			&user.DefaultInfo{Name: "ada", UID: "u", Groups: []string{"cooks"}, Extra: map[string][]string{"scopes": {"a", "b"}, "none": nil}},
			authenticationv1.UserInfo{Username: "ada", UID: "u", Groups: []string{"cooks"}, Extra: map[string]authenticationv1.ExtraValue{"scopes": {"a", "b"}, "none": nil}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			topping := &v1alpha1.Topping{ObjectMeta: metav1.ObjectMeta{Name: "tomato"}}
			kind, resource := v1alpha1.GroupVersion.WithKind("Topping"), v1alpha1.GroupVersion.WithResource("toppings")
			a := apiadmission.NewAttributesRecord(topping, nil, kind, "", "tomato", resource, "", apiadmission.Create, nil, true, test.user)
			got, err := requestOf(a, topping, nil)
			if err != nil {
				t.Fatal(err)
			}
			want := &admissionv1.AdmissionRequest{
				Kind: metav1.GroupVersionKind(kind), Resource: metav1.GroupVersionResource(resource), Name: "tomato",
				Operation: admissionv1.Create, DryRun: new(true), UserInfo: test.want,
				Object: runtime.RawExtension{Raw: []byte(`{"metadata":{"name":"tomato"},"spec":{"cost":0}}`)},
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
