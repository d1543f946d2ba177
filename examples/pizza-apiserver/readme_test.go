package apiserver_test

import (
	"testing"

	"github.com/crdkit/crdkit/test/mdtest"
)

func TestReadme_CodeIsCompiled(t *testing.T) {
	mdtest.Read(t, "README.md").GoIsIn(t, ".")
}
