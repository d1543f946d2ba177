// Package collectors registers metrics with Prometheus: all, or none.
package collectors

import "github.com/prometheus/client_golang/prometheus"

// Register registers collectors. After the error of one, none of them is left, so that
// the next attempt does not fail for those of this one.
func Register(r prometheus.Registerer, collectors ...prometheus.Collector) error {
	for i, c := range collectors {
		if err := r.Register(c); err != nil {
			for _, done := range collectors[:i] {
				r.Unregister(done)
			}
			return err
		}
	}
	return nil
}
