package offline

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"

	admissionv1 "k8s.io/api/admission/v1"
	admissionv1beta1 "k8s.io/api/admission/v1beta1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsv1beta1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1beta1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
)

// newClient returns the client with which the server calls a webhook, at the address of a
// URL, or else of a service. All that it sends goes to the handler
// (apiserver/pkg/util/webhook/client.go, HookClient).
func newClient(h http.Handler, address *string, service *serviceAddress, name string) (*rest.RESTClient, error) {
	hooks := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		admissionv1.AddToScheme, admissionv1beta1.AddToScheme, apiextensionsv1.AddToScheme, apiextensionsv1beta1.AddToScheme,
	} {
		if err := add(hooks); err != nil {
			return nil, err
		}
	}
	config := &rest.Config{Host: "https://" + name, Transport: transport{h}, QPS: -1}
	config.ContentType = runtime.ContentTypeJSON
	config.NegotiatedSerializer = serializer.NegotiatedSerializerWrapper(runtime.SerializerInfo{
		Serializer: serializer.NewCodecFactory(hooks).LegacyCodec(
			admissionv1.SchemeGroupVersion, admissionv1beta1.SchemeGroupVersion, apiextensionsv1.SchemeGroupVersion, apiextensionsv1beta1.SchemeGroupVersion),
	})
	switch {
	case address != nil:
		u, err := url.Parse(*address)
		if err != nil {
			return nil, err
		}
		config.Host, config.APIPath = u.Scheme+"://"+u.Host, u.Path
	case service != nil:
		port := int32(443)
		if service.port != nil {
			port = *service.port
		}
		config.Host = fmt.Sprintf("https://%s.%s.svc:%d", service.name, service.namespace, port)
		if service.path != nil {
			config.APIPath = *service.path
		}
	}
	return rest.UnversionedRESTClientFor(config)
}

// serviceAddress is the ServiceReference of either API.
type serviceAddress struct {
	namespace, name string
	path            *string
	port            *int32
}

// transport sends requests to a handler. One that does not answer in time is left alone, as
// it is by a server.
type transport struct{ http.Handler }

func (t transport) RoundTrip(req *http.Request) (*http.Response, error) {
	in := req.Clone(req.Context())
	in.URL = &url.URL{Path: req.URL.Path, RawPath: req.URL.RawPath, RawQuery: req.URL.RawQuery}
	in.Host, in.RequestURI, in.RemoteAddr = req.URL.Host, in.URL.RequestURI(), "127.0.0.1:1"
	if in.Body == nil {
		in.Body = http.NoBody
	}
	type result struct {
		response *http.Response
		err      error
	}
	done := make(chan result, 1)
	go func() {
		w := &recorder{header: http.Header{}}
		err := t.serve(w, in)
		done <- result{w.response(req), err}
	}()
	select {
	case r := <-done:
		if r.err != nil {
			return nil, r.err
		}
		return r.response, nil
	case <-req.Context().Done():
		return nil, context.Cause(req.Context())
	}
}

// serve contains a panic: net/http does so too, and drops the connection.
func (t transport) serve(w http.ResponseWriter, req *http.Request) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("the handler panicked: %v", v)
		}
	}()
	t.ServeHTTP(w, req)
	return nil
}

var _ http.RoundTripper = transport{}

// recorder is the ResponseWriter of a call.
type recorder struct {
	header, sent http.Header
	code         int
	body         bytes.Buffer
}

func (w *recorder) Header() http.Header { return w.header }

func (w *recorder) WriteHeader(code int) {
	if w.code == 0 {
		w.code, w.sent = code, w.header.Clone()
	}
}

func (w *recorder) Write(b []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.body.Write(b)
}

func (w *recorder) response(req *http.Request) *http.Response {
	w.WriteHeader(http.StatusOK)
	if w.sent.Get("Content-Type") == "" && w.body.Len() > 0 {
		w.sent.Set("Content-Type", http.DetectContentType(w.body.Bytes()))
	}
	return &http.Response{
		Status: fmt.Sprintf("%d %s", w.code, http.StatusText(w.code)), StatusCode: w.code, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: w.sent, Body: io.NopCloser(&w.body), ContentLength: int64(w.body.Len()), Request: req,
	}
}

var _ http.ResponseWriter = &recorder{}
