package lossless_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdkit/crdkit/conversion"
	"github.com/crdkit/crdkit/conversion/lossless"
	"github.com/crdkit/crdkit/test/expect"
)

// hub is the argument of controller-runtime's methods.
type hub interface {
	runtime.Object
	Hub()
}

type backup struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              struct {
		Bucket string `json:"bucket,omitempty"`
		Path   string `json:"path,omitempty"`
		// Encrypt, and the retries of a step, are not in v1beta1.
		Encrypt bool   `json:"encrypt,omitempty"`
		Steps   []step `json:"steps,omitempty"`
	} `json:"spec,omitempty"`
}

type step struct {
	Name    string `json:"name"`
	Command string `json:"command,omitempty"`
	Retries int    `json:"retries,omitempty"`
}

func (*backup) Hub()                             {}
func (b *backup) DeepCopyObject() runtime.Object { panic("conversion must not copy") }

type oldBackup struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              struct {
		Target string    `json:"target,omitempty"`
		Steps  []oldStep `json:"steps,omitempty"`
	} `json:"spec,omitempty"`
}

type oldStep struct {
	Name    string `json:"name"`
	Command string `json:"command,omitempty"`
}

func (b *oldBackup) DeepCopyObject() runtime.Object { panic("conversion must not copy") }

// The functions of the registry.

func toHub(_ context.Context, in *oldBackup, out *backup) error {
	var ok bool
	if out.Spec.Bucket, out.Spec.Path, ok = strings.Cut(in.Spec.Target, "/"); ok && out.Spec.Path == "" {
		return errors.New("spec.target: the path is empty")
	}
	for _, s := range in.Spec.Steps {
		out.Spec.Steps = append(out.Spec.Steps, step{Name: s.Name, Command: s.Command})
	}
	return nil
}

func fromHub(_ context.Context, in *backup, out *oldBackup) error {
	out.Spec.Target = in.Spec.Bucket
	if in.Spec.Path != "" {
		out.Spec.Target += "/" + in.Spec.Path
	}
	for _, s := range in.Spec.Steps {
		out.Spec.Steps = append(out.Spec.Steps, oldStep{s.Name, s.Command})
	}
	return nil
}

const stored = "example.com/stored"

var byName = lossless.ListMapKeys([]byte(definition))

// ConvertTo and ConvertFrom are the methods of the operator that has left crdkit: they store the hub in
// an annotation, as cluster-api's do.

func (b *oldBackup) ConvertTo(dst hub) error {
	out := dst.(*backup)
	b.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	if err := toHub(context.Background(), b, out); err != nil {
		return err
	}
	if data, ok := b.Annotations[stored]; ok {
		var whole backup
		if err := json.Unmarshal([]byte(data), &whole); err != nil {
			return err
		}
		out.Spec.Encrypt = whole.Spec.Encrypt
		delete(out.Annotations, stored)
	}
	opts := []lossless.Option{lossless.HubCopy(stored), byName}
	if b.Kind == "" {
		opts = opts[:1] // byName needs the kind
	}
	return lossless.Restore(b, dst, opts...)
}

func (b *oldBackup) ConvertFrom(src hub) error {
	in := src.(*backup)
	in.ObjectMeta.DeepCopyInto(&b.ObjectMeta)
	data, err := json.Marshal(in)
	if err != nil {
		return err
	}
	if b.Annotations == nil {
		b.Annotations = map[string]string{}
	}
	b.Annotations[stored] = string(data)
	return fromHub(context.Background(), in, b)
}

var (
	beta = schema.GroupVersion{Group: "example.com", Version: "v1beta1"}
	v1   = schema.GroupVersion{Group: "example.com", Version: "v1"}
)

func registry(t testing.TB) *conversion.Registry {
	t.Helper()
	s := runtime.NewScheme()
	s.AddKnownTypeWithName(beta.WithKind("Backup"), &oldBackup{})
	s.AddKnownTypeWithName(v1.WithKind("Backup"), &backup{})
	reg := conversion.NewRegistry(s)
	expect.NoError(t, conversion.AddSpoke(reg, toHub, fromHub))
	expect.NoError(t, conversion.Lossless(reg, beta.WithKind("Backup"), byName))
	return reg
}

