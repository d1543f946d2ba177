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
)

// metrics are those of one operator. All that the webhooks count has the label path.
type metrics struct {
	registry *prometheus.Registry
	leading  prometheus.Gauge
}

func newMetrics() (*metrics, error) {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		leading: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "pizza_operator_leading",
			Help: "1 while the controller of this replica works, else 0.",
		}),
	}
	return m, errors.Join(
		m.registry.Register(collectors.NewGoCollector()),
		m.registry.Register(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})),
		m.registry.Register(m.leading),
	)
}

// conversion counts the reviews of a path.
func (m *metrics) conversion(path string) (conversion.Option, error) {
	return conversionmetrics.Prometheus(m.of(path))
}

// admission counts the requests of a path, by the name of their webhook too.
func (m *metrics) admission(path, webhook string) (admission.Option, error) {
	observe, err := admissionmetrics.Prometheus(m.of(path))
	if err != nil {
		return nil, err
	}
	return observe(webhook), nil
}

func (m *metrics) of(path string) prometheus.Registerer {
	return prometheus.WrapRegistererWith(prometheus.Labels{"path": path}, m.registry)
}

func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}
