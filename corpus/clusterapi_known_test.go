package corpus_test

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

var clusterAPIKnown = []known{{
	title:   "Annotation_IsNotJSON",
	effect:  blocksReads,
	client:  "after the upgrade, v1beta2 can read neither the object nor a list that includes it; any user who may write a Cluster can set the annotation before",
	cause:   "UnmarshalData in util/conversion/conversion.go",
	missed:  "the fuzz tests convert only annotations that the conversion wrote",
	report:  `the annotations law(?s:.*)(unexpected end of JSON input|invalid character)`,
	release: "v1.8.4",
	object: `
apiVersion: cluster.x-k8s.io/v1beta1
kind: Cluster
metadata:
  name: a
  annotations:
    cluster.x-k8s.io/conversion-data: "{"`,
	meet: unreadable("v1beta2", "unexpected end of JSON input"),
}, {
	title:   "Reference_APIVersionHasTwoSlashes",
	effect:  blocksReads,
	client:  "after the upgrade, v1beta2 can read neither the object nor a list that includes it; the schema and the admission webhook of v1.8.4 accept any apiVersion of this reference",
	cause:   "convertToContractVersionedObjectReference in core/webhooks/conversion/common.go returns the error of schema.ParseGroupVersion",
	missed:  "the fuzz tests set valid references",
	report:  `failed to parse apiVersion: unexpected GroupVersion string`,
	release: "v1.8.4",
	object: `
apiVersion: cluster.x-k8s.io/v1beta1
kind: MachinePool
metadata:
  name: a
spec:
  clusterName: a
  template:
    spec:
      clusterName: a
      bootstrap:
        dataSecretName: a
      infrastructureRef:
        apiVersion: a/b/c`,
	meet: unreadable("v1beta2", "unexpected GroupVersion string: a/b/c"),
}, {
	title:   "Spec_WasOptional",
	effect:  blocksWrites,
	client:  "each update in v1beta2 fails, even if it only adds a label or removes a finalizer; the admission webhook of v1.14.2 refuses updates in v1beta1 too, for want of a reference and a topology",
	cause:   "the schema of v1beta2 requires spec, in 13 of the 17 kinds, and its Go type leaves out the empty endpoint and the empty spec that the admission webhook of v1.8.4 writes",
	missed:  "the fuzz tests compare Go values, and do not validate",
	report:  `the acceptance law(?s:.*)\tspec: Required value`,
	release: "v1.8.4",
	object: `
apiVersion: cluster.x-k8s.io/v1beta1
kind: Cluster
metadata:
  name: a
  finalizers: [example.com/a]
spec:
  controlPlaneEndpoint:
    host: ""
    port: 0`,
	meet: unwritable("v1beta2", "spec: Required value"),
}, {
	title:   "ClusterName_IsNoLabelValue",
	effect:  blocksReads,
	client:  "v1alpha1 can read neither the object nor a list that includes it; the schema of v1beta2 accepts any name of 1 to 63 characters, and the admission webhook does not check it",
	cause:   "ConvertIPAddressClaimHubToV1Alpha1 in core/webhooks/conversion/ipaddressclaim.go writes the name into a label",
	missed:  "the fuzz tests do not validate labels",
	report:  `the acceptance law(?s:.*)a valid label must be`,
	release: today,
	object: `
apiVersion: ipam.cluster.x-k8s.io/v1beta2
kind: IPAddressClaim
metadata:
  name: a
spec:
  clusterName: /
  poolRef:
    apiGroup: a
    kind: a
    name: a`,
	meet: unreadable("v1alpha1", "metadata.labels: Invalid value"),
}, {
	title:   "ExtraVolumes_SameHostPath",
	effect:  loses,
	client:  "after the upgrade, the second volume has no readOnly: true in v1beta2, and the control plane component can write to the mount; in the other order, both volumes are read-only",
	cause:   "RestoreBoolIntentKubeadmConfigSpec in bootstrap/kubeadm/webhooks/conversion/kubeadmconfig.go finds the volume by its hostPath",
	missed:  "the fuzz tests generate lists of at most one volume",
	report:  `extraVolumes\[\d+\]\.readOnly: true`,
	release: "v1.8.4",
	object: `
apiVersion: bootstrap.cluster.x-k8s.io/v1beta1
kind: KubeadmConfig
metadata:
  name: a
spec:
  clusterConfiguration:
    controllerManager:
      extraVolumes:
      - name: a
        hostPath: /a
        mountPath: /a
      - name: b
        hostPath: /a
        mountPath: /b
        readOnly: true`,
	meet: reads("v1beta2", `
clusterConfiguration:
  controllerManager:
    extraVolumes:
    - name: a
      hostPath: /a
      mountPath: /a
    - name: b
      hostPath: /a
      mountPath: /b`),
}, {
	title:   "JoinConfiguration_ComesBack",
	effect:  losesByUpdate,
	client:  "a client of v1beta1 removes spec.joinConfiguration, and the object still has its timeout",
	cause:   "RestoreKubeadmConfigSpec in kubeadmconfig.go does not check whether the client still has the field",
	missed:  "the fuzz tests remove the spec of converted objects, but check only that the conversion succeeds",
	report:  `the edited law(?s:.*)\+ spec\.(template\.spec\.|kubeadmConfigSpec\.)?(joinConfiguration\.discovery\.timeout|clusterConfiguration\.apiServer\.timeoutForControlPlane): "1s"`,
	release: today,
	object: `
apiVersion: bootstrap.cluster.x-k8s.io/v1beta2
kind: KubeadmConfig
metadata:
  name: a
spec:
  joinConfiguration:
    timeouts:
      tlsBootstrapSeconds: 1`,
	meet: edits("v1beta1", func(object map[string]any) { unstructured.RemoveNestedField(object, "spec", "joinConfiguration") },
		reads("v1beta2", `
joinConfiguration:
  timeouts:
    tlsBootstrapSeconds: 1`)),
}, {
	title:   "AllOf_Panics",
	effect:  blocksWrites,
	client:  "a client of v1beta1 adds allOf to the schema of a variable, the conversion panics, and the update fails without a hint at the field; anyOf and oneOf panic too; the same update passes in v1beta2; the project refuses a ClusterClass unless the feature gate ClusterTopology is on, which it is not by default",
	cause:   "restoreBoolIntentJSONSchemaProps in core/webhooks/conversion/clusterclass.go indexes the list of the annotation, which describes the object before the update, by the position in the new list; its condition compares the new list with itself",
	missed:  "the fuzz tests convert an object only with the annotation that belongs to it",
	report:  `the edited law(?s:.*)index out of range(?s:.*)restoreBoolIntentJSONSchemaProps`,
	release: today,
	object: `
apiVersion: cluster.x-k8s.io/v1beta2
kind: ClusterClass
metadata:
  name: a
spec:
  infrastructure:
    templateRef:
      apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
      kind: ATemplate
      name: a
  controlPlane:
    templateRef:
      apiVersion: controlplane.cluster.x-k8s.io/v1beta1
      kind: ATemplate
      name: a
  variables:
  - name: a
    required: false
    schema:
      openAPIV3Schema:
        type: string`,
	meet: uneditable("v1beta1", func(object map[string]any) {
		variables, _, _ := unstructured.NestedSlice(object, "spec", "variables")
		_ = unstructured.SetNestedSlice(variables[0].(map[string]any), []any{map[string]any{"minLength": int64(1)}}, "schema", "openAPIV3Schema", "allOf")
		_ = unstructured.SetNestedSlice(object, variables, "spec", "variables")
	}, "internal error occurred during conversion"),
}, {
	title:   "Duration_LessThanASecond", // normal declares it
	effect:  loses,
	client:  "after the upgrade, the timeout is 0, which means no limit according to the documentation of the field; all durations of v1beta1 lose the fraction of a second",
	cause:   "ConvertToSeconds in api/core/v1beta2/conversion.go truncates",
	missed:  "the fuzz tests generate whole seconds only",
	release: "v1.8.4",
	object: `
apiVersion: cluster.x-k8s.io/v1beta1
kind: Machine
metadata:
  name: a
spec:
  clusterName: a
  bootstrap:
    dataSecretName: a
  infrastructureRef:
    kind: a
    name: a
  nodeDrainTimeout: 500ms`,
	meet: reads("v1beta2", `
clusterName: a
bootstrap:
  dataSecretName: a
infrastructureRef:
  kind: a
  name: a
deletion:
  nodeDrainTimeoutSeconds: 0`),
}, {
	report: `- (name|from): a\n(?s:.*)- (name|from): a\n(?s:.*)(restoreBoolIntentJSONSchemaProps|property .* not found in source data|schema\.openAPIV3Schema\.[\w.-]+: true)`,
	reason: "the project's admission webhook refuses two variables with one name, and only the project writes a status",
}, {
	report: `definition \d+ for variable .* not found in source data`,
	reason: "only the project writes a status, and no two variables of it with one name",
}, {
	report: `variables\[\d+\]\S*\.openAPIV3Schema\.\S+: the schema of v1beta\d keeps it, and its Go type drops it`,
	reason: "the Go type has all fields of a schema that the project uses",
}, {
	report: `\.certificatesExpiryDays in body should be greater than or equal to 7`,
	reason: "the project's admission webhook refuses less than 7 days",
}, {
	report: `\.files\[\d+\]\.append: true`,
	reason: "the project's admission webhook refuses two files with one path",
}, {
	report: `\.patches\[\d+\]\.definitions\[\d+\]\.selector\.matchResources\.(controlPlane|infrastructureCluster): true`,
	reason: "the project's admission webhook refuses two patches with one name",
}, {
	title:   "Machines_BecomeEqual",
	report:  `entries in (machines|pods) must be unique`,
	reason:  "an update passes, because it does not change the machines",
	release: today,
	object: `
apiVersion: cluster.x-k8s.io/v1beta1
kind: MachineDrainRule
metadata:
  name: a
spec:
  drain:
    behavior: Drain
  machines:
  - selector:
      matchLabels: {}
  - selector: {}`,
	meet: writable("v1beta2"),
}, {
	report: `spec\.poolRef\.apiGroup: Invalid value: "null"`,
	reason: "no pool is of the core group, so each reference has an apiGroup",
}, {
	report: `IPAddress \S+: the acceptance law(?s:.*)spec.address`,
	reason: "the project's admission webhook refuses an empty address",
}, {
	title:   "Object_IsEmpty",
	report:  `the acceptance law(?s:.*)in body should have at least 1 properties`,
	reason:  "an update passes, because it does not change what is empty",
	release: "v1.8.4",
	object: `
apiVersion: bootstrap.cluster.x-k8s.io/v1beta1
kind: KubeadmConfig
metadata:
  name: a
spec:
  diskSetup: {}`,
	meet: writable("v1beta2"),
}, {
	title:   "Reference_IsEmpty",
	report:  `spec\.infrastructureRef: Required value`,
	reason:  "an update passes, because it does not change the reference",
	release: "v1.8.4",
	object: `
apiVersion: cluster.x-k8s.io/v1beta1
kind: Machine
metadata:
  name: reference
spec:
  clusterName: a
  bootstrap:
    dataSecretName: a
  infrastructureRef: {}`,
	meet: writable("v1beta2"),
}, {
	title:   "Timeout_IsNegative", // Object_IsEmpty hides it
	reason:  "an update passes, because it does not change the timeout",
	release: "v1.8.4",
	object: `
apiVersion: bootstrap.cluster.x-k8s.io/v1beta1
kind: KubeadmConfig
metadata:
  name: negative
spec:
  joinConfiguration:
    discovery:
      timeout: -1s`,
	meet: writable("v1beta2"),
}, {
	title:   "HealthCheckTimeout_IsLost", // normal declares it
	reason:  "the project requires that a control plane has one value",
	release: today,
	object: `
apiVersion: bootstrap.cluster.x-k8s.io/v1beta2
kind: KubeadmConfig
metadata:
  name: timeouts
spec:
  joinConfiguration:
    timeouts:
      controlPlaneComponentHealthCheckSeconds: 5
      tlsBootstrapSeconds: 1`,
	meet: edits("v1beta1", addLabel, reads("v1beta2", `
joinConfiguration:
  timeouts:
    tlsBootstrapSeconds: 1`)),
}, {
	title:   "Prefix_OutsideOf32Bits", // normal declares it
	reason:  "no valid prefix is as large",
	release: today,
	object: `
apiVersion: ipam.cluster.x-k8s.io/v1beta1
kind: IPAddress
metadata:
  name: a
spec:
  address: 10.0.0.1
  prefix: 4294967320
  claimRef:
    name: a
  poolRef:
    apiGroup: a
    kind: a
    name: a`,
	meet: reads("v1beta1", `
address: 10.0.0.1
prefix: 24
claimRef:
  name: a
poolRef:
  apiGroup: a
  kind: a
  name: a`),
}}
