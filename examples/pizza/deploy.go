package pizza

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"

	"k8s.io/client-go/rest"
)

// Namespace is the namespace of the operator in the manifests, and Name the name of its Deployment,
// Service, ServiceAccount and Lease.
const (
	Namespace = "pizza-system"
	Name      = "pizza-operator"
)

//go:embed config/rbac/role.yaml config/deploy/*.yaml
var deployment embed.FS

// Deployment returns the namespace, permissions, Service and Deployment of the operator, as YAML.
// If the image of the containers is empty, the placeholder of config/deploy is used.
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
	quoted, err := json.Marshal(image) // JSON is YAML too
	if err != nil {
		return nil, err
	}
	placeholder := []byte("image: " + Name + ":latest\n")
	if n := bytes.Count(all, placeholder); n != 1 {
		return nil, fmt.Errorf("config/deploy has %d placeholders for the image, not one", n)
	}
	return bytes.Replace(all, placeholder, append(append([]byte("image: "), quoted...), '\n'), 1), nil
}

// Manifests returns all manifests for the operator at an endpoint, as YAML: [Deployment], the
// CustomResourceDefinitions, the registration of the webhooks, and the guard of the service account. Without
// caBundle, the PEM certificates that the API server should trust, the operator writes its own when it runs.
func Manifests(image string, e Endpoint, caBundle []byte) ([]byte, error) {
	deployment, err := Deployment(image)
	if err != nil {
		return nil, err
	}
	op, err := newOperator(&rest.Config{}) // only for its handlers
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
