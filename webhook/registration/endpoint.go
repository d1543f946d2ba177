package registration

import (
	"net/url"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// endpoint is the Service or URL at which the API server calls the handlers.
type endpoint struct {
	namespace, service string
	port               int32
	url                *url.URL
}

// Service sets the Service through which the API server calls the handlers, on port 443
// (see [ServicePort]). The namespace is also the operator's own namespace, unless
// [OwnNamespace] is set.
func Service(namespace, name string) Option {
	return func(s *settings) {
		for _, n := range []string{namespace, name} {
			if errs := validation.IsDNS1123Label(n); len(errs) > 0 {
				s.errorf("Service %s/%s: %q, expected a name: %s", namespace, name, n, strings.Join(errs, "; "))
			}
		}
		s.endpoint.namespace, s.endpoint.service = namespace, name
	}
}

// ServicePort sets the port of the [Service]. The default is 443.
func ServicePort(port int32) Option {
	return func(s *settings) { s.endpoint.port = port }
}

// URL sets the URL at which the API server calls the handlers, such as https://127.0.0.1:9443, to
// which the path of each handler is appended. Use it for an operator outside of the cluster. Also
// set [OwnNamespace] if the operator has a namespace, because webhook/replica otherwise keeps the
// CA in a Secret in the namespace default.
func URL(base string) Option {
	return func(s *settings) {
		u, err := url.Parse(base)
		switch {
		case err != nil:
			s.errorf("URL: %w", err)
			return
		case u.Scheme != "https" || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || strings.Trim(u.Path, "/") != "":
			s.errorf("URL %q, expected https://host or https://host:port; the paths come with the handlers", base)
		}
		u.Path = ""
		s.endpoint.url = u
	}
}

// OwnNamespace sets the namespace in which the operator runs. The default is the namespace
// of its [Service]. By default, webhooks are not called for objects in this namespace.
func OwnNamespace(namespace string) Option {
	return func(s *settings) { s.ownNamespace = namespace }
}

func (e *endpoint) check(s *settings) {
	switch {
	case (e.service == "") == (e.url == nil):
		s.errorf("endpoint: expected either Service or URL")
	case e.port != 0 && e.service == "":
		s.errorf("ServicePort without Service")
	}
	if e.port == 0 {
		e.port = 443
	}
}

// clientConfig returns the WebhookClientConfig for a path, without a CA bundle.
func (e *endpoint) clientConfig(path string) map[string]any {
	if e.url != nil {
		return map[string]any{"url": e.url.String() + path}
	}
	return map[string]any{"service": map[string]any{
		"namespace": e.namespace,
		"name":      e.service,
		"port":      int64(e.port),
		"path":      path,
	}}
}

// contains reports whether a WebhookClientConfig points to this endpoint, with any path and
// any port of the Service.
func (e *endpoint) contains(clientConfig map[string]any) bool {
	if e.url != nil {
		text, _ := clientConfig["url"].(string)
		u, err := url.Parse(text)
		return err == nil && u.Scheme == e.url.Scheme && u.Host == e.url.Host
	}
	service, _ := clientConfig["service"].(map[string]any)
	return service["namespace"] == e.namespace && service["name"] == e.service
}

func (e *endpoint) host() string {
	if e.url != nil {
		return e.url.Hostname()
	}
	return e.service + "." + e.namespace + ".svc"
}
