package conversion_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/crdkit/crdkit/conversion"
	"github.com/crdkit/crdkit/conversion/lossless"
	"github.com/crdkit/crdkit/schema"
	"github.com/crdkit/crdkit/test/expect"
)

// A hubApp has objects, a map and a list that v1 shows in part, and a proxy that v1 does not show.
type hubApp struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              hubAppSpec `json:"spec,omitzero"`
}

type hubAppSpec struct {
	Image hubImage          `json:"image,omitzero"`
	Env   map[string]string `json:"env,omitempty"`   // those with _ are not in v1
	Proxy *hubProxy         `json:"proxy,omitempty"` // not in v1
}

type hubImage struct {
	Repository string   `json:"repository,omitempty"` // required by the definition
	Digest     string   `json:"digest,omitempty"`     // not in v1
	Pull       *hubPull `json:"pull,omitempty"`
	Mirrors    []string `json:"mirrors,omitempty"` // v1 shows the first
}

type hubPull struct {
	Secret string `json:"secret"`
	Depth  int64  `json:"depth,omitempty"` // not in v1
}

type hubProxy struct {
	Host string `json:"host"`
}

type oldApp struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              oldAppSpec `json:"spec,omitzero"`
}

type oldAppSpec struct {
	Image      string            `json:"image,omitempty"`
	PullSecret string            `json:"pullSecret,omitempty"`
	Mirror     string            `json:"mirror,omitempty"`
	Env        map[string]string `json:"env,omitempty"`
}

func (*hubApp) DeepCopyObject() runtime.Object { panic("conversion must not copy") }
func (*oldApp) DeepCopyObject() runtime.Object { panic("conversion must not copy") }

func appToHub(_ context.Context, in *oldApp, out *hubApp) error {
	out.Spec.Image.Repository, out.Spec.Env = in.Spec.Image, in.Spec.Env
	if in.Spec.PullSecret != "" {
		out.Spec.Image.Pull = &hubPull{Secret: in.Spec.PullSecret}
	}
	if in.Spec.Mirror != "" {
		out.Spec.Image.Mirrors = []string{in.Spec.Mirror}
	}
	return nil
}

func appFromHub(_ context.Context, in *hubApp, out *oldApp) error {
	out.Spec.Image = in.Spec.Image.Repository
	if in.Spec.Image.Pull != nil {
		out.Spec.PullSecret = in.Spec.Image.Pull.Secret
	}
	if len(in.Spec.Image.Mirrors) > 0 {
		out.Spec.Mirror = in.Spec.Image.Mirrors[0]
	}
	for name, value := range in.Spec.Env {
		if !strings.HasPrefix(name, "_") {
			if out.Spec.Env == nil {
				out.Spec.Env = map[string]string{}
			}
			out.Spec.Env[name] = value
		}
	}
	return nil
}

const appsCRD = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: apps.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: apps, kind: App}
  versions:
  - name: v1
    served: true
    storage: false
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
  - name: v2
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              env: {type: object, additionalProperties: {type: string}}
              proxy: {type: object, required: [host], properties: {host: {type: string}}}
              image:
                type: object
                required: [repository]
                properties:
                  repository: {type: string}
                  digest: {type: string}
                  mirrors: {type: array, items: {type: string}}
                  pull:
                    type: object
                    required: [secret]
                    properties: {secret: {type: string}, depth: {type: integer}}
