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

// TestConversion is the test in the README with which a maintainer begins. It fails, so that other tests
// can look at what it prints.
func TestConversion(t *testing.T) {
	if os.Getenv("CRDKIT_LOSSY") == "" {
		t.Skip("fails: tests that set CRDKIT_LOSSY run it")
	}
	s := runtime.NewScheme()
	utilruntime.Must(v1.AddToScheme(s))
	utilruntime.Must(v1beta1.AddToScheme(s))
	reg := conversion.NewRegistry(s)
	utilruntime.Must(controllerruntime.AddSpoke[*v1beta1.Backup, *v1.Backup](reg))
	crd, err := os.ReadFile("../config/crd/bases/example.com_backups.yaml")
	utilruntime.Must(err)
	roundtrip.Test(t, reg, roundtrip.CRD(crd))
}
