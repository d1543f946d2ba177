package breaking_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/crdkit/crdkit/internal/testing/controlplane"
	"github.com/crdkit/crdkit/internal/testing/differential"
)

// server is a real API server.
type server struct {
	t       *testing.T
	install *differential.Server
	apples  dynamic.ResourceInterface
	defined int
}

// define replaces the definition, and waits until it is served: it has a warning of its own.
func (s *server) define(text string) {
	s.t.Helper()
	crd := definition(s.t, text).CustomResourceDefinition()
	s.defined++
	crd.Spec.Versions[0].Deprecated = true
	crd.Spec.Versions[0].DeprecationWarning = new(fmt.Sprintf("%s, %d", s.t.Name(), s.defined))
	if err := s.install.Install(s.t.Context(), crd); err != nil {
		s.t.Fatal(err)
	}
}

// create returns what the server stores of an object, or its error.
func (s *server) create(object []byte) string {
	s.t.Helper()
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(object); err != nil {
		s.t.Fatal(err)
	}
	created, err := s.apples.Create(s.t.Context(), u, metav1.CreateOptions{})
	if err != nil {
		return err.Error()
	}
	if err := s.apples.Delete(s.t.Context(), created.GetName(), metav1.DeleteOptions{}); err != nil {
		s.t.Fatal(err)
	}
	spec, err := json.Marshal(created.Object["spec"])
	if err != nil {
		s.t.Fatal(err)
	}
	return string(spec)
}

func TestProofs_HoldOnTheAPIServer(t *testing.T) {
	cp := controlplane.Shared(t)
	config := rest.CopyConfig(cp.Config())
	config.WarningHandler = rest.NoWarnings{}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	install, err := differential.NewServer(cp.Config(), filepath.Join(cp.Dir(), "etcd.sock"))
	if err != nil {
		t.Fatal(err)
	}
	apples := client.Resource(schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "apples"})
	withScale := func(text string) string {
		return strings.Replace(text, "schema: ", "subresources: {scale: {specReplicasPath: .spec.a, statusReplicasPath: .status.a}}, schema: ", 1)
	}
	for _, test := range []struct{ name, old, new, before, after string }{
		{"null", property("{type: string}"), property("{type: string, nullable: true}"), `{}`, `{"a":null}`},
		{"null in a map", property("{type: object, additionalProperties: {type: string}}"), property("{type: object, additionalProperties: {type: string, nullable: true}}"), `{"a":{}}`, `{"a":{"x":null}}`},
		{"null with an enum", property("{type: string, enum: [p]}"), property("{type: string, enum: [p], nullable: true}"), `{}`, `spec.a: Unsupported value: null`},
		{"null with a default", property("{type: string, default: d}"), property("{type: string, default: d, nullable: true}"), `{"a":"d"}`, `{"a":null}`},
		{"scale", property("{type: integer}"), withScale(property("{type: integer}")), `{"a":-1}`, `.spec.a: Invalid value: -1: should be a non-negative integer`},
	} {
		t.Run(test.name, func(t *testing.T) {
			changes := changes(t, test.old, test.new)
			if len(changes) != 1 || changes[0].Proof == nil {
				t.Fatalf("the changes are %v, want one with a proof", changes)
			}
			s := &server{t: t, install: install, apples: apples}
			for text, want := range map[string]string{test.old: test.before, test.new: test.after} {
				s.define(text)
				if got := s.create(changes[0].Proof.Object); !strings.Contains(got, want) {
					t.Errorf("%s is %s under\n%s, want %s", changes[0].Proof.Object, got, text, want)
				}
			}
		})
	}
}