// read returns a Backup as a client reads it in v1beta1 from an operator with crdkit.
func read(t testing.TB, spec string) *oldBackup {
	t.Helper()
	text, err := registry(t).Convert(t.Context(), []byte(`{"apiVersion":"example.com/v1","kind":"Backup","metadata":{"name":"nightly","namespace":"default"},"spec":`+spec+`}`), beta)
	expect.NoError(t, err)
	b := &oldBackup{}
	expect.NoError(t, json.Unmarshal(text, b))
	return b
}

const rich = `{"bucket":"shop","path":"db","encrypt":true,"steps":[{"name":"dump","command":"pg_dump","retries":3},{"name":"copy","retries":5}]}`

// Objects that clients have read before are whole afterwards, whatever the clients have edited.
func TestRestore_FromConvertTo(t *testing.T) {
	for name, c := range map[string]struct {
		edit func(*oldBackup)
		want string
	}{
		"unedited":    {func(*oldBackup) {}, rich},
		"a field":     {func(b *oldBackup) { b.Spec.Target = "shop/files" }, strings.Replace(rich, `"db"`, `"files"`, 1)},
		"a new name":  {func(b *oldBackup) { b.Spec.Steps[1].Name = "move" }, strings.Replace(rich, `{"name":"copy","retries":5}`, `{"name":"move"}`, 1)},
		"no metadata": {func(b *oldBackup) { b.TypeMeta = metav1.TypeMeta{} }, rich},
	} {
		b := read(t, rich)
		c.edit(b)
		before, err := json.Marshal(b)
		expect.NoError(t, err)
		got := &backup{}
		if err := b.ConvertTo(got); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		want := &backup{}
		expect.NoError(t, json.Unmarshal([]byte(c.want), &want.Spec))
		want.Name, want.Namespace = "nightly", "default"
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if after, err := json.Marshal(b); err != nil || string(after) != string(before) {
			t.Errorf("%s: the spoke became %s, %v", name, after, err)
		}
	}
}

// An object without the annotation is not touched, and costs little.
func TestRestore_NoAnnotation(t *testing.T) {
	b, got := &oldBackup{}, &backup{}
	expect.NoError(t, b.ConvertTo(got))
	allocations := testing.AllocsPerRun(10, func() { expect.NoError(t, lossless.Restore(b, hub(got), byName)) })
	if diff := cmp.Diff(&backup{}, got); diff != "" || allocations > 20 {
		t.Errorf("%v allocations (-want +got):\n%s", allocations, diff)
	}
}

// A map of annotations that ConvertTo shares with its receiver stays as it is.
func TestRestore_SharedMap(t *testing.T) {
	b := read(t, rich)
	got := &backup{ObjectMeta: b.ObjectMeta}
	expect.NoError(t, toHub(t.Context(), b, got))
	expect.NoError(t, lossless.Restore(b, hub(got), byName))
	if _, ok := b.Annotations[lossless.Annotation]; !ok || got.Annotations != nil || !got.Spec.Encrypt {
		t.Errorf("the spoke has %v, the hub %v", b.Annotations, got)
	}
}

func TestRestore_InvalidAnnotation(t *testing.T) {
	for name, c := range map[string]struct {
		annotation, want string
	}{
		"another spoke": {`{"spoke":"v1alpha1","hub":"v1","of":"x","lost":[]}`, `recorded for version "v1alpha1" and hub "v1", expected version "v1beta1" and another hub`},
		"another hub":   {`{"spoke":"v1beta1","hub":"v2","of":"x","lost":[]}`, `recorded for the hub "v2": expected the hub "v1"`},
	} {
		b := read(t, rich)
		b.Annotations[lossless.Annotation] = c.annotation
		got := &backup{TypeMeta: metav1.TypeMeta{APIVersion: "example.com/v1", Kind: "Backup"}}
		b.ObjectMeta.DeepCopyInto(&got.ObjectMeta)
		err := lossless.Restore(b, hub(got), byName)
		if want := "Backup default/nightly: metadata.annotations[conversion.crdkit.github.io/lost]: Invalid value: "; err == nil || !strings.HasPrefix(err.Error(), want) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %s%s", name, err, want, c.want)
		}
		if got.Annotations[lossless.Annotation] != "" {
			t.Errorf("%s: the hub has the annotation", name)
		}
	}
}

