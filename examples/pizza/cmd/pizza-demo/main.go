// Command pizza-demo shows the pizza operator on a real control plane: each
// command, what it prints, and whether that is what it should. `make demo` runs it.
package main

import (
	"flag"
	"os"

	"github.com/crdkit/crdkit/examples/internal/show"
	"github.com/crdkit/crdkit/examples/pizza/internal/walkthrough"
	"github.com/crdkit/crdkit/internal/testing/controlplane"
)

func main() {
	operator := flag.String("operator", "", "The `path` of the pizza-operator binary.")
	keep := flag.Bool("keep", false, "Leave everything running at the end, until interrupted.")
	flag.Parse()
	show.Demo(*keep, func(cp *controlplane.ControlPlane) (show.Walkthrough, error) {
		return walkthrough.Open(cp, *operator, os.Stdout)
	})
}
