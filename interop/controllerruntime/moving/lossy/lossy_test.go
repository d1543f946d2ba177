package lossy_test

import (
	"os"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"github.com/crdkit/crdkit/conversion"
	"github.com/crdkit/crdkit/interop/controllerruntime"
	v1 "github.com/crdkit/crdkit/interop/controllerruntime/moving/api/v1"
	"github.com/crdkit/crdkit/interop/controllerruntime/moving/lossy/v1beta1"
	"github.com/crdkit/crdkit/roundtrip"
)

// TestConversion is the test in the README with which a maintainer begins.
func TestConversion(t *testing.T) {
	s := runtime.NewScheme()
	utilruntime.Must(v1.AddToScheme(s))
	utilruntime.Must(v1beta1.AddToScheme(s))
	reg := conversion.NewRegistry(s)
	utilruntime.Must(controllerruntime.AddSpoke[*v1beta1.Backup, *v1.Backup](reg)) // v1 is the hub
	crd, err := os.ReadFile("../config/crd/bases/example.com_backups.yaml")
	if err != nil {
		t.Fatal(err)
	}
	roundtrip.Test(t, reg, roundtrip.CRD(crd))
}
