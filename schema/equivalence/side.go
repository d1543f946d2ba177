package equivalence

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/transport"

	"github.com/crdkit/crdkit/schema"
	"github.com/crdkit/crdkit/schema/apiservertest"
)

// side is a release on an API server.
type side struct {
	name      string // before or after
	release   schema.Release
	manifests []manifest

	definitions map[runtimeschema.GroupKind]*schema.Definition
	server      *apiservertest.Server
	client      *http.Client
	mapper      meta.RESTMapper
	groups      []*restmapper.APIGroupResources

	decisions []*Decision
	counters  counters
}

// manifest is an object of a release.
type manifest struct {
	file string
	*unstructured.Unstructured
}

func (m manifest) String() string {
	return fmt.Sprintf("%s: %s %s", m.file, m.GetKind(), m.GetName())
}

// newSide reads the manifests of a release.
func newSide(name string, release schema.Release) (*side, error) {
	s := &side{name: name, release: release}
	return s, s.failed(errors.Join(s.parse(), s.checkBindings()))
}

// failed returns an error with the name of the release, or nil.
func (s *side) failed(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", s.name, err)
}

// options returns the options of a server with the release, and prepares to count its decisions.
func (s *side) options(namespaces []*corev1.Namespace, stored []map[string]any, abort context.CancelCauseFunc) ([]apiservertest.Option, error) {
	opts := []apiservertest.Option{apiservertest.Audit(s.counters.audited), apiservertest.NoWatchCache()}
	if h := s.release.Handler; h != nil {
		opts = append(opts, apiservertest.Handler(s.counters.webhook(h, func(err error) { abort(fmt.Errorf("%s: %w", s.name, err)) })))
	}
	if len(s.release.Definitions) > 0 { // otherwise there are samples of built-in kinds
		var err error
		if s.definitions, err = s.release.ByKind(); err != nil {
			return nil, err
		}
	}
	for _, d := range s.release.Definitions {
		opts = append(opts, apiservertest.Objects(d.CustomResourceDefinition()))
		if err := s.countRules(d); err != nil {
			return nil, err
		}
	}
	s.countWebhooks()
	for _, m := range append(slices.Clone(s.manifests), s.probes()...) {
		if strings.HasSuffix(m.GetKind(), "WebhookConfiguration") && s.release.Handler == nil {
			return nil, fmt.Errorf("%s: the release has no Handler", m)
		}
		opts = append(opts, apiservertest.Objects(m))
	}
	for _, n := range namespaces {
		opts = append(opts, apiservertest.Objects(n))
	}
	texts := make([][]byte, len(stored))
	for i, object := range stored {
		texts[i] = jsonOf(object)
	}
	return append(opts, apiservertest.Stored(texts...)), nil
}

// start starts a server with the release, and makes clients of it.
func (s *side) start(ctx context.Context, namespaces []*corev1.Namespace, stored []map[string]any, abort context.CancelCauseFunc) error {
	opts, err := s.options(namespaces, stored, abort)
	if err != nil {
		return err
	}
	if s.server, err = apiservertest.New(ctx, opts...); err != nil {
		for _, m := range s.manifests {
			if strings.Contains(err.Error(), m.GetKind()+" "+m.GetName()) {
				return fmt.Errorf("%s: %w", m.file, err)
			}
		}
		return err
	}
	if s.client, err = rest.HTTPClientFor(s.server.Config()); err != nil {
		return err
	}
	found, err := discovery.NewDiscoveryClientForConfig(s.server.Config())
	if err != nil {
		return err
	}
	s.groups, err = restmapper.GetAPIGroupResources(found)
	s.mapper = restmapper.NewDiscoveryRESTMapper(s.groups)
	return err
}

// hasStatus reports whether a resource has the subresource status.
func (s *side) hasStatus(resource runtimeschema.GroupVersionResource) bool {
	return slices.ContainsFunc(s.groups, func(g *restmapper.APIGroupResources) bool {
		is := func(r metav1.APIResource) bool { return r.Name == resource.Resource+"/status" }
		return g.Group.Name == resource.Group && slices.ContainsFunc(g.VersionedResources[resource.Version], is)
	})
}

// parse reads the manifests in the order of their files.
func (s *side) parse() error {
	var errs []error
	for _, file := range sorted(s.release.Manifests) {
		reader := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(s.release.Manifests[file]), 4096)
		for n := 1; ; n++ {
			m := manifest{file, &unstructured.Unstructured{}}
			err := reader.Decode(&m.Object)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				errs = append(errs, fmt.Errorf("%s: document %d: %w", file, n, err))
				break
			}
			if len(m.Object) == 0 {
				continue
			}
			if m.GetKind() == "" || m.GetAPIVersion() == "" || m.GetName() == "" {
				errs = append(errs, fmt.Errorf("%s: document %d: expected apiVersion, kind and metadata.name, got %q, %q and %q", file, n, m.GetAPIVersion(), m.GetKind(), m.GetName()))
				continue
			}
			if m.GetKind() != "CustomResourceDefinition" {
				s.manifests = append(s.manifests, m)
				continue
			}
			text, err := m.MarshalJSON()
			if err == nil {
				var d *schema.Definition
				d, err = schema.Parse(text)
				s.release.Definitions = append(slices.Clip(s.release.Definitions), d)
			}
			if err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", m, err))
			}
		}
	}
	return errors.Join(errs...)
}

