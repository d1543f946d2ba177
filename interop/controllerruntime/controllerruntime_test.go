package controllerruntime_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	peer "sigs.k8s.io/controller-runtime/pkg/conversion"

	"github.com/crdkit/crdkit/conversion"
	"github.com/crdkit/crdkit/interop/controllerruntime"
	"github.com/crdkit/crdkit/test/expect"
)

// Spoke and Hub are as kubebuilder's users have them.
type (
	Spoke struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata,omitempty"`
		HostPort          string `json:"hostPort"`
	}
	Hub struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata,omitempty"`
		Host              string `json:"host"`
		Port              int    `json:"port"`
	}
)

func (*Spoke) DeepCopyObject() runtime.Object { panic("conversion must not copy") }
func (*Hub) DeepCopyObject() runtime.Object   { panic("conversion must not copy") }
func (*Hub) Hub()                             {}

func (s *Spoke) ConvertTo(dst peer.Hub) error {
	hub := dst.(*Hub)
	hub.ObjectMeta = s.ObjectMeta
	_, err := fmt.Sscanf(s.HostPort, "%s %d", &hub.Host, &hub.Port)
	return err
}

func (s *Spoke) ConvertFrom(src peer.Hub) error {
	hub := src.(*Hub)
	s.ObjectMeta = hub.ObjectMeta
	s.HostPort = fmt.Sprintf("%s %d", hub.Host, hub.Port)
	return nil
}

func registry(t testing.TB) *conversion.Registry {
	t.Helper()
	s := runtime.NewScheme()
	s.AddKnownTypeWithName(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Server"}, &Spoke{})
	s.AddKnownTypeWithName(schema.GroupVersionKind{Group: "example.com", Version: "v2", Kind: "Server"}, &Hub{})
	reg := conversion.NewRegistry(s)
	expect.NoError(t, controllerruntime.AddSpoke[*Spoke, *Hub](reg))
	return reg
}

// The methods convert both ways.
func TestAddSpoke_BothWays(t *testing.T) {
	reg := registry(t)
	spoke := `{"apiVersion":"example.com/v1","kind":"Server","metadata":{"name" : "x","managedFields":[]},"hostPort":"localhost 80"}`
	hub := `{"apiVersion":"example.com/v2","kind":"Server","metadata":{"name" : "x","managedFields":[]},"host":"localhost","port":80}`
	for _, c := range []struct{ from, to, version string }{{spoke, hub, "v2"}, {hub, spoke, "v1"}} {
		got, err := reg.Convert(t.Context(), []byte(c.from), schema.GroupVersion{Group: "example.com", Version: c.version})
		expect.NoError(t, err)
		if diff := cmp.Diff(c.to, string(got)); diff != "" {
			t.Errorf("to %s (-want +got):\n%s", c.version, diff)
		}
	}
}

// An error of a method names the object.
func TestAddSpoke_Error(t *testing.T) {
	_, err := registry(t).Convert(t.Context(), []byte(`{"apiVersion":"example.com/v1","kind":"Server","metadata":{"name":"x"},"hostPort":"localhost"}`),
		schema.GroupVersion{Group: "example.com", Version: "v2"})
	if want := "cannot convert Server x from example.com/v1 to example.com/v2: EOF"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func Example() {
	reg := registry(&testing.T{})
	got, err := reg.Convert(context.Background(), []byte(`{"apiVersion":"example.com/v1","kind":"Server","metadata":{},"hostPort":"localhost 80"}`),
		schema.GroupVersion{Group: "example.com", Version: "v2"})
	fmt.Println(string(got), err)
	// Output: {"apiVersion":"example.com/v2","kind":"Server","metadata":{},"host":"localhost","port":80} <nil>
}
