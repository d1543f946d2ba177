package controllerruntime_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/kubernetes/scheme"
	peer "sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/crdkit/crdkit/admission"
	"github.com/crdkit/crdkit/interop/controllerruntime"
	"github.com/crdkit/crdkit/test/expect"
)

// steward defaults and validates ConfigMaps as their data say. O is the type that its
// methods take.
type steward[O runtime.Object] struct {
	answer func(cm *corev1.ConfigMap) error
}

func (s steward[O]) Default(ctx context.Context, obj O) error {
	cm := any(obj).(*corev1.ConfigMap)
	req, err := peer.RequestFromContext(ctx)
	if err != nil {
		return err
	}
	cm.Data["by"] = req.UserInfo.Username
	return s.answer(cm)
}

func (s steward[O]) ValidateCreate(_ context.Context, obj O) (peer.Warnings, error) {
	return peer.Warnings{"create"}, s.answer(any(obj).(*corev1.ConfigMap))
}

func (s steward[O]) ValidateUpdate(_ context.Context, old, obj O) (peer.Warnings, error) {
	from, to := any(old).(*corev1.ConfigMap), any(obj).(*corev1.ConfigMap)
	return peer.Warnings{"update", from.Data["say"] + " to " + to.Data["say"]}, s.answer(to)
}

func (s steward[O]) ValidateDelete(ctx context.Context, obj O) (peer.Warnings, error) {
	if _, err := peer.RequestFromContext(ctx); err != nil {
		return nil, err
	}
	return peer.Warnings{"delete"}, s.answer(any(obj).(*corev1.ConfigMap))
}

func say(cm *corev1.ConfigMap) error {
	maps := corev1.Resource("configmaps")
	return map[string]error{
		"plain":       errors.New("data.say: not today"),
		"field":       fmt.Errorf("the data: %w", field.Required(field.NewPath("data", "topping"), "")),
		"invalid":     apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("ConfigMap").GroupKind(), cm.Name, field.ErrorList{field.Required(field.NewPath("data"), "")}),
		"forbidden":   fmt.Errorf("wrapped: %w", apierrors.NewForbidden(maps, cm.Name, errors.New("closed"))),
		"not found":   apierrors.NewNotFound(maps, "other"),
		"unavailable": apierrors.NewServiceUnavailable("the oven is cold"),
	}[cm.Data["say"]]
}

// decision is what an answer says, with what the patch makes of the object.
type decision struct {
	Allowed  bool
	Code     int32
	Message  string
	Causes   int
	Warnings []string
	Object   map[string]any
}

func decide(t *testing.T, h http.Handler, operation, object, old string) decision {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader(fmt.Sprintf(
		`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","kind":{"group":"","version":"v1","kind":"ConfigMap"},"resource":{"group":"","version":"v1","resource":"configmaps"},
		"name":"x","namespace":"default","operation":%q,"userInfo":{"username":"ada"},"object":%s,"oldObject":%s}}`, operation, object, old)))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	var review admissionv1.AdmissionReview
	if err := json.Unmarshal(w.Body.Bytes(), &review); err != nil || review.Response == nil {
		t.Fatalf("%s: %v", w.Body, err)
	}
	got := decision{Allowed: review.Response.Allowed, Warnings: review.Response.Warnings}
	if s := review.Response.Result; s != nil && !got.Allowed {
		got.Code, got.Message = s.Code, s.Message
		if s.Details != nil {
			got.Causes = len(s.Details.Causes)
		}
	}
	if review.Response.Patch != nil {
		patch, err := jsonpatch.DecodePatch(review.Response.Patch)
		expect.NoError(t, err)
		patched, err := patch.Apply([]byte(object))
		expect.NoError(t, err)
		expect.NoError(t, json.Unmarshal(patched, &got.Object))
	}
	return got
}

// TestExistingImplementations_AnswerAsBefore compares the answers with those of
// controller-runtime, for either form of the interfaces.
func TestExistingImplementations_AnswerAsBefore(t *testing.T) {
	typed, custom := steward[*corev1.ConfigMap]{say}, steward[runtime.Object]{say}
	s := scheme.Scheme
	object := func(say string) string {
		return `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x","namespace":"default"},"data":{"say":"` + say + `"},"unknown":1}`
	}
	for name, c := range map[string]struct{ theirs, ours http.Handler }{
		"Defaulter":       {peer.WithDefaulter(s, typed), admission.NewHandler(s, controllerruntime.Defaulter[*corev1.ConfigMap](typed))},
		"CustomDefaulter": {peer.WithCustomDefaulter(s, &corev1.ConfigMap{}, custom), admission.NewHandler(s, controllerruntime.Defaulter[*corev1.ConfigMap](custom))},
		"Validator":       {peer.WithValidator(s, typed), admission.NewHandler(s, controllerruntime.Validator[*corev1.ConfigMap](typed))},
		//lint:ignore SA1019 existing code has the deprecated form
		"CustomValidator": {peer.WithCustomValidator(s, &corev1.ConfigMap{}, custom), admission.NewHandler(s, controllerruntime.Validator[*corev1.ConfigMap](custom))},
	} {
		for _, operation := range []string{"CREATE", "UPDATE", "DELETE"} {
			for _, say := range []string{"yes", "plain", "field", "invalid", "forbidden", "not found", "unavailable"} {
				before, after := "null", object(say)
				switch operation {
				case "UPDATE":
					before = object("old")
				case "DELETE":
					before, after = object(say), "null"
				}
				if strings.HasSuffix(name, "Defaulter") && operation == "DELETE" {
					continue // neither is called
				}
				want, got := decide(t, c.theirs, operation, after, before), decide(t, c.ours, operation, after, before)
				if say == "not found" || say == "unavailable" { // codes that crdkit keeps for what is undecided
					want.Code = http.StatusForbidden
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s, %s, %s (-controller-runtime +crdkit):\n%s", name, operation, say, diff)
				}
			}
		}
	}
}

func TestImplementations_AreCheckedAtStartup(t *testing.T) {
	for want, f := range map[string]func(){
		//lint:ignore SA1019 existing code has the deprecated form
		"the validator of *v1.Secret is nil":           func() { controllerruntime.Validator[*corev1.Secret](peer.CustomValidator(nil)) },
		"is for *v1.ConfigMap, not for *v1.Secret":     func() { controllerruntime.Defaulter[*corev1.Secret](steward[*corev1.ConfigMap]{say}) },
		"controllerruntime: the validator controllerr": func() { controllerruntime.Validator[*corev1.Secret](steward[*corev1.ConfigMap]{say}) },
	} {
		func() {
			defer func() {
				err, _ := recover().(error)
				expect.ErrorContains(t, err, want)
			}()
			f()
		}()
	}
}
