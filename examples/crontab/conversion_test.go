package crontab_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/crdkit/crdkit/conversion"
	"github.com/crdkit/crdkit/examples/crontab"
	"github.com/crdkit/crdkit/roundtrip"
)

// An object of the first release may have values that the schema refuses: either it survives a
// round trip, or the conversion refuses it, too.
var outsideToo = roundtrip.CheckLaw(roundtrip.OutsideSchema)

// Nothing checked the hostPort of the first release: README.md finds one that cannot be split, and
// fixes it.
var (
	firstRelease = roundtrip.History("config/first-release")
	noPort       = roundtrip.Refuse("a hostPort without a port cannot be split: README.md says how to fix it", func(err error) bool {
		var invalid *field.Error
		return errors.As(err, &invalid) && invalid.Field == "spec.hostPort"
	})
)

func TestConversion(t *testing.T) {
	roundtrip.Test(t, registry(t), roundtrip.CRD(read(t, "config/crd/stable.example.com_crontabs.yaml")), outsideToo, firstRelease, noPort)
}

func FuzzConversion(f *testing.F) {
	roundtrip.Fuzz(f, registry(f), roundtrip.CRD(read(f, "config/crd/stable.example.com_crontabs.yaml")), outsideToo, firstRelease, noPort)
}

// A hostPort is split and joined.
func TestConversion_HostPort(t *testing.T) {
	for hostPort, spec := range map[string]string{
		"localhost:1234":     `{"host":"localhost","port":1234}`,
		"[::1]:80":           `{"host":"[::1]","port":80}`,
		"[2001:db8::a]:8443": `{"host":"[2001:db8::a]","port":8443}`,
		":80":                `{"host":"","port":80}`,
	} {
		beta, v1 := object("v1beta1", fmt.Sprintf(`{"hostPort":%q}`, hostPort)), object("v1", spec)
		if diff := cmp.Diff(v1, convert(t, beta, "v1")); diff != "" {
			t.Errorf("%s to v1 (-want +got):\n%s", hostPort, diff)
		}
		if diff := cmp.Diff(beta, convert(t, v1, "v1beta1")); diff != "" {
			t.Errorf("%s from v1 (-want +got):\n%s", hostPort, diff)
		}
	}
}

// An error names what cannot be converted.
// Clients that read or list such objects see this: the object, the field and the value.
func TestConversion_Errors(t *testing.T) {
	const toV1 = "cannot convert CronTab default/x from stable.example.com/v1beta1 to stable.example.com/v1: "
	const fromV1 = "cannot convert CronTab default/x from stable.example.com/v1 to stable.example.com/v1beta1: "
	const advice = ": must be <host>:<port, an integer>"
	for text, want := range map[string]string{
		object("v1beta1", `{"hostPort":"localhost"}`):      toV1 + `spec.hostPort: Invalid value: "localhost"` + advice,
		object("v1beta1", `{"hostPort":"localhost:"}`):     toV1 + `spec.hostPort: Invalid value: "localhost:"` + advice,
		object("v1beta1", `{"hostPort":"localhost:http"}`): toV1 + `spec.hostPort: Invalid value: "localhost:http"` + advice,
		object("v1beta1", `{"hostPort":"localhost:080"}`):  toV1 + `spec.hostPort: Invalid value: "localhost:080"` + advice,
		object("v1beta1", `{"hostPort":""}`):               toV1 + `spec.hostPort: Invalid value: ""` + advice,
		object("v1beta1", `{"hostPort":"[::1]"}`):          toV1 + `spec.hostPort: Invalid value: "[::1]"` + advice,
		object("v1beta1", `{"hostPort":1234}`):             toV1 + `spec.hostPort: Invalid value: 1234` + advice,
		object("v1", `{"host":"localhost"}`):               fromV1 + `spec.port: Required value: needed with spec.host`,
		object("v1", `{"port":80}`):                        fromV1 + `spec.host: Required value: needed with spec.port`,
		object("v1", `{"host":"localhost","port":"http"}`): fromV1 + `spec.port: Invalid value: "http": must be <port, an integer>`,
	} {
		to := "v1"
		if strings.Contains(text, `example.com/v1"`) {
			to = "v1beta1"
		}
		out, err := registry(t).Convert(t.Context(), []byte(text), runtimeschema.GroupVersion{Group: "stable.example.com", Version: to})
		if err == nil {
			t.Errorf("%s became %s", text, out)
			continue
		}
		if diff := cmp.Diff(want, err.Error()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
}

func object(version, spec string) string {
	return `{"apiVersion":"stable.example.com/` + version + `","kind":"CronTab","metadata":{"name":"x","namespace":"default"},"spec":` + spec + `}`
}

func convert(t *testing.T, object, version string) string {
	t.Helper()
	out, err := registry(t).Convert(t.Context(), []byte(object), runtimeschema.GroupVersion{Group: "stable.example.com", Version: version})
	if err != nil {
		t.Errorf("%s: %v", object, err)
	}
	return string(out)
}

func registry(t testing.TB) *conversion.Registry {
	t.Helper()
	reg, err := crontab.NewRegistry()
	if err != nil {
		t.Fatal(err)
	}
	return reg
}

func read(t testing.TB, file string) []byte {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
