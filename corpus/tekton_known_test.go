package corpus_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

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
	meet: edits("v1alpha1", addLabel, readsField("v1beta1", `
data: a
refSource: {}`, "status")),
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
	report: `(?s)\s+timeout: \S+\s+timeouts: .*- spec\.timeouts\.`,
	reason: "the project's admission webhook refuses timeout together with timeouts",
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
