package apiserver

import (
	"embed"
	"encoding/base64"
	"strconv"
	"strings"
)

//go:embed config/deploy/*.yaml
var deployment embed.FS

// Manifests returns what a cluster needs to find the server and to let it work, as YAML:
// namespace, permissions, Service, and an APIService for each version. The PEM certificates
// of the CA bundle are those that the kube-apiserver shall trust; without any, the APIServices
// are left out, which need them. The port is that of the Service. How the server and its etcd
// run is left to you.
func Manifests(caBundle []byte, port int32) ([]byte, error) {
	files := [][3]string{{"namespace"}, {"rbac"}, {"service"}} // name, version and priority
	if len(caBundle) > 0 {
		files = append(files, [3]string{"apiservice", "v1alpha1", "10"}, [3]string{"apiservice", "v1beta1", "20"})
	}
	var all strings.Builder
	for _, f := range files {
		text, err := deployment.ReadFile("config/deploy/" + f[0] + ".yaml")
		if err != nil {
			return nil, err
		}
		values := strings.NewReplacer("$VERSION", f[1], "$PRIORITY", f[2], "$PORT", strconv.Itoa(int(port)), "$CA", base64.StdEncoding.EncodeToString(caBundle))
		all.WriteString("---\n" + values.Replace(string(text)))
	}
	return []byte(all.String()), nil
}
