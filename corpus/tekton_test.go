package corpus_test

import (
	"context"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/randfill"

	v1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	"github.com/tektoncd/pipeline/pkg/apis/pipeline/v1alpha1"
	"github.com/tektoncd/pipeline/pkg/apis/pipeline/v1beta1"
	resolutionv1alpha1 "github.com/tektoncd/pipeline/pkg/apis/resolution/v1alpha1"
	resolutionv1beta1 "github.com/tektoncd/pipeline/pkg/apis/resolution/v1beta1"

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
		roundtrip.Without(roundtrip.Aliasing, "the functions share memory, and a webhook uses neither object again"),
		roundtrip.Without(roundtrip.InputUntouched, "the functions write annotations into a map that they share"),
		roundtrip.Without(roundtrip.Drift, "the corpus has a newer k8s.io/api than the project"),
		roundtrip.Without(roundtrip.Defaulting, "some parts have no schema in one version, and so no defaults"),
		roundtrip.Without(roundtrip.Decoding, tektonDecodes),
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

var tektonKnown = []known{{
	title:   "ManagedBy_IsLost",
	report:  `- spec\.managedBy: `,
	release: today,
	object: `
apiVersion: tekton.dev/v1
kind: TaskRun
metadata:
  name: a
spec:
  managedBy: example.com/a
  serviceAccountName: default
  taskRef:
    name: a`,
	meet: edits("v1beta1", addLabel, reads("v1", `
serviceAccountName: default
taskRef:
  kind: Task
  name: a
timeout: 1h0m0s`)),
}, {
	title:   "RestartPolicy_IsLost",
	report:  `sidecars\[\d+\]\.restartPolicy: `,
	release: today,
	object: `
apiVersion: tekton.dev/v1
kind: Task
metadata:
  name: a
spec:
  steps:
  - name: a
    image: a
  sidecars:
  - name: a
    image: a
    restartPolicy: Always`,
	meet: edits("v1beta1", addLabel, reads("v1", `
sidecars:
- computeResources: {}
  image: a
  name: a
steps:
- computeResources: {}
  image: a
  name: a`)),
}, {
	title:   "Annotations_BecomeLabels",
	report:  `taskRunSpecs\[\d+\]\.metadata\.(annotations|labels)`,
	release: today,
	object: `
apiVersion: tekton.dev/v1
kind: PipelineRun
metadata:
  name: a
spec:
  pipelineRef:
    name: a
  taskRunSpecs:
  - pipelineTaskName: a
    metadata:
      annotations:
        example.com/a: a`,
	meet: edits("v1beta1", addLabel, reads("v1", `
pipelineRef:
  name: a
taskRunSpecs:
- pipelineTaskName: a
  metadata: {}
taskRunTemplate:
  serviceAccountName: default
timeouts:
  pipeline: 1h0m0s`)),
}, {
	title:   "Status_LosesFields", // normal declares the span context and the reason
	report:  `- status\.artifacts\.`,
	release: today,
	object: `
apiVersion: tekton.dev/v1
kind: TaskRun
metadata:
  name: a
spec:
  serviceAccountName: default
  taskRef:
    name: a
status:
  podName: a
  artifacts:
    outputs:
    - name: a
      values:
      - uri: a
  spanContext:
    a: a
  steps:
  - name: a
    terminationReason: Skipped
    terminated:
      exitCode: 0
      reason: Completed`,
	meet: edits("v1beta1", addLabel, readsField("v1", "status", `
podName: a
steps:
- name: a
  terminated:
    exitCode: 0
    reason: Completed
  terminationReason: Completed`)),
}, {
	title:   "PipelineRef_IsLost",
	report:  `(tasks|finally)\[\d+\]\.pipeline(Ref|Spec)`,
	release: today,
	object: `
apiVersion: tekton.dev/v1beta1
kind: Pipeline
metadata:
  name: a
spec:
  tasks:
  - name: a
    pipelineRef:
      name: a`,
	meet: reads("v1", `
tasks:
- name: a`),
}, {
	title:   "NumberOfSteps_Changes",
	report:  `length of deserialized steps mismatch the length of target steps`,
	release: today,
	object: `
apiVersion: tekton.dev/v1beta1
kind: Task
metadata:
  name: a
spec:
  steps:
  - name: a
    image: a
    tty: true`,
	meet: edits("v1", func(object map[string]any) {
		spec := object["spec"].(map[string]any)
		spec["steps"] = append(spec["steps"].([]any), map[string]any{"name": "b", "image": "b"})
	}, unreadable("v1beta1", "length of deserialized steps mismatch the length of target steps")),
}, {
	title:   "DeprecatedFields_MoveToStatus", // no law reports it: status and spec have the same task
	release: today,
	object: `
apiVersion: tekton.dev/v1beta1
kind: TaskRun
metadata:
  name: a
spec:
  serviceAccountName: default
  taskSpec:
    steps:
    - name: a
      image: a
      tty: true
status:
  podName: a
  taskSpec:
    steps:
    - name: a
      image: a`,
	meet: func(t *testing.T, c *cluster, object *unstructured.Unstructured) {
		reads("v1beta1", `
serviceAccountName: default
taskSpec:
  steps:
  - image: a
    name: a
    resources: {}
timeout: 1h0m0s`)(t, c, object)
		readsField("v1beta1", "status", `
podName: a
taskSpec:
  steps:
  - image: a
    name: a
    resources: {}
    tty: true`)(t, c, object)
	},
}, {
	title:   "Annotation_IsNotJSON",
	report:  `error deserializing key \S+ from metadata`,
	release: today,
	object: `
apiVersion: tekton.dev/v1
kind: Task
metadata:
  name: a
  annotations:
    tekton.dev/v1beta1Resources: "{"
spec:
  steps:
  - name: a
    image: a`,
	meet: unreadable("v1beta1", "error deserializing key tekton.dev/v1beta1Resources from metadata"),
}, {
	title:   "URL_IsLost",
	report:  `- spec\.url: `,
	release: today,
	object: `
apiVersion: resolution.tekton.dev/v1beta1
kind: ResolutionRequest
metadata:
  name: a
  labels:
    resolution.tekton.dev/type: a
spec:
  url: a`,
	meet: edits("v1alpha1", addLabel, reads("v1beta1", `{}`)),
}, {
	title:   "Parameter_IsNotString",
	report:  `non-string type parameter\(s\) found`,
	release: today,
	object: `
apiVersion: resolution.tekton.dev/v1beta1
kind: ResolutionRequest
metadata:
  name: a
  labels:
    resolution.tekton.dev/type: a
spec:
  params:
  - name: a
    value: [a]`,
	meet: unreadable("v1alpha1", "non-string type parameter(s) found: a"),
}, {
	title:   "Conditions_AreLost",
	report:  `- status\.(conditions|observedGeneration|annotations)`,
	release: today,
	object: `
apiVersion: resolution.tekton.dev/v1beta1
kind: ResolutionRequest
metadata:
  name: a
  labels:
    resolution.tekton.dev/type: a
status:
  conditions:
  - type: Succeeded
    status: "True"
  data: a
  refSource: {}
  source: {}`,
	meet: edits("v1alpha1", addLabel, readsField("v1beta1", "status", `
data: a
refSource: {}`)),
}, {
	title:   "Parameters_HaveRandomOrder",
	report:  `the determinism law(?s:.*)spec\.params\[`,
	release: today,
	object: `
apiVersion: resolution.tekton.dev/v1alpha1
kind: ResolutionRequest
metadata:
  name: a
  labels:
    resolution.tekton.dev/type: a
spec:
  params:
    a: a
    b: b`,
	meet: reorders,
}, {
	report: `: the schema of \S+ keeps it, and its Go type drops it`,
	reason: "the project's admission webhook refuses unknown fields and makes strings of other values; only the project writes a status",
}}

// reorders returns that updates in v1alpha1 that change nothing change the order of parameters.
func reorders(t *testing.T, c *cluster, object *unstructured.Unstructured) {
	before := c.get(t, object, "v1beta1")
	for range 200 {
		edits("v1alpha1", func(map[string]any) {}, writable("v1alpha1"))(t, c, object)
		after := c.get(t, object, "v1beta1")
		if !same(before.Object["spec"], after.Object["spec"]) {
			return
		}
	}
	t.Error("200 updates do not change the order")
}
