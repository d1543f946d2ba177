package recipes_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crdkit/crdkit/conversion"
	v1 "github.com/crdkit/crdkit/interop/controllerruntime/moving/api/v1"
	"github.com/crdkit/crdkit/interop/controllerruntime/moving/api/v1beta1"
	"github.com/crdkit/crdkit/interop/controllerruntime/moving/recipes/config/crd"
	"github.com/crdkit/crdkit/interop/controllerruntime/moving/step3"
	"github.com/crdkit/crdkit/roundtrip"
	"github.com/crdkit/crdkit/schema/apiservertest"
	"github.com/crdkit/crdkit/test/controlplane"
	"github.com/crdkit/crdkit/test/expect"
	"github.com/crdkit/crdkit/webhook/registration"
	"github.com/crdkit/crdkit/webhook/replica"
)

func newScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	s.AddKnownTypes(v1.GroupVersion, &v1.Backup{}, &v1.BackupList{})
	s.AddKnownTypes(v1beta1.GroupVersion, &v1beta1.Backup{}, &v1beta1.BackupList{})
	metav1.AddToGroupVersion(s, v1.GroupVersion)
	metav1.AddToGroupVersion(s, v1beta1.GroupVersion)
	return s
}

// hooks declares the webhooks of the operator, at the place that the option names.
func hooks(place registration.Option) (*registration.Webhooks, error) {
	reg, err := step3.Registry(newScheme())
	if err != nil {
		return nil, err
	}
	return registration.New("backup-operator", place,
		registration.CRDs(crd.Backups),
		registration.Conversion("/convert", conversion.NewHandler(reg)))
}

func TestDefinitions_Embedded(t *testing.T) {
	reg, err := step3.Registry(newScheme())
	expect.NoError(t, err)
	roundtrip.Test(t, reg, roundtrip.CRD(crd.Backups))

	hooks, err := hooks(registration.Service("backup-system", "backup-operator"))
	expect.NoError(t, err)
	server := apiservertest.Start(t, apiservertest.Webhooks(hooks))
	reads(t, server.Config())
}

// serveHere serves the webhooks in the process of a test, to a real API server on this machine.
func serveHere(t *testing.T, cfg *rest.Config) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	hooks, err := hooks(registration.URL("https://" + listener.Addr().String()))
	if err != nil {
		return err
	}
	manifests, err := hooks.Manifests(nil)
	if err != nil {
		return err
	}
	if err := create(t.Context(), cfg, manifests); err != nil {
		return err
	}
	go func() {
		if err := replica.Run(t.Context(), cfg, listener, hooks); err != nil {
			t.Error(err)
		}
	}()
	return nil
}

// create creates the objects of manifests.
func create(ctx context.Context, cfg *rest.Config, manifests []byte) error {
	k8sClient, err := client.New(cfg, client.Options{})
	if err != nil {
		return err
	}
	for documents := yaml.NewYAMLToJSONDecoder(bytes.NewReader(manifests)); ; {
		obj := &unstructured.Unstructured{}
		if err := documents.Decode(&obj.Object); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if obj.Object == nil {
			continue // before the first ---
		}
		if err := k8sClient.Create(ctx, obj); err != nil {
			return err
		}
	}
}

func TestServeHere_RealServer(t *testing.T) {
	cp := controlplane.ForTest(t)
	expect.NoError(t, serveHere(t, cp.Config()))
	reads(t, cp.Config())
}

// reads writes a Backup in v1beta1, and reads it in v1.
func reads(t *testing.T, cfg *rest.Config) {
	t.Helper()
	k8sClient, err := client.New(cfg, client.Options{Scheme: newScheme()})
	expect.NoError(t, err)
	beta := &v1beta1.Backup{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "nightly"}, Spec: v1beta1.BackupSpec{Target: "shop/db", Keep: 7}}
	for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		if err = k8sClient.Create(t.Context(), beta); err == nil || time.Now().After(end) {
			break // until the API server trusts the CA
		}
	}
	expect.NoError(t, err)
	var backup v1.Backup
	expect.NoError(t, k8sClient.Get(t.Context(), client.ObjectKeyFromObject(beta), &backup))
	if diff := cmp.Diff(v1.BackupSpec{Bucket: "shop", Path: "db", Keep: 7}, backup.Spec); diff != "" {
		t.Errorf("Backup nightly: spec (-want +got):\n%s", diff)
	}
}

func TestConversion_WithoutAdapter(t *testing.T) {
	reg := conversion.NewRegistry(newScheme())
	err := conversion.AddSpoke(reg,
		func(_ context.Context, in *v1beta1.Backup, out *v1.Backup) error { return in.ConvertTo(out) },
		func(_ context.Context, in *v1.Backup, out *v1beta1.Backup) error { return out.ConvertFrom(in) })
	expect.NoError(t, err)
	definition, err := os.ReadFile("config/crd/bases/example.com_backups.yaml")
	expect.NoError(t, err)
	roundtrip.Test(t, reg, roundtrip.CRD(definition),
		roundtrip.SkipLaw(roundtrip.Annotations, "the methods refuse an annotation that is not JSON, as cluster-api's do"),
		roundtrip.Normalize("v1beta1 keeps the whole hub object in an annotation", func(b *v1beta1.Backup) {
			if delete(b.Annotations, "cluster.x-k8s.io/conversion-data"); len(b.Annotations) == 0 {
				b.Annotations = nil
			}
		}))
}
