package breaking_test

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/crdkit/crdkit/schema/breaking"
	"github.com/crdkit/crdkit/test/controlplane"
	"github.com/crdkit/crdkit/test/differential"
	"github.com/crdkit/crdkit/test/expect"
	"github.com/crdkit/crdkit/test/testobj"
	"github.com/crdkit/crdkit/test/tier"
)

// server is a real API server with one definition.
type server struct {
	t       *testing.T
	install *differential.Server
	client  dynamic.Interface
	group   string
	defined int
}

// define replaces the definition, and waits until it is served: it has a warning of its own.
func (s *server) define(text string) {
	s.t.Helper()
	crd := definition(s.t, strings.ReplaceAll(text, "example.com", s.group)).CustomResourceDefinition()
	s.defined++
	for i := range crd.Spec.Versions {
		v := &crd.Spec.Versions[i]
		v.Deprecated, v.DeprecationWarning = true, new(fmt.Sprintf("%s, %d, %s", s.t.Name(), s.defined, v.Name))
	}
	expect.NoError(s.t, s.install.Install(s.t.Context(), crd))
}

func (s *server) apples(version string) dynamic.ResourceInterface {
	return s.client.Resource(schema.GroupVersionResource{Group: s.group, Version: version, Resource: "apples"})
}

// read decodes an object of a proof.
func (s *server) read(object []byte) *unstructured.Unstructured {
	s.t.Helper()
	u := testobj.Parse(s.t, strings.ReplaceAll(string(object), "example.com", s.group))
	return u
}

func (s *server) delete(version, name string) {
	s.t.Helper()
	if err := s.apples(version).Delete(s.t.Context(), name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		s.t.Fatal(err)
	}
}

// update replaces an object, or its status if the version has it as a subresource.
func (s *server) update(version, subresource string, u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	s.t.Helper()
	stored, err := s.apples(version).Get(s.t.Context(), u.GetName(), metav1.GetOptions{})
	expect.NoError(s.t, err)
	u.SetResourceVersion(stored.GetResourceVersion())
	if subresource != "" {
		updated, err := s.apples(version).UpdateStatus(s.t.Context(), u, metav1.UpdateOptions{})
		if !apierrors.IsNotFound(err) {
			return updated, err
		}
	}
	return s.apples(version).Update(s.t.Context(), u, metav1.UpdateOptions{})
}

// confirm checks what the server does under both definitions.
func (s *server) confirm(old, new string, c breaking.Change) {
	s.t.Helper()
	p, name := c.Proof, s.read(c.Proof.Object).GetName()
	s.delete(c.Version, name)
	s.define(old)
	write := func() (*unstructured.Unstructured, error) {
		u := s.read(p.Object)
		if p.Stored == nil {
			return s.apples(c.Version).Create(s.t.Context(), u, metav1.CreateOptions{})
		}
		return s.update(c.Version, p.Subresource, u)
	}
	store := func() {
		if p.Stored == nil {
			return
		}
		u := s.read(p.Stored)
		if _, err := s.apples(c.Version).Create(s.t.Context(), u, metav1.CreateOptions{}); err != nil {
			s.t.Fatalf("%s: the old definition refuses what is stored, %s: %v", c, p.Stored, err)
		}
		if u.Object["status"] != nil {
			if _, err := s.update(c.Version, "status", u); err != nil {
				s.t.Fatalf("%s: the old definition refuses the status of %s: %v", c, p.Stored, err)
			}
		}
	}
	store()
	before, err := write()
	if err != nil {
		s.t.Fatalf("%s: the old definition refuses %s: %v", c, p.Object, err)
	}
	if len(p.Errors) > 0 { // what is stored stays, if nothing is changed
		s.define(new)
		stored, err := s.apples(c.Version).Get(s.t.Context(), name, metav1.GetOptions{})
		expect.NoError(s.t, err)
		if _, err = s.apples(c.Version).Update(s.t.Context(), stored, metav1.UpdateOptions{}); p.Blocked != (err != nil) {
			s.t.Errorf("%s: an update of %s that changes nothing: %v, want an error: %t", c, p.Object, err, p.Blocked)
		}
		s.define(old)
	}
	s.delete(c.Version, name)
	store() // as it was before the write
	s.define(new)
	after, err := write()
	for _, want := range p.Errors {
		if err == nil || !strings.Contains(err.Error(), want.Detail) {
			s.t.Errorf("%s: %s: the server says %v, want %v", c, p.Object, err, want)
		}
	}
	if len(p.Errors) > 0 {
		return
	}
	if err != nil {
		s.t.Fatalf("%s: the new definition refuses %s: %v", c, p.Object, err)
	}
	without := func(u *unstructured.Unstructured) map[string]any {
		delete(u.Object, "metadata")
		return u.Object
	}
	if diff := cmp.Diff(without(before), without(after)); diff == "" {
		s.t.Errorf("%s: %s is stored as before: %v", c, p.Object, after.Object)
	}
}

