package differential

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/version"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
)

const namespace = "default"

// Server is a real API server. Its methods may be called from several goroutines.
type Server struct {
	host        string
	client      *http.Client
	definitions *clientset.Clientset
	etcd        *etcd
	minor       int
}

// NewServer returns the server of a client configuration, and of the socket of its etcd. It
// asks the server for its version, of which the known differences are.
func NewServer(config *rest.Config, etcdSocket string) (*Server, error) {
	config = rest.CopyConfig(config)
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	definitions, err := clientset.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	info, err := definitions.Discovery().ServerVersion()
	if err != nil {
		return nil, err
	}
	release, err := version.ParseGeneric(info.GitVersion)
	if err != nil {
		return nil, err
	}
	return &Server{host: config.Host, client: client, definitions: definitions, etcd: newEtcd(etcdSocket), minor: int(release.Minor())}, nil
}

// Install creates or replaces a definition, and returns when it is served. It marks one
// version as deprecated for that: see mark.
func (s *Server) Install(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition) error {
	api := s.definitions.ApiextensionsV1().CustomResourceDefinitions()
	existing, err := api.Get(ctx, crd.Name, metav1.GetOptions{})
	created := err != nil
	if created {
		_, err = api.Create(ctx, crd, metav1.CreateOptions{})
	} else {
		crd = crd.DeepCopy()
		crd.ResourceVersion = existing.ResourceVersion
		_, err = api.Update(ctx, crd, metav1.UpdateOptions{})
	}
	if err != nil {
		return err
	}
	return s.settle(ctx, crd, created)
}

// InstallPast writes a definition into etcd, past the server, which would not take it any
// longer, and returns when it is served.
func (s *Server) InstallPast(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition) error {
	crd = crd.DeepCopy()
	crd.APIVersion, crd.Kind = apiextensionsv1.SchemeGroupVersion.String(), "CustomResourceDefinition"
	crd.UID, crd.CreationTimestamp, crd.Generation = uuid.NewUUID(), metav1.Now(), 1
	apiextensionsv1.SetObjectDefaults_CustomResourceDefinition(crd)
	crd.Status.Conditions = []apiextensionsv1.CustomResourceDefinitionCondition{}
	if err := s.etcd.put(ctx, "/registry/apiextensions.k8s.io/customresourcedefinitions/"+crd.Name, mustJSON(crd)); err != nil {
		return err
	}
	return s.settle(ctx, crd, true)
}

func (s *Server) settle(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition, created bool) error {
	for _, v := range crd.Spec.Versions {
		if v.Served {
			if err := s.await(ctx, crd, v); err != nil {
				return err
			}
		}
	}
	if created {
		// The server sleeps in each create request that comes sooner than that
		// (customresource_handler.go, serveResource).
		time.Sleep(2 * time.Second)
	}
	return nil
}

// Refuses returns what the server says of a definition that is created, dry. It is nil if
// it is accepted.
func (s *Server) Refuses(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition) error {
	_, err := s.definitions.ApiextensionsV1().CustomResourceDefinitions().Create(ctx, crd, metav1.CreateOptions{
		DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict,
	})
	return err
}

// await waits until a version of a definition is served as it is.
func (s *Server) await(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition, v apiextensionsv1.CustomResourceDefinitionVersion) error {
	for {
		response, warnings, _, err := s.send(ctx, http.MethodGet, path(crd, v.Name, ""), nil, nil)
		if err != nil {
			return err
		}
		if response == http.StatusOK && (v.DeprecationWarning == nil || slices.Contains(warnings, *v.DeprecationWarning)) {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func path(crd *apiextensionsv1.CustomResourceDefinition, version, name string) string {
	p := "/apis/" + crd.Spec.Group + "/" + version
	if crd.Spec.Scope == apiextensionsv1.NamespaceScoped {
		p += "/namespaces/" + namespace
	}
	p += "/" + crd.Spec.Names.Plural
	if name != "" {
		p += "/" + name
	}
	return p
}

// stored returns an object as it is in etcd.
func (s *Server) stored(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition, name string) (map[string]any, error) {
	key := "/registry/" + crd.Spec.Group + "/" + crd.Spec.Names.Plural + "/"
	if crd.Spec.Scope == apiextensionsv1.NamespaceScoped {
		key += namespace + "/"
	}
	text, err := s.etcd.get(ctx, key+name)
	if err != nil {
		return nil, err
	}
	return decode(text)
}

// do sends a request and returns its outcome, with the object as it came.
func (s *Server) do(ctx context.Context, method, path string, query url.Values, body []byte) (Outcome, error) {
	code, warnings, text, err := s.send(ctx, method, path, query, body)
	if err != nil {
		return Outcome{}, err
	}
	o := Outcome{Warnings: sorted(warnings)}
	if code >= 300 {
		var status metav1.Status
		if err := json.Unmarshal(text, &status); err != nil || status.Kind != "Status" {
			status = metav1.Status{Message: string(text)}
		}
		status.Code = int32(code)
		o.fail(status)
		return o, nil
	}
	o.Code = int32(code)
	o.Object, err = decode(text)
	return o, err
}

// Do sends a request, and again while the API server asks to wait, as every client does: it has
// no answer before the cache of a definition is filled.
func Do(client *http.Client, req *http.Request) (*http.Response, error) {
	for {
		response, err := client.Do(req)
		if err != nil || response.StatusCode != http.StatusTooManyRequests || response.Header.Get("Retry-After") == "" {
			return response, err
		}
		response.Body.Close()
		time.Sleep(100 * time.Millisecond)
		if req.GetBody == nil {
			continue
		}
		if req.Body, err = req.GetBody(); err != nil {
			return nil, err
		}
	}
}

func (s *Server) send(ctx context.Context, method, path string, query url.Values, body []byte) (code int, warnings []string, text []byte, err error) {
	req, err := http.NewRequestWithContext(ctx, method, s.host+path+"?"+query.Encode(), bytes.NewReader(body))
	if err != nil {
		return 0, nil, nil, err
	}
	req.Header.Set("Accept", "application/json")
	if len(body) > 0 {
		req.Header.Set("Content-Type", "application/yaml")
		if utilyaml.IsJSONBuffer(body) {
			req.Header.Set("Content-Type", "application/json")
		}
	}
	response, err := Do(s.client, req)
	if err != nil {
		return 0, nil, nil, err
	}
	defer response.Body.Close()
	headers, errs := utilnet.ParseWarningHeaders(response.Header["Warning"])
	if len(errs) > 0 {
		return 0, nil, nil, fmt.Errorf("the warnings: %v", errs)
	}
	for _, h := range headers {
		warnings = append(warnings, h.Text)
	}
	text, err = io.ReadAll(response.Body)
	return response.StatusCode, warnings, text, err
}

// StoredAt returns the value of a key in etcd.
func (s *Server) StoredAt(ctx context.Context, key string) ([]byte, error) {
	return s.etcd.get(ctx, key)
}
