package apiserver_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/crdkit/crdkit/examples/pizza-apiserver/internal/walkthrough"
	"github.com/crdkit/crdkit/internal/testing/mdtest"
)

// The README shows the code, and its numbers are right.
func TestReadme(t *testing.T) {
	readme := mdtest.Read(t, "README.md")
	if n := len(readme.Blocks("go")); n != 3 {
		t.Errorf("there are %d blocks of Go, not 3", n)
	}
	readme.GoIsIn(t, ".")
	for _, want := range []string{
		fmt.Sprintf(" %d steps\n", len((&walkthrough.Restaurant{}).Steps())),
		fmt.Sprintf(" %d requests ", len(exchanges)),
	} {
		if strings.Count(readme.Text, want) != 1 {
			t.Errorf("the README does not say %q once", want)
		}
	}
}
