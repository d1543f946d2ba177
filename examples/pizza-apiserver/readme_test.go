package apiserver_test

import (
	"testing"

	"github.com/crdkit/crdkit/internal/testing/mdtest"
)

func TestReadme_CodeIsCompiled(t *testing.T) {
	mdtest.Read(t, "README.md").GoIsIn(t, ".")
}
