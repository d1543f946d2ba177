package apiserver

import (
	"bytes"
	"embed"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/crdkit/crdkit/examples/pizza/api/v1alpha1"
	"github.com/crdkit/crdkit/examples/pizza/api/v1beta1"
)

//go:embed config/deploy/*.yaml
var deployment embed.FS

// Manifests returns what a cluster needs to find the server and to let it work, as YAML:
// namespace, permissions, Service, and an APIService for each version. The PEM certificates
// of the CA bundle are those that the kube-apiserver shall trust; without any, the APIServices
// are left out, which need them. The port is that of the Service. How the server and its etcd
// run is left to you.
func Manifests(caBundle []byte, port int32) ([]byte, error) {
	var all []byte
	for _, name := range []string{"namespace", "rbac", "service"} {
		file, err := deployment.ReadFile("config/deploy/" + name + ".yaml")
		if err != nil {
			return nil, err
		}
		if name == "service" {
			file = bytes.Replace(file, []byte("- port: 443\n"), fmt.Appendf(nil, "- port: %d\n", port), 1)
		}
		all = append(append(all, "---\n"...), file...)
	}
	if len(caBundle) == 0 {
		return all, nil
	}
	// A client that asks for no version gets that of the highest priority.
	for i, gv := range []schema.GroupVersion{v1alpha1.GroupVersion, v1beta1.GroupVersion} {
		text, err := yaml.Marshal(apiService(gv, int32(i+1)*10, caBundle, port))
		if err != nil {
			return nil, err
		}
		all = append(append(all, "---\n"...), text...)
	}
	return all, nil
}

// apiService returns an APIService of apiregistration.k8s.io/v1
// (kube-aggregator/pkg/apis/apiregistration/v1/types.go).
func apiService(gv schema.GroupVersion, priority int32, caBundle []byte, port int32) any {
	type service struct {
		Namespace string `json:"namespace"`
		Name      string `json:"name"`
		Port      int32  `json:"port"`
	}
	type spec struct {
		Group                string  `json:"group"`
		Version              string  `json:"version"`
		Service              service `json:"service"`
		CABundle             []byte  `json:"caBundle"`
		GroupPriorityMinimum int32   `json:"groupPriorityMinimum"`
		VersionPriority      int32   `json:"versionPriority"`
	}
	return struct {
		metav1.TypeMeta `json:",inline"`
		Metadata        map[string]string `json:"metadata"`
		Spec            spec              `json:"spec"`
	}{
		metav1.TypeMeta{APIVersion: "apiregistration.k8s.io/v1", Kind: "APIService"},
		map[string]string{"name": gv.Version + "." + gv.Group},
		spec{gv.Group, gv.Version, service{Namespace, Name, port}, caBundle, 2000, priority},
	}
}
