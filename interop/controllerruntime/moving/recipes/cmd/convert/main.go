// Command convert serves the conversion of Backups, and nothing else, for crdcheck rehearse. Its argument is the
// address to listen on.
package main

import (
	"log"
	"net/http"
	"os"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/crdkit/crdkit/conversion"
	"github.com/crdkit/crdkit/interop/controllerruntime"
	v1 "github.com/crdkit/crdkit/interop/controllerruntime/moving/api/v1"
	"github.com/crdkit/crdkit/interop/controllerruntime/moving/api/v1beta1"
)

func main() {
	s := runtime.NewScheme()
	s.AddKnownTypes(v1.GroupVersion, &v1.Backup{})
	s.AddKnownTypes(v1beta1.GroupVersion, &v1beta1.Backup{})
	reg := conversion.NewRegistry(s)
	if err := controllerruntime.AddSpoke[*v1beta1.Backup, *v1.Backup](reg); err != nil {
		log.Fatal(err)
	}
	log.Fatal(http.ListenAndServe(os.Args[1], conversion.NewHandler(reg)))
}
