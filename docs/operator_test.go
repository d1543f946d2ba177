package docs_test

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/crdkit/crdkit/test/controlplane"
	"github.com/crdkit/crdkit/test/expect"
	"github.com/crdkit/crdkit/test/webhooktest"
)

// The operator of the pages.
const (
	operatorNamespace = "backup-system"
	operatorService   = "backup-operator"
	operatorHost      = operatorService + "." + operatorNamespace + ".svc"
)

// operator serves webhooks behind a Service, and can go wrong in every way.
type operator struct {
	ca       *webhooktest.CA
	listener net.Listener
	slice    *discoveryv1.EndpointSlice

	mu          sync.Mutex
	handlers    map[string]http.Handler
	calls       map[string]int // by path
	certificate *tls.Certificate
}

// newOperator starts an operator with nothing to serve, and makes its namespace and Service.
//
// A control plane without nodes forwards no connections. So the API server must find
// the endpoints itself, with --enable-aggregator-routing; and it refuses loopback for one.
func newOperator(t *testing.T, c *cluster) *operator {
	t.Helper()
	ip := controlplane.Address(t)
	listener, err := net.Listen("tcp", net.JoinHostPort(ip.String(), "0"))
	expect.NoError(t, err)
	family := discoveryv1.AddressTypeIPv4
	if ip.To4() == nil {
		family = discoveryv1.AddressTypeIPv6
	}
	o := &operator{ca: webhooktest.NewCA(t, "backup-operator-ca"), listener: listener, handlers: map[string]http.Handler{}, calls: map[string]int{}}
	o.certify(t, time.Hour, operatorHost)
	server := &http.Server{
		Handler: o,
		// No connection outlives what a test changes.
		TLSConfig: &tls.Config{
			GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
				o.mu.Lock()
				defer o.mu.Unlock()
				return o.certificate, nil
			},
		},
		ErrorLog:          log.New(io.Discard, "", 0),
		ReadHeaderTimeout: time.Minute,
	}
	server.SetKeepAlivesEnabled(false)
	done := make(chan error)
	go func() { done <- server.ServeTLS(listener, "", "") }()
	t.Cleanup(func() {
		_ = server.Close()
		if err := <-done; err != http.ErrServerClosed {
			t.Error(err)
		}
	})

	_, err = c.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: operatorNamespace}}, metav1.CreateOptions{})
	expect.NoError(t, err)
	const port = "https"
	_, err = c.CoreV1().Services(operatorNamespace).Create(t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: operatorService},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: port, Port: 443, TargetPort: intstr.FromInt32(8443)}}},
	}, metav1.CreateOptions{})
	expect.NoError(t, err)
	o.slice = &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: operatorService, Labels: map[string]string{discoveryv1.LabelServiceName: operatorService}},
		AddressType: family,
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{ip.String()}, Conditions: discoveryv1.EndpointConditions{Ready: new(true)}}},
		Ports:       []discoveryv1.EndpointPort{{Name: new(port), Port: new(o.port())}},
	}
	_, err = c.DiscoveryV1().EndpointSlices(operatorNamespace).Create(t.Context(), o.slice, metav1.CreateOptions{})
	expect.NoError(t, err)
	return o
}

func (o *operator) port() int32 { return int32(o.listener.Addr().(*net.TCPAddr).Port) }

// serve serves a handler at a path.
func (o *operator) serve(path string, h http.Handler) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.handlers[path] = h
}

func (o *operator) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	o.mu.Lock()
	h := o.handlers[r.URL.Path]
	o.calls[r.URL.Path]++
	o.mu.Unlock()
	if h == nil {
		http.NotFound(w, r)
		return
	}
	h.ServeHTTP(w, r)
}

// called returns how many requests a path has had.
func (o *operator) called(path string) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.calls[path]
}

// certify has the operator serve with a certificate that ends after a lifetime, which may be negative. It is for names; without
// names there is the common name alone.
func (o *operator) certify(t testing.TB, lifetime time.Duration, names ...string) {
	t.Helper()
	certificate := o.ca.Issue(t, func(c *x509.Certificate) {
		c.Subject.CommonName, c.DNSNames = operatorHost, names
		c.NotBefore, c.NotAfter = time.Now().Add(-24*time.Hour), time.Now().Add(lifetime)
		c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	})
	o.mu.Lock()
	defer o.mu.Unlock()
	o.certificate = certificate
}

// endpoints has the Service lead to a port of this machine, or nowhere without one.
func (o *operator) endpoints(t testing.TB, c *cluster, ports ...int32) {
	t.Helper()
	slice := o.slice.DeepCopy()
	if len(ports) == 0 {
		slice.Endpoints = nil
	} else {
		slice.Ports[0].Port = &ports[0]
	}
	_, err := c.DiscoveryV1().EndpointSlices(operatorNamespace).Update(t.Context(), slice, metav1.UpdateOptions{})
	expect.NoError(t, err)
}

// closedPort is a port without a listener.
func closedPort(t testing.TB) int32 {
	t.Helper()
	listener, err := net.Listen("tcp", net.JoinHostPort(controlplane.Address(t).String(), "0"))
	expect.NoError(t, err)
	defer listener.Close()
	return int32(listener.Addr().(*net.TCPAddr).Port)
}
