package pizza

import (
	"errors"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/crdkit/crdkit/admission"
	admissionmetrics "github.com/crdkit/crdkit/admission/metrics"
	"github.com/crdkit/crdkit/conversion"
	conversionmetrics "github.com/crdkit/crdkit/conversion/metrics"
	"github.com/crdkit/crdkit/webhook"
	webhookmetrics "github.com/crdkit/crdkit/webhook/metrics"
)

// metrics are the metrics of one operator.
type metrics struct {
	registry *prometheus.Registry
	leading  prometheus.Gauge
	requests *prometheus.CounterVec

	conversion conversion.Option                     // measures the conversion
	admission  func(webhook string) admission.Option // measures an admission webhook
}

func newMetrics() (*metrics, error) {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		leading: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "pizza_operator_leading",
			Help: "1 while the controller of this replica works, else 0.",
		}),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "pizza_operator_webhook_requests_total",
			Help: "Requests to the webhooks, by path and HTTP status.",
		}, []string{"path", "code"}),
	}
	var conversionErr, admissionErr error
	m.conversion, conversionErr = conversionmetrics.Prometheus(m.registry)
	m.admission, admissionErr = admissionmetrics.Prometheus(m.registry)
	return m, errors.Join(conversionErr, admissionErr,
		m.registry.Register(collectors.NewGoCollector()),
		m.registry.Register(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})),
		m.registry.Register(m.leading),
		m.registry.Register(m.requests),
	)
}

// replica measures the certificates and the registration.
func (m *metrics) replica(status webhook.Status) error {
	return webhookmetrics.Prometheus(m.registry, status)
}

// count counts the requests of a path.
func (m *metrics) count(path string, h http.Handler) http.Handler {
	return promhttp.InstrumentHandlerCounter(m.requests.MustCurryWith(prometheus.Labels{"path": path}), h)
}

func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}
