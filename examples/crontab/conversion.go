package crontab

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdkit/crdkit/conversion"
)

// NewRegistry returns the conversions of CronTabs: v1 is the hub, and v1beta1 its spoke. An
// error means that this program is wrong.
func NewRegistry() (*conversion.Registry, error) {
	reg := conversion.NewRegistry(runtime.NewScheme()) // no Go types are needed
	v1beta1 := schema.GroupVersionKind{Group: "stable.example.com", Version: "v1beta1", Kind: "CronTab"}
	return reg, conversion.AddFields(reg, v1beta1, "v1",
		conversion.Split("spec.hostPort", ":", conversion.StringPart("spec.host"), conversion.IntegerPart("spec.port")),
	)
}
