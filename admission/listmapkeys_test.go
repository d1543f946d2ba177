package admission_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdkit/crdkit/admission"
	"github.com/crdkit/crdkit/test/expect"
	"github.com/crdkit/crdkit/test/testobj"
)

// route is a kind of which the Go type does not know the secrets of hosts.
type route struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              struct {
		Hosts []routeHost `json:"hosts"`
	} `json:"spec"`
}

type routeHost struct {
	Host  string `json:"host"`
	Title string `json:"title"`
}

func (r *route) DeepCopyObject() runtime.Object {
	c := *r
	c.ObjectMeta = *r.ObjectMeta.DeepCopy()
	c.Spec.Hosts = append([]routeHost(nil), r.Spec.Hosts...)
	return &c
}

var routeKind = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Route"}

// retitle turns the list round, and edits a string that could be its key.
func retitle(_ context.Context, r *route) error {
	hosts := r.Spec.Hosts
	hosts[0], hosts[1] = hosts[1], hosts[0]
	for i := range hosts {
		hosts[i].Title = "new " + hosts[i].Title
	}
	return nil
}

// routed returns the hosts of an object that a handler with these options has changed.
func routed(t *testing.T, kind schema.GroupVersionKind, opts ...admission.Option) string {
	t.Helper()
	s := runtime.NewScheme()
	s.AddKnownTypeWithName(kind, &route{})
	h := admission.NewHandler(s, append(opts, admission.Mutate(retitle))...)
	var got struct {
		Spec struct{ Hosts []map[string]string }
	}
	object := fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{"name":"r"},"spec":{"hosts":[{"host":"b","title":"be","secret":"of b"},{"host":"a","title":"ah","secret":"of a"}]}}`,
		kind.GroupVersion(), kind.Kind)
	response := ask(t, h, request{group: kind.Group, version: kind.Version, kind: kind.Kind, object: object})
	expect.NoError(t, json.Unmarshal([]byte(patched(t, object, response)), &got))
	var hosts []string
	for _, h := range got.Spec.Hosts {
		hosts = append(hosts, h["host"]+" "+h["title"]+" "+h["secret"])
	}
	return strings.Join(hosts, ", ")
}

func routeDefinition(key string) []byte {
	return fmt.Appendf(nil, `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: routes.example.com}