// Each proof of the tests is confirmed by a server.
func TestProofs_HoldOnTheAPIServer(t *testing.T) {
	cp := controlplane.Shared(t)
	config := rest.CopyConfig(cp.Config())
	config.WarningHandler = rest.NoWarnings{}
	config.QPS, config.Burst = 200, 200
	client, err := dynamic.NewForConfig(config)
	expect.NoError(t, err)
	install, err := differential.NewServer(cp.Config(), filepath.Join(cp.Dir(), "etcd.sock"))
	expect.NoError(t, err)
	withScale := func(text string) string {
		return strings.Replace(text, "schema: ", "subresources: {scale: {specReplicasPath: .spec.a, statusReplicasPath: .status.a}}, schema: ", 1)
	}
	cases := map[string][2]string{
		"null":                {property("{type: string}"), property("{type: string, nullable: true}")},
		"null in a map":       {property("{type: object, additionalProperties: {type: string}}"), property("{type: object, additionalProperties: {type: string, nullable: true}}")},
		"null with an enum":   {property("{type: string, enum: [p]}"), property("{type: string, enum: [p], nullable: true}")},
		"null with a default": {property("{type: string, default: d}"), property("{type: string, default: d, nullable: true}")},
		"scale":               {property("{type: integer}"), withScale(property("{type: integer}"))},
		"scale of a number":   {property("{type: number, minimum: 0, maximum: 9}"), withScale(property("{type: number, minimum: 0, maximum: 9}"))},
		"default of items":    {property("{type: array, items: {type: string, default: d}}"), property("{type: array, items: {type: string, default: e}}")},
		"no default of items": {property("{type: array, items: {type: string, default: d}}"), property("{type: array, items: {type: string}}")},
		"default of values":   {property("{type: object, additionalProperties: {type: string}}"), property("{type: object, additionalProperties: {type: string, default: d}}")},
		"a default counts":    {property("{type: object, maxProperties: 1, properties: {b: {type: string}}}"), property("{type: object, maxProperties: 1, properties: {b: {type: string}, c: {type: string, default: x}}}")},
		"a set of numbers":    {property("{type: array, items: {type: integer}}"), property("{type: array, items: {type: number}, x-kubernetes-list-type: set}")},
		"an update":           {property("{type: string, maxLength: 9}"), property("{type: string, maxLength: 9, x-kubernetes-validations: [{rule: self == oldSelf}]}")},
	}
	for _, tests := range [][]pair{metadataPairs, storagePairs, statusPairs, blockedPairs} {
		for _, p := range tests {
			cases[p.name] = [2]string{p.old, p.new}
		}
	}
	// make verify confirms all of them, and make test one of each kind.
	kinds := []string{"null", "an update", "status and scale are added", "shorter names", "a field that it never had", "a rule that fails"}
	names := tier.Pick(kinds, slices.Sorted(maps.Keys(cases)))
	i := 0
	for _, name := range names {
		i++
		s := &server{install: install, client: client, group: fmt.Sprintf("proofs%d.example.com", i)}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s.t = t
			for _, c := range changes(t, cases[name][0], cases[name][1]) {
				if c.Proof != nil {
					s.confirm(cases[name][0], cases[name][1], c)
				}
			}
		})
	}
	t.Run("formats that all values have", func(t *testing.T) {
		t.Parallel()
		s := &server{t: t, install: install, client: client, group: "formats.example.com"}
		new := property("{type: string, enum: ['10.0.0.0/8', '10.0.0.1/8', 'fd00::/8', '::ffff:10.0.0.0/104'], format: cidr}")
		if got := breaks(t, strings.Replace(new, ", format: cidr", "", 1), new); got != nil {
			t.Fatalf("it breaks %v", got)
		}
		s.define(new)
		for i, value := range []string{"10.0.0.0/8", "10.0.0.1/8", "fd00::/8", "::ffff:10.0.0.0/104"} {
			u := s.read(fmt.Appendf(nil, `{"apiVersion":"example.com/v1","kind":"Apple","metadata":{"name":"a%d"},"spec":{"a":%q}}`, i, value))
			if _, err := s.apples("v1").Create(t.Context(), u, metav1.CreateOptions{}); err != nil {
				t.Errorf("the server refuses %s: %v", value, err)
			}
		}
	})
}
