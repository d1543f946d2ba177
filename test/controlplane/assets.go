package controlplane

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// ErrNoBinaries says that kube-apiserver, etcd or kubectl was not found.
var ErrNoBinaries = errors.New("no control plane binaries: run `make controlplane`, or set KUBEBUILDER_ASSETS")

// Available returns nil if there are binaries to start. Otherwise its error matches ErrNoBinaries.
func Available() error {
	_, err := findAssets()
	return err
}

const modulePath = "github.com/crdkit/crdkit"

// findAssets returns the folder that holds the three binaries. The error
// matches ErrNoBinaries and names the folder and what it lacks.
func findAssets() (string, error) {
	dir := os.Getenv("KUBEBUILDER_ASSETS")
	if dir == "" {
		root, err := moduleRoot()
		if err != nil {
			return "", fmt.Errorf("%w: %w", ErrNoBinaries, err)
		}
		dir = filepath.Join(root, "hack", "controlplane", "bin")
	}
	// The caller may change the working directory before it uses Kubectl.
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	for _, name := range []string{etcdName, apiserverName, kubectlName} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.IsDir() {
			return "", fmt.Errorf("%w: %s has no %s", ErrNoBinaries, dir, name)
		}
	}
	return dir, nil
}

// moduleRoot walks up from the working directory to the folder of crdkit's own
// go.mod, and passes over those of its nested modules.
func moduleRoot() (string, error) {
	wd, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for dir := wd; ; dir = filepath.Dir(dir) {
		gomod, _ := os.ReadFile(filepath.Join(dir, "go.mod"))
		if bytes.Contains(append([]byte("\n"), gomod...), []byte("\nmodule "+modulePath+"\n")) {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("%s is not inside the module %s", wd, modulePath)
		}
	}
}
