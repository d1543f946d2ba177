package controlplane_test

import (
	"context"
	"fmt"
	"log"

	"github.com/crdkit/crdkit/test/controlplane"
)

// It is compiled and not run: it needs the binaries.
func ExampleStart() {
	cp, err := controlplane.Start(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	defer cp.Stop()

	kubeconfig, err := cp.Kubeconfig(cp.Config())
	if err != nil {
		log.Print(err)
		return
	}
	fmt.Println(cp.Kubectl(), "--kubeconfig", kubeconfig, "get", "namespaces")
}