// A mistake of the caller does not blame the annotation, and is found without one.
func TestOptions_Mistakes(t *testing.T) {
	for want, opt := range map[string]lossless.Option{
		`Backup default/nightly: no CustomResourceDefinition found`: lossless.ListMapKeys(nil),
		`Backup default/nightly: no CustomResourceDefinition has a schema of Backup.example.com in any version`: lossless.ListMapKeys([]byte(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: others.example.com}
spec: {group: example.com, names: {kind: Other, plural: others}, scope: Namespaced, versions: [{name: v1, schema: {openAPIV3Schema: {type: object}}}]}
`)),
	} {
		for _, annotated := range []bool{true, false} {
			b, got := read(t, rich), &backup{}
			if !annotated {
				b.Annotations = nil
			}
			if err := lossless.Restore(b, hub(got), opt); err == nil || err.Error() != want {
				t.Errorf("annotated %v: got %v, want %s", annotated, err, want)
			}
		}
	}
}

// DropInvalidAnnotation converts the object without the annotation.
func TestRestore_DropInvalidAnnotation(t *testing.T) {
	b := read(t, rich)
	b.Annotations[lossless.Annotation] = "{"
	got := &backup{TypeMeta: metav1.TypeMeta{APIVersion: "example.com/v1", Kind: "Backup"}}
	b.ObjectMeta.DeepCopyInto(&got.ObjectMeta)
	expect.NoError(t, toHub(t.Context(), b, got))
	want := *got
	want.Annotations = nil
	expect.NoError(t, lossless.Restore(b, hub(got), byName, lossless.DropInvalidAnnotation()))
	if diff := cmp.Diff(&want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// VerifyRestored sees the whole hub, also if only the annotation tells its version.
func TestRestore_VerifyRestored(t *testing.T) {
	refused := errors.New("no retries")
	for _, apiVersion := range []string{"example.com/v1", ""} {
		b := read(t, rich)
		got, seen := &backup{TypeMeta: metav1.TypeMeta{APIVersion: apiVersion, Kind: "Backup"}}, &backup{}
		b.ObjectMeta.DeepCopyInto(&got.ObjectMeta)
		expect.NoError(t, toHub(t.Context(), b, got))
		err := lossless.Restore(b, hub(got), byName, lossless.VerifyRestored(func(_ context.Context, text []byte) error {
			expect.NoError(t, json.Unmarshal(text, seen))
			return refused
		}))
		if want := "metadata.annotations[conversion.crdkit.github.io/lost]: Invalid value: no retries"; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
		want := &backup{TypeMeta: metav1.TypeMeta{APIVersion: "example.com/v1", Kind: "Backup"}}
		expect.NoError(t, json.Unmarshal([]byte(rich), &want.Spec))
		want.Name, want.Namespace = "nightly", "default"
		if diff := cmp.Diff(want, seen); diff != "" {
			t.Errorf("apiVersion %q (-want +got):\n%s", apiVersion, diff)
		}
	}
}

func TestListMapKeys_UnknownKind(t *testing.T) {
	b := read(t, rich)
	b.TypeMeta = metav1.TypeMeta{}
	err := lossless.Restore(b, hub(&backup{}), byName)
	if want := "oldBackup default/nightly: no CustomResourceDefinition has a schema of an object without apiVersion and kind in any version"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// A context that is done does not blame the annotation.
func TestRestoreFunc_ContextDone(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	b, got := read(t, rich), &backup{}
	b.Spec.Target = "shop/files"
	fails := func(ctx context.Context, _ *oldBackup, _ *backup) error { return ctx.Err() }
	err := lossless.RestoreFunc(ctx, b, got, fails, fromHub, byName)
	if !errors.Is(err, context.Canceled) || strings.Contains(err.Error(), "remove") {
		t.Errorf("got %v", err)
	}
}

const definition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: backups.example.com}
spec:
  group: example.com
  names: {kind: Backup, plural: backups, singular: backup, listKind: BackupList}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {steps: {
      type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name], items: {type: object, properties: {name: {type: string}}}}}}}}}
`

func TestListMapKeys_Definition(t *testing.T) {
	for _, apiVersion := range []string{"example.com/v1", ""} {
		b := read(t, rich)
		b.Spec.Steps[0], b.Spec.Steps[1] = b.Spec.Steps[1], b.Spec.Steps[0]
		b.Spec.Steps[0].Command, b.Spec.Steps[1].Command = "cp", "dump.sh"
		got := &backup{TypeMeta: metav1.TypeMeta{APIVersion: apiVersion, Kind: "Backup"}}
		b.ObjectMeta.DeepCopyInto(&got.ObjectMeta)
		expect.NoError(t, toHub(t.Context(), b, got))
		expect.NoError(t, lossless.RestoreFunc(t.Context(), b, got, toHub, fromHub, byName))
		if diff := cmp.Diff([]step{{"copy", "cp", 5}, {"dump", "dump.sh", 3}}, got.Spec.Steps); diff != "" {
			t.Errorf("apiVersion %q (-want +got):\n%s", apiVersion, diff)
		}
	}
}

// FuzzRestore reads arbitrary annotations, and edited objects: the registry does the same, and so do
// methods that call Restore.
func FuzzRestore(f *testing.F) {
	reg := registry(f)
	b := read(f, rich)
	f.Add(b.Annotations[lossless.Annotation], "shop/db", "dump")
	f.Add(b.Annotations[lossless.Annotation], "shop/", "copy")
	f.Add(`{"spoke":"v1beta1","hub":"v1","of":"","lost":[{"path":["spec","path"],"value":"x"}]}`, "shop", "")
	f.Add(`{"spoke":"v1beta1","hub":"v1","of":"","gzip":"H4sIAAAAAAAA/4uOBQApu0wNAgAAAA=="}`, "shop", "")
	f.Add(planted(false), "shop", "")
	f.Add(planted(true), "shop", "")
	f.Fuzz(func(t *testing.T, annotation, target, name string) {
		b := &oldBackup{TypeMeta: metav1.TypeMeta{APIVersion: beta.String(), Kind: "Backup"}}
		b.Name, b.Annotations = "nightly", map[string]string{lossless.Annotation: annotation}
		b.Spec.Target, b.Spec.Steps = target, []oldStep{{Name: name}, {Name: "copy"}}
		text, err := json.Marshal(b)
		expect.NoError(t, err)
		expect.NoError(t, json.Unmarshal(text, b)) // as the API server sends it
		want, wantErr := reg.Convert(t.Context(), text, v1)
		got := &backup{TypeMeta: metav1.TypeMeta{APIVersion: v1.String(), Kind: "Backup"}}
		b.ObjectMeta.DeepCopyInto(&got.ObjectMeta)
		gotErr := toHub(t.Context(), b, got)
		if gotErr == nil {
			gotErr = lossless.RestoreFunc(t.Context(), b, got, toHub, fromHub, byName)
		}
		byMethod := &backup{TypeMeta: got.TypeMeta}
		if err := b.ConvertTo(byMethod); (err == nil) != (gotErr == nil) || err == nil && byMethod.Annotations[lossless.Annotation] != "" {
			t.Fatalf("by method: got %v, %v, want %v", byMethod.Annotations, err, gotErr)
		}
		if (wantErr == nil) != (gotErr == nil) {
			t.Fatalf("got %v, want %v", gotErr, wantErr)
		}
		if gotErr != nil {
			return
		}
		wanted := &backup{}
		expect.NoError(t, json.Unmarshal(want, wanted))
		if diff := cmp.Diff(wanted, got); diff != "" {
			t.Fatalf("(-registry +decoder):\n%s", diff)
		}
		if diff := cmp.Diff(wanted.Spec, byMethod.Spec); diff != "" {
			t.Fatalf("(-registry +decoder by method):\n%s", diff)
		}
	})
}

// The operator has left crdkit. A user edits what was read before, and the hidden field is kept.
func ExampleRestore() {
	var old oldBackup
	err := json.Unmarshal([]byte(`{"apiVersion":"example.com/v1beta1","kind":"Backup","metadata":{"name":"nightly","annotations":{
		"conversion.crdkit.github.io/lost":"{\"spoke\":\"v1beta1\",\"hub\":\"v1\",\"of\":\"x\",\"lost\":[{\"path\":[\"spec\",\"encrypt\"],\"value\":true}]}"}},
		"spec":{"target":"shop/files"}}`), &old)
	if err != nil {
		panic(err)
	}
	var b backup
	fmt.Println(old.ConvertTo(&b), b.Spec.Bucket, b.Spec.Path, b.Spec.Encrypt, b.Annotations)
	// Output:
	// <nil> shop files true map[]
}
