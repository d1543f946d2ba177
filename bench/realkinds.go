package main

import (
	"context"
	"encoding/json"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	peer "k8s.io/apimachinery/pkg/api/apitesting/roundtrip"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	kubeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"sigs.k8s.io/yaml"

	"github.com/crdkit/crdkit/conversion"
	"github.com/crdkit/crdkit/roundtrip"
	"github.com/crdkit/crdkit/test/typecrd"
)

// workers is a kind with one pod template.
type workers struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`
	Spec              corev1.PodTemplateSpec `json:"spec,omitzero"`
}

func (w *workers) DeepCopyObject() runtime.Object {
	return &workers{w.TypeMeta, *w.ObjectMeta.DeepCopy(), *w.Spec.DeepCopy()}
}

// podObjects is a tenth of the objects of a default run.
const podObjects = 1000

// podTemplates compares the objects per second of a round trip between two versions with a definition, and
// of the round-trip test of k8s.io/apimachinery for the same Go type. Our side makes objects that the
// API server accepts, with its defaults, and converts each of them twice.
func (b bench) podTemplates(t *testing.T) {
	kind := kubeschema.GroupKind{Group: "example.com", Kind: "Workers"}
	reg, s := identity(t, kind), runtime.NewScheme()
	s.AddKnownTypeWithName(kind.WithVersion("v1"), &workers{})
	codecs := serializer.NewCodecFactory(s)
	options := []roundtrip.Option{
		roundtrip.CRD(typecrd.Of(kind, reflect.TypeFor[workers](), "v1alpha1", "v1")),
		roundtrip.Seed(1), roundtrip.Iterations(podObjects / 2), // on each of two paths
	}
	for _, law := range []roundtrip.Law{
		roundtrip.Partial, roundtrip.Edited, roundtrip.Annotations, roundtrip.Determinism,
		roundtrip.InputUntouched, roundtrip.Aliasing, roundtrip.Defaulting, roundtrip.Acceptance,
	} {
		options = append(options, roundtrip.SkipLaw(law, "the peer does not check it"))
	}
	source := rand.NewSource(1)
	filler := fuzzer.FuzzerFor(metafuzzer.Funcs, source, codecs)
	*peer.FuzzIters = podObjects
	each := func(test func(t *testing.T)) func() {
		return func() {
			if !t.Run("", test) {
				t.FailNow()
			}
		}
	}
	b.compare("roundtrip/objects",
		each(func(t *testing.T) { roundtrip.Test(t, reg, options...) }),
		each(func(t *testing.T) { peer.RoundTripExternalTypesWithoutProtobuf(t, s, codecs, filler, nil) }),
		func(ours, theirs float64) float64 { return theirs / ours })
}

// identity returns conversions that change nothing between two versions of a kind.
func identity(t *testing.T, kind kubeschema.GroupKind) *conversion.Registry {
	reg := conversion.NewRegistry(runtime.NewScheme())
	same := func(_ context.Context, in, out *unstructured.Unstructured) error {
		for _, name := range []string{"spec", "status", "data"} {
			if v, ok := in.Object[name]; ok {
				out.Object[name] = runtime.DeepCopyJSONValue(v)
			}
		}
		return nil
	}
	if err := conversion.AddUnstructuredSpoke(reg, kind.WithVersion("v1alpha1"), "v1", same, same); err != nil {
		t.Fatal(err)
	}
	return reg
}

// realKinds prints the seconds of CPU time that the default run takes for kinds of public projects, with a
// conversion that changes nothing, and then the largest of them.
func realKinds(t *testing.T) {
	slowest := 0.0
	const monitoring = "github.com/prometheus-operator/prometheus-operator@v0.85.0"
	for _, k := range []struct{ module, file, version string }{
		{monitoring, "example/prometheus-operator-crd/monitoring.coreos.com_prometheuses.yaml", "v1"},
		{"sigs.k8s.io/kueue@v0.15.0", "config/components/crd/bases/kueue.x-k8s.io_workloads.yaml", "v1beta1"},
		{"sigs.k8s.io/cluster-api@v1.14.2", "controlplane/kubeadm/config/crd/bases/controlplane.cluster.x-k8s.io_kubeadmcontrolplanes.yaml", "v1beta2"},
		{"sigs.k8s.io/cluster-api@v1.14.2", "core/config/crd/bases/cluster.x-k8s.io_clusters.yaml", "v1beta2"},
		{monitoring, "example/prometheus-operator-crd/monitoring.coreos.com_alertmanagers.yaml", "v1"},
		{"github.com/kserve/kserve@v0.15.2", "config/crd/full/serving.kserve.io_inferenceservices.yaml", "v1beta1"},
		{monitoring, "example/prometheus-operator-crd/monitoring.coreos.com_alertmanagerconfigs.yaml", "v1alpha1"},
		{"knative.dev/serving@v0.46.0", "config/core/300-resources/service.yaml", "v1"},
	} {
		kind, crd := twoVersions(t, k.module, k.file, k.version)
		reg := identity(t, kind)
		before := cpu()
		if !t.Run(kind.Kind, func(t *testing.T) {
			roundtrip.Test(t, reg, roundtrip.CRD(crd), roundtrip.Seed(1))
		}) {
			t.FailNow()
		}
		seconds := (cpu() - before).Seconds()
		slowest = max(slowest, seconds)
		ratio("roundtrip/real/"+kind.Kind, seconds)
	}
	ratio("roundtrip/real", slowest)
}

// twoVersions returns a definition of a module of the Go module proxy, in which two versions have the
// schema of one of its versions.
func twoVersions(t *testing.T, module, file, version string) (kubeschema.GroupKind, []byte) {
	cmd := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", module)
	cmd.Dir = t.TempDir() // outside of this module
	out, err := cmd.Output()
	var m struct{ Dir string }
	if err != nil || json.Unmarshal(out, &m) != nil {
		t.Fatalf("%s: %v\n%s", module, err, out)
	}
	text, err := os.ReadFile(filepath.Join(m.Dir, file))
	if err != nil {
		t.Fatal(err)
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.Unmarshal(text, crd); err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == version })
	if i < 0 {
		t.Fatalf("%s has no version %s", file, version)
	}
	older, newer := crd.Spec.Versions[i], crd.Spec.Versions[i]
	older.Name, older.Storage, newer.Name, newer.Storage = "v1alpha1", false, "v1", true
	crd.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{older, newer}
	crd.Status = apiextensionsv1.CustomResourceDefinitionStatus{}
	if text, err = yaml.Marshal(crd); err != nil {
		t.Fatal(err)
	}
	return kubeschema.GroupKind{Group: crd.Spec.Group, Kind: crd.Spec.Names.Kind}, text
}