spec:
  group: example.com
  names: {kind: Route, plural: routes}
  scope: Namespaced
  versions:
  - {name: v0, served: false, storage: false}
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {hosts: {type: array, x-kubernetes-list-map-keys: [%s]}}}}}}
`, key)
}

// The keys tell which element is which after a change.
func TestListMapKeys(t *testing.T) {
	const lost, kept = "a new ah , b new be ", "a new ah of a, b new be of b"
	other := routeKind
	other.Version = "v2"
	for _, c := range []struct {
		name string
		kind schema.GroupVersionKind
		opts []admission.Option
		want string
	}{
		{"nothing declared", routeKind, nil, kept},
		{"defined", routeKind, []admission.Option{admission.ListMapKeys(routeDefinition("host"))}, kept},
		{"another key defined", routeKind, []admission.Option{admission.ListMapKeys(routeDefinition("title"))}, lost},
		{"two definitions", routeKind, []admission.Option{admission.ListMapKeys(routeDefinition("title")), admission.ListMapKeys(routeDefinition("host"))}, kept},
		{"another key defined for another version", other, []admission.Option{admission.ListMapKeys(routeDefinition("title"))}, kept},
	} {
		if diff := cmp.Diff(c.want, routed(t, c.kind, c.opts...)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

// Ports of containers are keyed by number and protocol, as in server-side apply.
func TestMutate_KeysOfPorts(t *testing.T) {
	const udp = `{"containerPort":53,"protocol":"UDP","x":"udp"}`
	for name, c := range map[string]struct {
		edit func([]corev1.ContainerPort) []corev1.ContainerPort
		want string
	}{
		"swapped and renamed": {func(p []corev1.ContainerPort) []corev1.ContainerPort {
			p[0], p[1] = p[1], p[0]
			p[0].Name, p[1].Name = "a", "b"
			return p
		}, `[{"name":"a","containerPort":53,"protocol":"UDP","x":"udp"},{"name":"b","containerPort":53,"protocol":"TCP","x":"tcp"}]`},
		"another protocol": {func(p []corev1.ContainerPort) []corev1.ContainerPort {
			p[0].Protocol = corev1.ProtocolSCTP
			return p
		}, `[{"containerPort":53,"protocol":"SCTP"},` + udp + `]`},
		"the protocol left out": {func(p []corev1.ContainerPort) []corev1.ContainerPort {
			return []corev1.ContainerPort{p[1], {ContainerPort: 53, Name: "new"}}
		}, `[` + udp + `,{"name":"new","containerPort":53,"x":"tcp"}]`},
	} {
		t.Run(name, func(t *testing.T) {
			s := runtime.NewScheme()
			expect.NoError(t, corev1.AddToScheme(s))
			h := admission.NewHandler(s, admission.Mutate(func(_ context.Context, p *corev1.Pod) error {
				ports := &p.Spec.Containers[0].Ports
				*ports = c.edit(*ports)
				return nil
			}))
			pod := func(ports string) string {
				return `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"containers":[{"name":"c","ports":` + ports + `}]}}`
			}
			object := pod(`[{"containerPort":53,"protocol":"TCP","x":"tcp"},` + udp + `]`)
			got := patched(t, object, ask(t, h, request{group: "none", version: "v1", kind: "Pod", object: object}))
			if diff := cmp.Diff(testobj.Parse(t, pod(c.want)), testobj.Parse(t, got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Faults are found when the program starts.
func TestListMapKeys_Faults(t *testing.T) {
	empty, _, _ := bytes.Cut(routeDefinition("host"), []byte("  - name: v1"))
	s := runtime.NewScheme()
	s.AddKnownTypeWithName(routeKind, &route{})
	err := fault(s, admission.Mutate(retitle), admission.ListMapKeys(nil), admission.ListMapKeys([]byte("kind: Route")), admission.ListMapKeys(empty))
	expect.ErrorContains(t, err, "no CustomResourceDefinition found", `kind "Route"`, "routes.example.com has no schema")
}

func ExampleListMapKeys() {
	s := runtime.NewScheme()
	s.AddKnownTypeWithName(routeKind, &route{})
	h := admission.NewHandler(s, admission.Mutate(retitle), admission.ListMapKeys(routeDefinition("host")))

	// The Go type knows no secret.
	admit(h, request{group: "example.com", version: "v1", kind: "Route", object: `{"apiVersion":"example.com/v1","kind":"Route","metadata":{"name":"r"},
		"spec":{"hosts":[{"host":"b","title":"be","secret":"of b"},{"host":"a","title":"ah"}]}}`})
	// Output: allowed, with the patch [{"op":"replace","path":"/spec/hosts","value":[{"host":"a","title":"new ah"},{"host":"b","secret":"of b","title":"new be"}]}]
}

// A Pod without declared keys: the tags of its Go type name them.
func TestMutate_UsesMergeKeysOfTheGoType(t *testing.T) {
	s := runtime.NewScheme()
	expect.NoError(t, corev1.AddToScheme(s))
	handler := admission.NewHandler(s, admission.Mutate(func(_ context.Context, pod *corev1.Pod) error {
		a, b := &pod.Spec.Containers[0], &pod.Spec.Containers[1]
		a.Image, b.Image = b.Image, a.Image
		a.Command, b.Command = b.Command, a.Command
		return nil
	}))
	object := `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"containers":[` +
		`{"name":"a","image":"1","command":["x"],"future":"of a"},{"name":"b","image":"2","command":["y"],"future":"of b"}]}}`
	response := ask(t, handler, request{group: "none", version: "v1", kind: "Pod", object: object})
	want := strings.NewReplacer(`"image":"1"`, `"image":"2"`, `"image":"2"`, `"image":"1"`, `"x"`, `"y"`, `"y"`, `"x"`).Replace(object)
	if diff := cmp.Diff(testobj.Parse(t, want), testobj.Parse(t, patched(t, object, response))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
