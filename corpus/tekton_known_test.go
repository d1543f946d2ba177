package corpus_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

var tektonKnown = []known{{
	title:   "ManagedBy_IsLost",
	effect:  losesByUpdate,
	client:  "if a client of v1beta1 adds a label, spec.managedBy is lost, and a run that is created in v1beta1 never has it; Tekton's own controller takes the run over, which the field is there to prevent; the admission webhook says that the field is immutable, and does not notice, because it sees v1beta1; the field of a PipelineRun is lost too",
	cause:   "ConvertTo and ConvertFrom of TaskRunSpec in pkg/apis/pipeline/v1beta1/taskrun_conversion.go, and of PipelineRunSpec in pipelinerun_conversion.go, do not copy the field, which both versions have",
	missed:  "no example has the field",
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
	effect:  losesByUpdate,
	client:  "if a client of v1beta1 adds a label, restartPolicy: Always is lost",
	cause:   "Sidecar.convertTo and Sidecar.convertFrom in container_conversion.go do not copy the field, which both versions have",
	missed:  "no example has the field",
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
	effect:  losesByUpdate,
	client:  "if a client of v1beta1 adds a label to the PipelineRun, the annotation of the task run is lost; if the task run has labels, it gets annotations with their names and values",
	cause:   "PipelineTaskMetadata.convertFrom in pipeline_conversion.go assigns source.Labels to the annotations",
	missed:  "the example has the label foo: bar and the annotation foo: bar",
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
	effect:  losesByUpdate,
	client:  "if a client of v1beta1 adds a label, the server takes the status from the stored object as v1beta1 has it: the artifacts, the span context and buildOutput are lost, and terminationReason becomes Completed",
	cause:   "the methods of TaskRunStatus, StepState and TaskRunStepArtifact in taskrun_conversion.go, and the type TaskRunStatusFields; v1beta1 has no artifacts and no terminationReason, but both versions have the other fields",
	missed:  "no example has the fields",
	report:  `- status\.(artifacts\.|steps\[\d+\]\.(in|out)puts\[\d+\]\.buildOutput: )`,
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
    outputs:
    - name: a
      buildOutput: true
    terminationReason: Skipped
    terminated:
      exitCode: 0
      reason: Completed`,
	meet: edits("v1beta1", addLabel, readsField("v1", `
podName: a
steps:
- name: a
  outputs:
  - name: a
  terminated:
    exitCode: 0
    reason: Completed
  terminationReason: Completed`, "status")),
}, {
	title:   "PipelineRef_IsLost",
	effect:  loses,
	client:  "the server stores and returns the task without pipelineRef; pipelineSpec is lost in the same way; the admission webhook accepts the object if enable-api-fields is alpha",
	cause:   "PipelineTask.convertTo and PipelineTask.convertFrom in pipeline_conversion.go copy neither field",
	missed:  "no example has the fields",
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
	effect:  blocksReads,
	client:  "after a client of v1 has added a step, v1beta1 can read neither the object nor a list that includes it",
	cause:   "the deprecated fields of v1beta1, such as tty, are a list in an annotation of v1, with one element for each step, and deserializeTaskDeprecations in task_conversion.go returns an error if the numbers of steps differ",
	missed:  "the tests do not edit the converted objects",
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
	effect:  loses,
	client:  "a client of v1beta1 creates the run, and the controller writes the task to the status; then clients of v1beta1 read tty: true in status.taskSpec, and no longer in spec.taskSpec",
	cause:   "the annotation has the deprecated fields by the name of the task, which is that of the run in spec and in status; TaskRun.ConvertFrom in taskrun_conversion.go converts the status first, and deserializeTaskDeprecations removes the fields from the annotation",
	missed:  "no example with deprecated fields has a task in both",
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
		readsField("v1beta1", `
podName: a
taskSpec:
  steps:
  - image: a
    name: a
    resources: {}
    tty: true`, "status")(t, c, object)
	},
}, {
	title:   "Annotation_IsNotJSON",
	effect:  blocksReads,
	client:  "v1beta1 can read neither the object nor a list that includes it; any user who may write a Task can set the annotation",
	cause:   "DeserializeFromMetadata in pkg/apis/version/conversion.go",
	missed:  "the tests convert only annotations that the conversion wrote",
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
	effect:  losesByUpdate,
	client:  "if a client of v1alpha1 adds a label, spec.url is lost",
	cause:   "ResolutionRequestSpec in pkg/apis/resolution/v1alpha1 lacks the field",
	missed:  "no example has the field",
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
	effect:  blocksReads,
	client:  "v1alpha1 can read neither the object nor a list that includes it; the schema and the admission webhook accept any value",
	cause:   "ResolutionRequestSpec.ConvertFrom in pkg/apis/resolution/v1alpha1/resolution_request_conversion.go, because the parameters of v1alpha1 are strings",
	missed:  "a test wants this error",
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
	effect:  losesByUpdate,
	client:  "if a client of v1alpha1 adds a label, the conditions are lost, with observedGeneration and the annotations of the status, and a client that waits for the condition Succeeded waits again; clients of v1alpha1 never read conditions",
	cause:   "ResolutionRequestStatus.convertTo and ResolutionRequestStatus.convertFrom in resolution_request_conversion.go copy data and refSource only",
	missed:  "the examples have no status",
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
	meet: edits("v1alpha1", addLabel, readsField("v1beta1", `
data: a
refSource: {}`, "status")),
}, {
	title:   "Parameters_HaveRandomOrder",
	effect:  losesByUpdate,
	client:  "each update in v1alpha1 may change the order in which clients of v1beta1 read the parameters, even if the update changes nothing; the server then stores a new revision, and watches get an event, but metadata.generation stays the same",
	cause:   "ResolutionRequestSpec.ConvertTo in resolution_request_conversion.go iterates over the map that v1alpha1 has instead of a list",
	missed:  "the example has one parameter",
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
	report: `(?s)\s+timeout: \S+\s+timeouts: .*- spec\.timeouts\.`,
	reason: "the project's admission webhook refuses timeout together with timeouts",
}, {
	report: `spec\.workspaces\[\d+\]\.projected\.sources: Invalid value: "null"`,
	reason: "the project's admission webhook refuses a projected volume without sources",
}, {
	report: `\.ports\[\d+\]: Duplicate value`,
	reason: "the project's admission webhook drops an empty protocol, and then the schema refuses both ports",
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
