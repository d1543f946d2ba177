package admission_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/crdkit/crdkit/admission"
	"github.com/crdkit/crdkit/scheme"
	"github.com/crdkit/crdkit/test/controlplane"
	"github.com/crdkit/crdkit/test/expect"
	"github.com/crdkit/crdkit/test/testobj"
	"github.com/crdkit/crdkit/test/webhooktest"
)

// oven is an older Go type for the objects of ovenCRD: it lacks fields of the schema.
type oven struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              ovenSpec   `json:"spec,omitempty"`
	Status            ovenStatus `json:"status,omitempty"`
}

type ovenSpec struct {
	Replicas int32           `json:"replicas,omitempty"`
	Racks    []rack          `json:"racks,omitempty"`
	Doors    map[string]door `json:"doors,omitempty"`
}

type rack struct {
	Name   string  `json:"name"`
	Shelf  int64   `json:"shelf,omitempty"`
	Screws []screw `json:"screws,omitempty"`
}

type (
	screw struct {
		Size int64 `json:"size"`
	}
	door struct {
		Open bool `json:"open,omitempty"`
	}
	ovenStatus struct {
		Checked string `json:"checked,omitempty"`
	}
)

func (o *oven) DeepCopyObject() runtime.Object {
	copied := *o
	return &copied
}

const ovenCRD = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: ovens.kitchen.example.com}
spec:
  group: kitchen.example.com
  names: {plural: ovens, singular: oven, kind: Oven, listKind: OvenList}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    subresources:
      status: {}
      scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              replicas: {type: integer, format: int32}
              serial: {type: integer, format: int64}
              weight: {type: number}
              note: {type: string, nullable: true}
              racks:
                type: array
                items:
                  type: object
                  properties:
                    name: {type: string}
                    shelf: {type: integer, format: int64}
                    rusty: {type: boolean}
                    serial: {type: integer, format: int64}
                    screws:
                      type: array
                      items:
                        type: object
                        properties:
                          size: {type: integer}
                          thread: {type: number}
              doors:
                type: object
                additionalProperties:
                  type: object
                  properties:
                    open: {type: boolean}
                    glass: {type: string}
          status:
            type: object
            properties:
              checked: {type: string}
              heat: {type: integer, format: int64}
              replicas: {type: integer}