// checkBindings finds bindings without their policy or parameters: the server would not apply the former, and deny all
// requests because of the latter.
func (s *side) checkBindings() error {
	var errs []error
	for _, m := range s.manifests {
		policyKind, binding := strings.CutSuffix(m.GetKind(), "Binding")
		if !binding || !strings.HasSuffix(policyKind, "AdmissionPolicy") {
			continue
		}
		get := func(u *unstructured.Unstructured, fields ...string) string {
			text, _, _ := unstructured.NestedString(u.Object, fields...)
			return text
		}
		at := slices.IndexFunc(s.manifests, func(p manifest) bool {
			return p.GetKind() == policyKind && p.GetName() == get(m.Unstructured, "spec", "policyName")
		})
		if at < 0 {
			errs = append(errs, fmt.Errorf("%s: spec.policyName: there is no %s %q", m, policyKind, get(m.Unstructured, "spec", "policyName")))
			continue
		}
		kind, name := get(s.manifests[at].Unstructured, "spec", "paramKind", "kind"), get(m.Unstructured, "spec", "paramRef", "name")
		_, has, _ := unstructured.NestedMap(m.Object, "spec", "paramRef")
		switch {
		case kind == "" && has:
			errs = append(errs, fmt.Errorf("%s: spec.paramRef: %s has no spec.paramKind", m, s.manifests[at]))
		case kind != "" && !has:
			errs = append(errs, fmt.Errorf("%s: spec.paramRef: expected a reference, because %s has spec.paramKind", m, s.manifests[at]))
		case kind != "" && !slices.ContainsFunc(s.manifests, func(p manifest) bool {
			return p.GetKind() == kind && (name == "" || p.GetName() == name)
		}):
			errs = append(errs, fmt.Errorf("%s: spec.paramRef: there is no %s %q", m, kind, name))
		}
	}
	return errors.Join(errs...)
}

// parameters returns what the parameters of a policy have.
func (s *side) parameters(policy manifest) (all []any) {
	kind, _, _ := unstructured.NestedString(policy.Object, "spec", "paramKind", "kind")
	for _, m := range s.manifests {
		if m.GetKind() == kind {
			object := maps.Clone(m.Object)
			maps.DeleteFunc(object, func(name string, _ any) bool {
				return name == "apiVersion" || name == "kind" || name == "metadata"
			})
			all = append(all, object)
		}
	}
	return all
}

// response is what a client sees.
type response struct {
	Response
	object  map[string]any // without what a server sets
	version string         // of the resource
	fault   error          // the server could not respond
	code    int
	remains bool // a deleted object, until it has no finalizers
}

// send sends a request.
func (s *side) send(ctx context.Context, k *kind, op Operation, user rest.ImpersonationConfig, namespace, name string, object map[string]any) (r response) {
	method, at := map[Operation]string{Read: http.MethodGet, Create: http.MethodPost, Update: http.MethodPut, UpdateStatus: http.MethodPut, Delete: http.MethodDelete}[op], k.path(namespace)
	if op != Create {
		at = path.Join(at, name)
	}
	if op == UpdateStatus {
		at += "/status"
	}
	var body io.Reader
	if object != nil {
		text, err := json.Marshal(object)
		if err != nil {
			return response{fault: err}
		}
		body = bytes.NewReader(text)
	}
	request, err := http.NewRequestWithContext(ctx, method, s.server.Config().Host+at+"?fieldManager=equivalence&fieldValidation=Ignore", body)
	if err != nil {
		return response{fault: err}
	}
	request.Header.Set("Content-Type", runtime.ContentTypeJSON)
	client := *s.client
	if user.UserName != "" {
		client.Transport = transport.NewImpersonatingRoundTripper(transport.ImpersonationConfig(user), client.Transport)
	}
	answer, err := client.Do(request)
	if err != nil {
		return response{fault: err}
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return response{fault: err}
	}
	if r.code = answer.StatusCode; r.code >= 300 {
		var status metav1.Status
		if err := json.Unmarshal(text, &status); err != nil {
			return response{fault: fmt.Errorf("status %s: %s", answer.Status, text)}
		}
		r.Message = status.Message
		if status.Details != nil {
			r.Causes = status.Details.Causes
		}
		return r
	}
	r.Allowed = true
	if err := utiljson.Unmarshal(text, &r.object); err != nil {
		return response{fault: err}
	}
	u := unstructured.Unstructured{Object: r.object}
	r.version, r.remains = u.GetResourceVersion(), u.GetDeletionTimestamp() != nil
	if op == Delete {
		r.object = nil
		return r
	}
	clean(r.object)
	return r
}

// clean removes the metadata that a server sets.
func clean(object map[string]any) {
	if metadata, ok := object["metadata"].(map[string]any); ok {
		for _, name := range []string{"uid", "resourceVersion", "creationTimestamp", "managedFields", "selfLink", "generation"} {
			delete(metadata, name)
		}
	}
}

// namespaces returns those that the releases have.
func (s *side) namespaces() []string {
	all := []string{"default"}
	for _, m := range s.manifests {
		if m.GetKind() == "Namespace" && m.GetName() != "default" {
			all = append(all, m.GetName())
		}
	}
	return all
}

// resource returns the resource of a kind, and its scope.
func (s *side) resource(kind runtimeschema.GroupVersionKind) (resource runtimeschema.GroupVersionResource, namespaced bool, err error) {
	m, err := s.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return resource, false, fmt.Errorf("%s: %w", s.name, err)
	}
	return m.Resource, m.Scope.Name() == meta.RESTScopeNameNamespace, nil
}
