package controlplane

import (
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/rest"
)

// Version returns what the API server says of its release, such as v1.36.3.
func (cp *ControlPlane) Version() string { return cp.version.gitVersion }

// Minor returns the minor release of the API server: 36, if Version is v1.36.3.
// All that a test may want to know of a server is whether it is old enough to lack
// something, or young enough to have it.
func (cp *ControlPlane) Minor() int { return cp.version.minor }

// release is the release of an API server.
type release struct {
	gitVersion string
	minor      int
}

// releaseOf asks an API server for its release.
func releaseOf(ctx context.Context, client rest.Interface) (release, error) {
	text, err := client.Get().AbsPath("/version").DoRaw(ctx)
	if err != nil {
		return release{}, fmt.Errorf("the version of kube-apiserver: %w", err)
	}
	return readRelease(text)
}

// readRelease reads an answer to GET /version (apimachinery/pkg/version.Info).
func readRelease(text []byte) (release, error) {
	var info struct{ GitVersion string }
	err := json.Unmarshal(text, &info)
	if err != nil {
		return release{}, fmt.Errorf("the version of kube-apiserver: %w: %.100q", err, text)
	}
	parsed, err := version.ParseGeneric(info.GitVersion)
	if err != nil {
		return release{}, fmt.Errorf("the version of kube-apiserver: %w", err)
	}
	return release{gitVersion: info.GitVersion, minor: int(parsed.Minor())}, nil
}
