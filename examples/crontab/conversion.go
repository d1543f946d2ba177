package crontab

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdkit/crdkit/conversion"
)

// NewRegistry returns the conversions between v1, the hub, and v1beta1, its spoke. It returns an
// error only for a mistake in this program.
func NewRegistry() (*conversion.Registry, error) {
	reg := conversion.NewRegistry(runtime.NewScheme()) // no Go types are needed
	v1beta1 := schema.GroupVersionKind{Group: "stable.example.com", Version: "v1beta1", Kind: "CronTab"}
	return reg, conversion.AddFields(reg, v1beta1, "v1",
		conversion.Split("spec.hostPort", ":", conversion.Part{Path: "spec.host"}, conversion.Part{Path: "spec.port", Integer: true}),
	)
}
