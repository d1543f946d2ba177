// Package step3 has functions in place of the methods ConvertTo and ConvertFrom, and Lossless
// in place of the annotation that kept the whole object.
package step3

import (
	"context"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/crdkit/crdkit/conversion"
	v1 "github.com/crdkit/crdkit/interop/controllerruntime/moving/api/v1"
	"github.com/crdkit/crdkit/interop/controllerruntime/moving/api/v1beta1"
)

// Registry knows how Backups convert.
func Registry(s *runtime.Scheme) (*conversion.Registry, error) {
	reg := conversion.NewRegistry(s)
	if err := conversion.AddSpoke(reg, toHub, fromHub); err != nil {
		return nil, err
	}
	return reg, conversion.Lossless(reg, v1beta1.GroupVersion.WithKind("Backup"))
}

func toHub(_ context.Context, in *v1beta1.Backup, out *v1.Backup) error {
	out.Spec.Bucket, out.Spec.Path, _ = strings.Cut(in.Spec.Target, "/")
	out.Spec.Keep = in.Spec.Keep
	return restore(in, out)
}

func fromHub(_ context.Context, in *v1.Backup, out *v1beta1.Backup) error {
	out.Spec.Target = in.Spec.Bucket
	if in.Spec.Path != "" {
		out.Spec.Target += "/" + in.Spec.Path
	}
	out.Spec.Keep = in.Spec.Keep
	return nil
}
