package lossless_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/crdkit/crdkit/conversion"
	"github.com/crdkit/crdkit/conversion/lossless"
	"github.com/crdkit/crdkit/test/expect"
)

// note returns an annotation with differences, plain or compressed.
func note(differences string, compressed bool) string {
	if !compressed {
		return `{"spoke":"v1beta1","hub":"v1","of":"x","lost":` + differences + `}`
	}
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write([]byte(differences))
	_ = w.Close()
	return `{"spoke":"v1beta1","hub":"v1","of":"x","gzip":"` + base64.StdEncoding.EncodeToString(b.Bytes()) + `"}`
}

// planted returns an annotation whose difference is an annotation.
func planted(compressed bool) string {
	value, err := json.Marshal(note(`[]`, compressed))
	if err != nil {
		panic(err)
	}
	return note(fmt.Sprintf(`[{"path":["metadata","annotations",%q],"value":%s}]`, lossless.Annotation, value), compressed)
}

// An annotation in the annotation neither blocks nor stays.
func TestRestore_AnnotationInAnnotation(t *testing.T) {
	for _, compressed := range []bool{false, true} {
		b := &oldBackup{TypeMeta: metav1.TypeMeta{APIVersion: beta.String(), Kind: "Backup"}}
		b.Annotations = map[string]string{lossless.Annotation: planted(compressed)}
		b.Spec.Target = "shop"
		got, done := &backup{}, make(chan error, 1)
		go func() { done <- b.ConvertTo(got) }()
		select {
		case err := <-done:
			if err != nil || len(got.Annotations) > 0 || got.Spec.Bucket != "shop" {
				t.Errorf("got %v, %v", got, err)
			}
		case <-time.After(10 * time.Second):
			t.Fatal("ConvertTo does not return")
		}
	}
}

// The same for the registry, where an annotation with the hash of the spoke may add to the spoke.
func TestLossless_AnnotationInAnnotation(t *testing.T) {
	b := read(t, rich)
	var valid map[string]any
	expect.NoError(t, json.Unmarshal([]byte(b.Annotations[lossless.Annotation]), &valid))
	b.Annotations[lossless.Annotation] = strings.Replace(planted(false), `"of":"x"`, fmt.Sprintf(`"of":%q`, valid["of"]), 1)
	text, err := json.Marshal(b)
	expect.NoError(t, err)
	hub, err := registry(t).Convert(t.Context(), text, v1)
	if err != nil || strings.Contains(string(hub), lossless.Annotation) {
		t.Errorf("got %s, %v", hub, err)
	}
}

// exposed shows the bucket only by an annotation: "internal" reads as "public".
type exposed struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
}

func (*exposed) DeepCopyObject() runtime.Object { panic("conversion must not copy") }

func exposedToHub(_ context.Context, in *exposed, out *backup) error {
	out.Spec.Bucket = "private"
	if in.Annotations["exposed"] == "true" {
		out.Spec.Bucket = "public"
	}
	delete(out.Annotations, "exposed")
	return nil
}

func exposedFromHub(_ context.Context, in *backup, out *exposed) error {
	if out.Annotations == nil {
		out.Annotations = map[string]string{}
	}
	out.Annotations["exposed"] = fmt.Sprint(in.Spec.Bucket != "private")
	return nil
}

// An annotation that ConvertFrom always writes is a field of the spoke: removing it is an edit.
func TestRestore_RemovedAnnotation(t *testing.T) {
	s := runtime.NewScheme()
	s.AddKnownTypeWithName(beta.WithKind("Backup"), &exposed{})
	s.AddKnownTypeWithName(v1.WithKind("Backup"), &backup{})
	reg := conversion.NewRegistry(s)
	expect.NoError(t, conversion.AddSpoke(reg, exposedToHub, exposedFromHub))
	expect.NoError(t, conversion.Lossless(reg, beta.WithKind("Backup")))
	text, err := reg.Convert(t.Context(), []byte(`{"apiVersion":"example.com/v1","kind":"Backup","metadata":{"name":"nightly"},"spec":{"bucket":"internal"}}`), beta)
	expect.NoError(t, err)
	for _, removed := range []bool{false, true} {
		in, want := &exposed{}, "internal"
		expect.NoError(t, json.Unmarshal(text, in))
		if removed {
			delete(in.Annotations, "exposed")
			want = "private"
		}
		edited, err := json.Marshal(in)
		expect.NoError(t, err)
		text, err := reg.Convert(t.Context(), edited, v1)
		expect.NoError(t, err)
		byRegistry, got := &backup{}, &backup{}
		expect.NoError(t, json.Unmarshal(text, byRegistry))
		in.ObjectMeta.DeepCopyInto(&got.ObjectMeta)
		expect.NoError(t, exposedToHub(t.Context(), in, got))
		expect.NoError(t, lossless.RestoreFunc(t.Context(), in, got, exposedToHub, exposedFromHub))
		if got.Spec.Bucket != want || byRegistry.Spec.Bucket != want {
			t.Errorf("removed %v: got %q and from the registry %q, want %q", removed, got.Spec.Bucket, byRegistry.Spec.Bucket, want)
		}
	}
}

// A field that only a copy of the hub shows is restored, also if the object has a copy already.
func TestHubCopy_EditedSpoke(t *testing.T) {
	for _, already := range []bool{false, true} {
		b := read(t, rich)
		b.Spec.Target = "shop/files"
		if already {
			b.Annotations[stored] = `{}`
		}
		got := &backup{}
		expect.NoError(t, b.ConvertTo(got))
		if !got.Spec.Encrypt || got.Spec.Path != "files" || len(got.Annotations) > 0 {
			t.Errorf("already %v: got %v", already, got)
		}
	}
}

// An annotation cannot plant a copy of the hub.
func TestHubCopy_InAnnotation(t *testing.T) {
	b := read(t, rich)
	b.Annotations[lossless.Annotation] = note(fmt.Sprintf(`[{"path":["metadata","annotations",%q],"value":"{}"}]`, stored), false)
	got := &backup{}
	if expect.NoError(t, b.ConvertTo(got)); len(got.Annotations) > 0 {
		t.Errorf("got %v", got.Annotations)
	}
}

// Without an apiVersion of the hub, differences of another hub are found by their fields.
func TestRestore_HubWithoutVersion(t *testing.T) {
	b := read(t, rich)
	b.Annotations[lossless.Annotation] = strings.Replace(note(`[{"path":["spec","cipher"],"value":"aes"}]`, false), `"v1"`, `"v1alpha1"`, 1)
	for _, opts := range [][]lossless.Option{nil, {byName}} {
		got := &backup{}
		err := lossless.RestoreFunc(t.Context(), b, got, toHub, fromHub, opts...)
		var invalid *field.Error
		if !errors.As(err, &invalid) || !strings.Contains(err.Error(), "v1alpha1") {
			t.Errorf("got %v, %v", got, err)
		}
	}
}

// A ConvertFrom that fails does not blame the annotation.
func TestRestore_ConvertFromFails(t *testing.T) {
	fails := errors.New("no way")
	b, got := read(t, rich), &backup{}
	err := lossless.RestoreFunc(t.Context(), b, got, toHub, func(context.Context, *backup, *oldBackup) error { return fails }, byName)
	if !errors.Is(err, fails) || strings.Contains(err.Error(), "Invalid value") {
		t.Errorf("got %v", err)
	}
}
