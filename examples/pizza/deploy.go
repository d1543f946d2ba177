package pizza

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"

	"k8s.io/client-go/rest"
)

// Namespace and Name are what the manifests call the operator: its namespace, and its
// Deployment, Service, ServiceAccount and Lease.
const (
	Namespace = "pizza-system"
	Name      = "pizza-operator"
)

//go:embed config/rbac/role.yaml config/deploy/*.yaml
var deployment embed.FS

// Deployment returns the manifests with which the operator runs in a cluster, as YAML:
// namespace, permissions, Service and Deployment. The image is that of the containers;
// empty, it is the placeholder of config/deploy.
func Deployment(image string) ([]byte, error) {
	var all []byte
	for _, name := range []string{"deploy/namespace", "rbac/role", "deploy/rbac", "deploy/service", "deploy/deployment"} {
		file, err := deployment.ReadFile("config/" + name + ".yaml")
		if err != nil {
			return nil, err
		}
		all = append(append(all, "---\n"...), file...)
	}
	if image == "" {
		return all, nil
	}
	quoted, err := json.Marshal(image) // which is YAML too
	if err != nil {
		return nil, err
	}
	placeholder := []byte("image: " + Name + ":latest\n")
	if n := bytes.Count(all, placeholder); n != 1 {
		return nil, fmt.Errorf("config/deploy has %d placeholders for the image, not one", n)
	}
	return bytes.Replace(all, placeholder, append(append([]byte("image: "), quoted...), '\n'), 1), nil
}

// Manifests returns all that a cluster needs for the operator at an endpoint, as YAML:
// [Deployment], the definitions, and the registration of the webhooks. The PEM certificates that
// the API server shall trust may be left to the operator, when it runs.
func Manifests(image string, e Endpoint, caBundle []byte) ([]byte, error) {
	deployment, err := Deployment(image)
	if err != nil {
		return nil, err
	}
	op, err := newOperator(&rest.Config{}) // which will not run
	if err != nil {
		return nil, err
	}
	hooks, err := op.declare(e)
	if err != nil {
		return nil, err
	}
	registration, err := hooks.Manifests(caBundle)
	return append(deployment, registration...), err
}
