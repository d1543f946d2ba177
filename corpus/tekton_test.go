package corpus_test

import (
	"context"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"testing"

	v1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	"github.com/tektoncd/pipeline/pkg/apis/pipeline/v1alpha1"
	"github.com/tektoncd/pipeline/pkg/apis/pipeline/v1beta1"
	resolutionv1alpha1 "github.com/tektoncd/pipeline/pkg/apis/resolution/v1alpha1"
	resolutionv1beta1 "github.com/tektoncd/pipeline/pkg/apis/resolution/v1beta1"
	"sigs.k8s.io/randfill"

	"github.com/crdkit/crdkit/roundtrip"
)

// tekton returns the conversions of Tekton Pipelines. The hubs are those of cmd/webhook.
func tekton(t *testing.T) *project {
	t.Helper()
	p := newProject(t, v1.AddToScheme, v1beta1.AddToScheme, v1alpha1.AddToScheme, resolutionv1alpha1.AddToScheme, resolutionv1beta1.AddToScheme)
	const module, crds = "github.com/tektoncd/pipeline@", "config/300-crds/300-"
	files := []string{crds + "task.yaml", crds + "taskrun.yaml", crds + "pipeline.yaml", crds + "pipelinerun.yaml", crds + "stepaction.yaml", crds + "resolutionrequest.yaml"}
	p.definitions = published(t, module+"v1.9.2", files...)
	p.schemaless = []string{"ResolutionRequest"}
	p.releases = []string{"v1.0.0", "v1.6.0"}
	for _, release := range p.releases {
		p.history[release] = published(t, module+release, files...)
	}
	p.options = []roundtrip.Option{
		roundtrip.Funcs(func(v *v1.ParamValue, c randfill.Continue) {
			values := []*v1.ParamValue{
				v1.NewStructuredValues(c.String(0)),
				v1.NewStructuredValues(c.String(0), c.String(0)),
				v1.NewObject(map[string]string{c.String(0): c.String(0)}),
			}
			*v = *values[c.Intn(len(values))]
		}),
		roundtrip.SkipLaw(roundtrip.Aliasing, "the functions share memory, and a webhook uses neither object again"),
		roundtrip.SkipLaw(roundtrip.InputUntouched, "the functions write annotations into a map that they share"),
		roundtrip.SkipLaw(roundtrip.Drift, "the corpus has a newer k8s.io/api than the project"),
		roundtrip.SkipLaw(roundtrip.Defaulting, "some parts have no schema in one version, and so no defaults"),
		roundtrip.SkipLaw(roundtrip.Decoding, tektonDecodes),
		roundtrip.Refuse(tektonDecodes, func(err error) bool { return undecodable.MatchString(err.Error()) }),
	}
	p.normal = []func(v reflect.Value){
		visit(func(s *v1beta1.PipelineRunSpec) {
			if s.Timeout != nil {
				s.Timeouts, s.Timeout = &v1beta1.TimeoutFields{Pipeline: s.Timeout}, nil
			}
			s.Resources = nil
		}),
		visit(func(s *v1beta1.PipelineRunStatusFields) { s.TaskRuns, s.Runs = nil, nil }),
		visit(func(s *v1beta1.PipelineSpec) { s.Resources = nil }),
		visit(func(s *v1beta1.PipelineTask) { s.Resources = nil }),
		visit(func(s *v1beta1.TaskSpec) { s.Resources = nil }),
		visit(func(s *v1beta1.TaskRunSpec) { s.Resources = nil }),
		visit(func(s *v1beta1.TaskRunStatusFields) { s.ResourcesResult, s.CloudEvents, s.SpanContext = nil, nil, nil }),
		visit(func(s *v1.TaskRunStatusFields) { s.SpanContext = nil }),
		visit(func(s *v1beta1.PipelineRunStatusFields) { s.SpanContext = nil }),
		visit(func(s *v1.PipelineRunStatusFields) { s.SpanContext = nil }),
		visit(func(s *v1.StepState) { s.TerminationReason = "" }),
		visit(func(s *v1beta1.Provenance) { s.ConfigSource = nil }),
		visit(func(r *v1beta1.TaskRef) { r.Bundle = "" }),
		visit(func(r *v1beta1.PipelineRef) { r.Bundle = "" }),
		visit(func(s *resolutionv1beta1.ResolutionRequestSpec) { // a resolver reads the last of two with one name
			byName := map[string]v1.Param{}
			for _, param := range s.Params {
				byName[param.Name] = param
			}
			s.Params = nil
			for _, name := range slices.Sorted(maps.Keys(byName)) {
				s.Params = append(s.Params, byName[name])
			}
		}),
		visit(func(s *v1.TaskSpec) { s.SetDefaults(context.Background()) }), // those of a status
		visit(func(s *v1beta1.TaskSpec) { s.SetDefaults(context.Background()) }),
		visit(func(s *v1.PipelineSpec) { s.SetDefaults(context.Background()) }),
		visit(func(s *v1beta1.PipelineSpec) { s.SetDefaults(context.Background()) }),
		visit(func(s *v1.ParamSpec) { s.Type = tektonType(s.Type, s.Properties) }),
		visit(func(s *v1beta1.ParamSpec) { s.Type = tektonType(s.Type, s.Properties) }),
		visit(func(r *v1.TaskResult) { r.Type = tektonType(r.Type, r.Properties) }),
		visit(func(r *v1beta1.TaskResult) { r.Type = tektonType(r.Type, r.Properties) }),
		visit(func(r *v1.StepResult) { r.Type = tektonType(r.Type, r.Properties) }),
	}
	p.known = tektonKnown
	addKnative[*v1.Task, *v1beta1.Task](p)
	addKnative[*v1.TaskRun, *v1beta1.TaskRun](p)
	addKnative[*v1.Pipeline, *v1beta1.Pipeline](p)
	addKnative[*v1.PipelineRun, *v1beta1.PipelineRun](p)
	addKnative[*v1beta1.StepAction, *v1alpha1.StepAction](p)
	addKnative[*resolutionv1beta1.ResolutionRequest, *resolutionv1alpha1.ResolutionRequest](p)
	return p
}

// tektonType returns the type of a parameter or result: the admission webhooks accept the type object
// with properties, and only with them.
func tektonType[T ~string, P any](t T, properties map[string]P) T {
	switch {
	case len(properties) > 0:
		return "object"
	case t == "object":
		return "string"
	}
	return t
}

// tektonDecodes is why a schema may accept what no Go type can decode.
const tektonDecodes = "the admission webhooks cannot decode such a spec, and only the project writes a status"

// undecodable are errors of types that decode themselves, and of parts without a schema.
var undecodable = regexp.MustCompile(`json: cannot unmarshal|time: (invalid|missing unit in|unknown unit .* in) duration|parsing time|quantities must match|unable to parse quantity`)