`

// The webhook's functions. The labels of an oven choose among them.

func changeOven(ctx context.Context, o *oven) error {
	switch o.Labels["change"] {
	case "prepend":
		o.Spec.Racks = append([]rack{{Name: "new"}}, o.Spec.Racks...)
	case "sort":
		slices.SortFunc(o.Spec.Racks, func(a, b rack) int { return strings.Compare(a.Name, b.Name) })
	case "deep":
		o.Spec.Racks[1].Screws[0].Size++
		o.Spec.Racks[0].Screws = nil
		o.Spec.Doors["a/b~c"] = door{Open: true}
		delete(o.Spec.Doors, "old")
		o.Spec.Racks[0].Shelf = 9007199254740993
	case "nothing":
	case "dry":
		request, _ := admission.RequestFrom(ctx)
		o.Annotations = map[string]string{"dry": fmt.Sprint(*request.DryRun), "user": request.UserInfo.Username}
	}
	return nil
}

func checkOven(_ context.Context, o *oven) error {
	o.Status.Checked = "yes"
	return nil
}

func fewRacks(ctx context.Context, o *oven) (errs field.ErrorList, _ error) {
	admission.Warn(ctx, "racks:\n%d", len(o.Spec.Racks))
	if err := admission.AuditAnnotation(ctx, "racks", fmt.Sprint(len(o.Spec.Racks))); err != nil {
		return nil, err
	}
	if len(o.Spec.Racks) > 4 {
		errs = append(errs, field.TooMany(field.NewPath("spec", "racks"), len(o.Spec.Racks), 4))
	}
	return errs, nil
}

func smallScale(_ context.Context, s *autoscalingv1.Scale) (errs field.ErrorList, _ error) {
	if s.Spec.Replicas > 10 {
		errs = append(errs, field.Invalid(field.NewPath("spec", "replicas"), s.Spec.Replicas, "the kitchen holds 10"))
	}
	return errs, nil
}

func noShell(_ context.Context, e *corev1.PodExecOptions) (errs field.ErrorList, _ error) {
	if slices.Contains(e.Command, "sh") {
		errs = append(errs, field.Forbidden(field.NewPath("command"), "no shells"))
	}
	return errs, nil
}

func keepHot(_ context.Context, old *metav1.PartialObjectMetadata) (field.ErrorList, error) {
	if old.Labels["hot"] == "yes" {
		return nil, apierrors.NewConflict(schema.GroupResource{Group: "kitchen.example.com", Resource: "ovens"}, old.Name, fmt.Errorf("oven is hot"))
	}
	return nil, nil
}

// TestPatch_OnAnAPIServer runs mutating and validating webhooks of a CustomResourceDefinition,
// whose schema has fields that the Go type lacks, on a real API server. The patches lose
// nothing.
func TestPatch_OnAnAPIServer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	policy, audit := filepath.Join(dir, "policy.yaml"), filepath.Join(dir, "audit.log")
	expect.NoError(t, os.WriteFile(policy, []byte(`{"apiVersion":"audit.k8s.io/v1","kind":"Policy","rules":[{"level":"Metadata"}]}`), 0o600))
	cp := controlplane.ForTest(t, controlplane.APIServerArgs("--audit-policy-file="+policy, "--audit-log-path="+audit, "--audit-log-mode=blocking"))
	s, err := scheme.New(scheme.Functions(corev1.AddToScheme, autoscalingv1.AddToScheme))
	expect.NoError(t, err)
	s.AddKnownTypeWithName(schema.GroupVersionKind{Group: "kitchen.example.com", Version: "v1", Kind: "Oven"}, &oven{})
	mux := http.NewServeMux()
	mux.Handle("/mutate", admission.NewHandler(s,
		admission.Mutate(changeOven),
		admission.Mutate(checkOven, admission.Subresource("status"))))
	mux.Handle("/validate", admission.NewHandler(s,
		admission.Validate(fewRacks, admission.IfChanged("spec"), admission.UnlessDeleting()),
		admission.Validate(smallScale, admission.Subresource("scale")),
		admission.Validate(noShell, admission.Subresource("exec"), admission.On(admissionv1.Connect)),
		admission.ValidateDelete(keepHot, admission.ForKind(schema.GroupVersionKind{Group: "kitchen.example.com", Version: "v1", Kind: "Oven"}))))
	warned := &warnings{}
	config := cp.Config()
	config.WarningHandler = warned
	client, err := dynamic.NewForConfig(config)
	expect.NoError(t, err)
	core, err := kubernetes.NewForConfig(config)
	expect.NoError(t, err)
	installOvens(t, cp)
	ovens := client.Resource(schema.GroupVersionResource{Group: "kitchen.example.com", Version: "v1", Resource: "ovens"}).Namespace("default")
	storeOldOven(t, ovens)
	registerOvens(t, cp, ovens, mux)
	ctx := t.Context()

	create := func(name, change, spec string, opts metav1.CreateOptions) (*unstructured.Unstructured, error) {
		o := testobj.Parse(t, `{"apiVersion":"kitchen.example.com/v1","kind":"Oven","metadata":{"name":"`+name+`","labels":{"change":"`+change+`"}},"spec":`+spec+`}`)
		opts.FieldManager = "test"
		return ovens.Create(ctx, o, opts)
	}
	wants := func(o *unstructured.Unstructured, err error, want string) {
		t.Helper()
		expect.NoError(t, err)
		text, err := json.Marshal(o.Object["spec"])
		expect.NoError(t, err)
		if got, want := sorted(t, text), sorted(t, []byte(want)); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
	merge := func(name, patch string, subresources ...string) (*unstructured.Unstructured, error) {
		return ovens.Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "other"}, subresources...)
	}
	const racks = `[{"name":"c","rusty":true,"serial":9007199254740995,"screws":[{"size":3,"thread":0.5}]},{"name":"a","rusty":false,"screws":[{"size":4,"thread":0.25},{"size":5,"thread":1.5}]},{"name":"b","serial":1}]`
	const rest = `"serial":9007199254740993,"weight":12.75,"note":null,"doors":{"a/b~c":{"glass":"red"},"old":{"glass":"blue","open":true}}`

	t.Run("a prepended element takes nothing from the others", func(t *testing.T) {
		o, err := create("prepend", "prepend", `{"racks":`+racks+`,`+rest+`}`, metav1.CreateOptions{})
		wants(o, err, `{"racks":[{"name":"new"},`+racks[1:]+`,`+rest+`}`)
	})
	t.Run("sorted elements take their fields with them", func(t *testing.T) {
		o, err := create("sort", "sort", `{"racks":`+racks+`,`+rest+`}`, metav1.CreateOptions{})
		wants(o, err, `{"racks":[{"name":"a","rusty":false,"screws":[{"size":4,"thread":0.25},{"size":5,"thread":1.5}]},{"name":"b","serial":1},{"name":"c","rusty":true,"serial":9007199254740995,"screws":[{"size":3,"thread":0.5}]}],`+rest+`}`)
	})
	t.Run("edits far down keep what is beside them, in an update too", func(t *testing.T) {
		_, err := create("deep", "nothing", `{"racks":`+racks+`,`+rest+`}`, metav1.CreateOptions{})
		expect.NoError(t, err)
		o, err := merge("deep", `{"metadata":{"labels":{"change":"deep"}}}`)
		wants(o, err, `{"racks":[{"name":"c","rusty":true,"serial":9007199254740995,"shelf":9007199254740993},{"name":"a","rusty":false,"screws":[{"size":5,"thread":0.25},{"size":5,"thread":1.5}]},{"name":"b","serial":1}],`+
			`"serial":9007199254740993,"weight":12.75,"note":null,"doors":{"a/b~c":{"glass":"red","open":true}}}`)
	})
	t.Run("who changes nothing is no manager of anything", func(t *testing.T) {
		o, err := create("nothing", "nothing", `{"racks":`+racks+`}`, metav1.CreateOptions{})
		wants(o, err, `{"racks":`+racks+`}`)
		if _, has := o.Object["status"]; has || len(o.GetManagedFields()) != 1 {
			t.Errorf("got %v", o)
		}
	})
	t.Run("a dry run is known to the function, and so is the user", func(t *testing.T) {
		for _, dry := range []bool{true, false} {
			opts := metav1.CreateOptions{}
			if dry {
				opts.DryRun = []string{metav1.DryRunAll}
			}
			o, err := create(fmt.Sprint("dry-", dry), "dry", `{}`, opts)
			expect.NoError(t, err)
			if a := o.GetAnnotations(); a["dry"] != fmt.Sprint(dry) || a["user"] == "" {
				t.Errorf("got %v", a)
			}
		}
	})
	t.Run("subresources have functions of their own", func(t *testing.T) {
		_, err := create("sub", "prepend", `{"replicas":1}`, metav1.CreateOptions{})
		expect.NoError(t, err)
		o, err := merge("sub", `{"status":{"heat":9007199254740993}}`, "status")
		wants(o, err, `{"replicas":1,"racks":[{"name":"new"}]}`)
		if diff := cmp.Diff(map[string]any{"checked": "yes", "heat": int64(9007199254740993)}, o.Object["status"]); diff != "" {
			t.Errorf("status (-want +got):\n%s", diff)
		}
		scale := func(n int) error {
			_, err := merge("sub", fmt.Sprintf(`{"spec":{"replicas":%d}}`, n), "scale")
			return err
		}
		if err := scale(11); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec.replicas: Invalid value: 11: the kitchen holds 10") {
			t.Errorf("got %v", err)
		}
		expect.NoError(t, scale(10))
		err = core.CoreV1().RESTClient().Post().Resource("pods").Namespace("default").Name("x").SubResource("exec").Param("command", "sh").Param("stdout", "true").Do(ctx).Error()
		if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "command: Forbidden: no shells") {
			t.Errorf("exec: got %v", err)
		}
	})
	t.Run("what was written before the rule, or is being deleted, is left alone", func(t *testing.T) {
		if _, err := create("many", "nothing", `{"racks":[{},{},{},{},{}]}`, metav1.CreateOptions{}); !apierrors.IsInvalid(err) || !apierrors.HasStatusCause(err, metav1.CauseTypeTooMany) {
			t.Fatalf("got %v", err)
		}
		if _, err := merge("old", `{"metadata":{"labels":{"a":"b"}}}`); err != nil {
			t.Errorf("an old oven gets no label: %v", err)
		}
		if _, err := merge("old", `{"spec":{"weight":1}}`); !apierrors.IsInvalid(err) {
			t.Errorf("got %v", err)
		}
		o := testobj.Parse(t, `{"apiVersion":"kitchen.example.com/v1","kind":"Oven","metadata":{"name":"full","finalizers":["example.com/x"]},"spec":{"racks":[{},{},{},{}]}}`)
		_, err := ovens.Create(ctx, o, metav1.CreateOptions{})
		expect.NoError(t, err)
		patch := func(text string) error {
			_, err := merge("full", text)
			return err
		}
		if err := patch(`{"spec":{"racks":[{},{},{},{},{}]}}`); !apierrors.IsInvalid(err) {
			t.Errorf("got %v", err)
		}
		expect.NoError(t, ovens.Delete(ctx, "full", metav1.DeleteOptions{}))
		if err := patch(`{"spec":{"racks":[{},{},{},{},{}]}}`); err != nil {
			t.Errorf("while it is being deleted: %v", err)
		}
		if err := patch(`{"metadata":{"finalizers":null}}`); err != nil {
			t.Errorf("the finalizer stays: %v", err)
		}
	})
	t.Run("a deletionTimestamp written by a user", func(t *testing.T) {
		o := testobj.Parse(t, `{"apiVersion":"kitchen.example.com/v1","kind":"Oven","metadata":{"name":"sly","deletionTimestamp":"2020-01-01T00:00:00Z"},"spec":{"racks":[{},{},{},{},{}]}}`)
		if o, err := ovens.Apply(ctx, "sly", o, metav1.ApplyOptions{FieldManager: "test"}); !apierrors.IsInvalid(err) {
			t.Errorf("got %v, %v", o, err)
		}
	})
	t.Run("a deletion is denied", func(t *testing.T) {
		_, err := create("hot", "nothing", `{}`, metav1.CreateOptions{})
		expect.NoError(t, err)
		label := func(hot string) {
			_, err := merge("hot", `{"metadata":{"labels":{"hot":"`+hot+`"}}}`)
			expect.NoError(t, err)
		}
		label("yes")
		if err := ovens.Delete(ctx, "hot", metav1.DeleteOptions{}); !apierrors.IsConflict(err) || !strings.Contains(err.Error(), "oven is hot") {
			t.Errorf("got %v", err)
		}
		label("no")
		expect.NoError(t, ovens.Delete(ctx, "hot", metav1.DeleteOptions{}))
	})
	t.Run("warnings and audit annotations arrive", func(t *testing.T) {
		warned.mu.Lock()
		if !slices.Contains(warned.text, "racks: 4") {
			t.Errorf("the warnings are %q", warned.text)
		}
		warned.mu.Unlock()
		text, err := os.ReadFile(audit)
		expect.NoError(t, err)
		if !strings.Contains(string(text), `"validate.kitchen.example.com/racks":"4"`) {
			t.Error("the audit log has no such annotation")
		}
	})
}

// sorted returns JSON with the members in the order of names; numbers keep their text.
func sorted(t *testing.T, text []byte) string {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(string(text)))
	d.UseNumber()
	var v any
	expect.NoError(t, d.Decode(&v))
	out, err := json.Marshal(v)
	expect.NoError(t, err)
	return string(out)
}

func installOvens(t *testing.T, cp *controlplane.ControlPlane) {
	t.Helper()
	client, err := apiextensions.NewForConfig(cp.Config())
	expect.NoError(t, err)
	_, err = client.ApiextensionsV1().CustomResourceDefinitions().Create(t.Context(), testobj.As[apiextensionsv1.CustomResourceDefinition](t, ovenCRD), metav1.CreateOptions{})
	expect.NoError(t, err)
}

// storeOldOven stores an oven with more racks than are allowed later.
func storeOldOven(t *testing.T, ovens dynamic.ResourceInterface) {
	t.Helper()
	o := testobj.Parse(t, `{"apiVersion":"kitchen.example.com/v1","kind":"Oven","metadata":{"name":"old"},"spec":{"racks":[{},{},{},{},{}]}}`)
	expect.Eventually(t, func() error { // once the definition is served
		_, err := ovens.Create(t.Context(), o, metav1.CreateOptions{})
		return err
	})
}

// registerOvens registers the webhooks, and waits until they are asked.
func registerOvens(t *testing.T, cp *controlplane.ControlPlane, ovens dynamic.ResourceInterface, h http.Handler) {
	t.Helper()
	url, ca := webhooktest.Serve(t, h)
	webhooktest.Register(t, cp.Config(), url, ca, `
kind: MutatingWebhookConfiguration
metadata: {name: ovens}
webhooks:
- name: mutate.kitchen.example.com
  clientConfig: {url: /mutate}
  rules: [{operations: [CREATE, UPDATE], apiGroups: [kitchen.example.com], apiVersions: [v1], resources: [ovens, ovens/status]}]
`)
	webhooktest.Register(t, cp.Config(), url, ca, `
kind: ValidatingWebhookConfiguration
metadata: {name: ovens}
webhooks:
- name: validate.kitchen.example.com
  clientConfig: {url: /validate}
  rules:
  - {operations: [CREATE, UPDATE, DELETE], apiGroups: [kitchen.example.com], apiVersions: [v1], resources: [ovens, ovens/scale, ovens/status]}
  - {operations: [CONNECT], apiGroups: [""], apiVersions: [v1], resources: [pods/exec]}
`)
	probe := testobj.Parse(t, `{apiVersion: kitchen.example.com/v1, kind: Oven, metadata: {name: probe, labels: {change: prepend}}, spec: {racks: [{}, {}, {}, {}]}}`)
	// The fifth rack, which the mutating webhook adds, is one too many for the other.
	expect.EventuallyTrue(t, "both webhooks are called", func() bool {
		_, err := ovens.Create(t.Context(), probe, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return apierrors.IsInvalid(err)
	})
}