`

// unstructuredApp returns a conversion function for objects that have no Go type.
func unstructuredApp[In, Out any](f func(context.Context, *In, *Out) error) func(context.Context, *unstructured.Unstructured, *unstructured.Unstructured) error {
	return func(ctx context.Context, in, out *unstructured.Unstructured) error {
		var from In
		var to Out
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(in.Object, &from); err != nil {
			return err
		}
		if err := f(ctx, &from, &to); err != nil {
			return err
		}
		text, err := json.Marshal(to)
		if err != nil {
			return err
		}
		var made struct{ Spec map[string]any }
		if err := json.Unmarshal(text, &made); err == nil && made.Spec != nil {
			out.Object["spec"] = made.Spec
		}
		return err
	}
}

// Hidden fields go with the object that a user removes. Other fields, and entries of maps, stay. The
// definition accepts the result.
func TestLossless_RemovedParents(t *testing.T) {
	v1 := menus.WithKind("App")
	v1.Version = "v1"
	s := runtime.NewScheme()
	s.AddKnownTypeWithName(v1, &oldApp{})
	s.AddKnownTypeWithName(menus.WithKind("App"), &hubApp{})
	typed, untyped := conversion.NewRegistry(s), conversion.NewRegistry(runtime.NewScheme())
	expect.NoError(t, errors.Join(
		conversion.AddSpoke(typed, appToHub, appFromHub),
		conversion.Lossless(typed, v1),
		conversion.AddUnstructuredSpoke(untyped, v1, "v2", unstructuredApp(appToHub), unstructuredApp(appFromHub)),
		conversion.Lossless(untyped, v1, lossless.ListMapKeys([]byte(appsCRD))),
	))
	definition, err := schema.Parse([]byte(appsCRD))
	expect.NoError(t, err)
	app := func(spec string) string {
		return `{"apiVersion":"example.com/v2","kind":"App","metadata":{"name":"a","finalizers":["example.com/f"]},"spec":` + spec + `}`
	}
	const rich = `{"image":{"repository":"r","digest":"d","pull":{"secret":"s","depth":1},"mirrors":["m","n"]},"env":{"A":"a","_B":"b"},"proxy":{"host":"h"}}`
	for name, c := range map[string]struct {
		hub  string
		edit func(*oldAppSpec)
		want string
	}{
		"the object": {
			rich, func(s *oldAppSpec) { s.Image, s.PullSecret, s.Mirror = "", "", "" },
			`{"env":{"A":"a","_B":"b"},"proxy":{"host":"h"}}`,
		},
		"an object in it": {
			rich, func(s *oldAppSpec) { s.PullSecret = "" },
			`{"image":{"repository":"r","digest":"d","mirrors":["m","n"]},"env":{"A":"a","_B":"b"},"proxy":{"host":"h"}}`,
		},
		"a field of it": {
			rich, func(s *oldAppSpec) { s.Image = "q" },
			`{"image":{"repository":"q","digest":"d","pull":{"secret":"s","depth":1},"mirrors":["m","n"]},"env":{"A":"a","_B":"b"},"proxy":{"host":"h"}}`,
		},
		"a map": {
			rich, func(s *oldAppSpec) { s.Env = nil },
			`{"image":{"repository":"r","digest":"d","pull":{"secret":"s","depth":1},"mirrors":["m","n"]},"env":{"_B":"b"},"proxy":{"host":"h"}}`,
		},
		"everything": {
			rich, func(s *oldAppSpec) { *s = oldAppSpec{} },
			`{"env":{"_B":"b"},"proxy":{"host":"h"}}`,
		},
		"nothing": {
			`{"proxy":{"host":"h"}}`, func(s *oldAppSpec) { s.Image = "q" },
			`{"image":{"repository":"q"},"proxy":{"host":"h"}}`,
		},
	} {
		for form, reg := range map[string]*conversion.Registry{"typed": typed, "untyped": untyped} {
			t.Run(name+"/"+form, func(t *testing.T) {
				spoke := into[oldApp](t, convert(t, reg, app(c.hub), v1.GroupVersion()))
				c.edit(&spoke.Spec)
				got := convert(t, reg, textOf(t, spoke), menus)
				if diff := cmp.Diff(into[any](t, app(c.want)), into[any](t, got)); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				if errs := definition.Version("v2").Validate(t.Context(), into[map[string]any](t, got)); len(errs) > 0 {
					t.Error(errs)
				}
			})
		}
	}
}
