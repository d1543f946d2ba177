package corpus_test

import (
	"context"
	"encoding/json"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	kubeadm "sigs.k8s.io/cluster-api/bootstrap/kubeadm/webhooks/admission"

	"github.com/crdkit/crdkit/admission"
	"github.com/crdkit/crdkit/schema/equivalence"
)

// clusterAPIValidation returns the kind of Cluster API that has most rules beside its Go validation.
func clusterAPIValidation(t *testing.T) *validated {
	t.Helper()
	v := &validated{
		handler: admission.NewHandler(runtime.NewScheme(), admission.Validate(validateKubeadmConfig)),
		options: []equivalence.Option{equivalence.Requests(2000)},
		known:   clusterAPIValidationKnown,
	}
	crd := definition(t, published(t, "sigs.k8s.io/cluster-api@v1.14.2", "bootstrap/kubeadm/config/crd/bases/*_kubeadmconfigs.yaml")[0]).CustomResourceDefinition()
	for i := range crd.Spec.Versions {
		crd.Spec.Versions[i].Served = crd.Spec.Versions[i].Name == "v1beta2"
	}
	v.rules = append(v.rules, crd)
	return v
}

// validateKubeadmConfig decides as the webhook does. Its messages lack the name and the values, with which each object
// would be another difference.
func validateKubeadmConfig(_ context.Context, object *unstructured.Unstructured) (field.ErrorList, error) {
	c := &bootstrapv1.KubeadmConfig{}
	text, err := object.MarshalJSON()
	if err == nil {
		err = json.Unmarshal(text, c)
	}
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	errs := kubeadm.Validate(&c.Spec, false, field.NewPath("spec"))
	for _, err := range errs {
		err.BadValue = field.OmitValueType{}
	}
	return errs, nil
}

var clusterAPIValidationKnown = []difference{{
	title:  "Token_CannotBeDecoded",
	report: `the bootstrap token ".*" was not of the form`,
	denies: goDenies,
	object: `{"apiVersion":"bootstrap.cluster.x-k8s.io/v1beta2","kind":"KubeadmConfig","metadata":{"name":"x","namespace":"default"},"spec":{"initConfiguration":{"bootstrapTokens":[{"token":"["}]}}}`,
	cause:  "UnmarshalJSON of BootstrapTokenString in api/bootstrap/kubeadm/v1beta2/kubeadm_types.go; token has no pattern in the definition",
	client: "an object is stored that the controllers cannot decode, nor any list with it",
}, {
	title:  "File_PathRepeats",
	report: `path property must be unique among all files$`,
	denies: goDenies,
	object: `{"apiVersion":"bootstrap.cluster.x-k8s.io/v1beta2","kind":"KubeadmConfig","metadata":{"name":"x","namespace":"default"},"spec":{"files":[{"path":"K"},{"path":"K"}]}}`,
	cause:  "validateFiles in bootstrap/kubeadm/webhooks/admission/kubeadmconfig.go; files has no rule",
	client: "two files with one path are accepted",
}, {
	title:  "File_HasTwoSources",
	report: `only one of content or contentFrom may be specified`,
	denies: goDenies,
	object: `{"apiVersion":"bootstrap.cluster.x-k8s.io/v1beta2","kind":"KubeadmConfig","metadata":{"name":"x","namespace":"default"},"spec":{"files":[{"content":"a","contentFrom":{"secret":{"key":"a","name":"a"}},"path":"a"}]}}`,
	cause:  "validateFiles in bootstrap/kubeadm/webhooks/admission/kubeadmconfig.go; files has no rule",
	client: "a file with two contents is accepted",
}, {
	title:  "User_HasTwoPasswords",
	report: `only one of passwd or passwdFrom may be specified`,
	denies: goDenies,
	object: `{"apiVersion":"bootstrap.cluster.x-k8s.io/v1beta2","kind":"KubeadmConfig","metadata":{"name":"x","namespace":"default"},"spec":{"users":[{"name":"a","passwd":"a","passwdFrom":{"secret":{"key":"a","name":"a"}}}]}}`,
	cause:  "validateUsers in bootstrap/kubeadm/webhooks/admission/kubeadmconfig.go; users has no rule",
	client: "a user with two passwords is accepted",
}, {
	title:  "KubeConfigUser_HasTwoMethods",
	report: `only one of authProvider or exec must be defined$`,
	denies: goDenies,
	object: `{"apiVersion":"bootstrap.cluster.x-k8s.io/v1beta2","kind":"KubeadmConfig","metadata":{"name":"x","namespace":"default"},"spec":{"joinConfiguration":{"discovery":{"file":{"kubeConfig":{"user":{"authProvider":{"name":"a"},"exec":{"command":"a"}}},"kubeConfigPath":"a"}}}}}`,
	cause:  "Validate in bootstrap/kubeadm/webhooks/admission/kubeadmconfig.go; user has no rule",
	client: "a kubeconfig with two ways to authenticate is accepted",
}, {
	title:  "Ignition_IsDisabled",
	report: `only if the KubeadmBootstrapFormatIgnition feature gate is enabled$`,
	denies: goDenies,
	object: `{"apiVersion":"bootstrap.cluster.x-k8s.io/v1beta2","kind":"KubeadmConfig","metadata":{"name":"x","namespace":"default"},"spec":{"format":"ignition"}}`,
	cause:  "validateIgnition in bootstrap/kubeadm/webhooks/admission/kubeadmconfig.go; a rule cannot read a feature gate, which is off by default",
	client: "an object is accepted with a feature that is off",
}, {
	title:  "ExtraArgs_Repeat",
	report: `[eE]xtraArgs name must be unique$`,
	denies: rulesDenies,
	object: `{"apiVersion":"bootstrap.cluster.x-k8s.io/v1beta2","kind":"KubeadmConfig","metadata":{"name":"x","namespace":"default"},"spec":{"clusterConfiguration":{"apiServer":{"extraArgs":[{"name":"a","value":""},{"name":"a","value":"a"}]}}}}`,
	cause:  "the rules of extraArgs; no function in bootstrap/kubeadm/webhooks/admission/kubeadmconfig.go looks at them",
	client: "an argument with two values is refused",
}, {
	title:  "Percentages_AreTooMany",
	report: `the sum of all partition percentages must not be greater than 100$`,
	denies: goDenies,
	object: `{"apiVersion":"bootstrap.cluster.x-k8s.io/v1beta2","kind":"KubeadmConfig","metadata":{"name":"x","namespace":"default"},"spec":{"diskSetup":{"partitions":[{"device":"a","diskLayout":[{"percentage":1},{"percentage":99},{"percentage":1}]}]}}}`,
	cause:  "validateDiskSetup in bootstrap/kubeadm/webhooks/admission/kubeadmconfig.go; diskLayout has no rule",
	client: "a disk is accepted whose partitions do not fit",
}, {
	title:  "Partition_WithoutLayout",
	report: `exactly one of the fields in \[layout diskLayout\] must be set$`,
	denies: rulesDenies,
	object: `{"apiVersion":"bootstrap.cluster.x-k8s.io/v1beta2","kind":"KubeadmConfig","metadata":{"name":"x","namespace":"default"},"spec":{"diskSetup":{"partitions":[{"device":"a"}]}}}`,
	cause:  "the rule of Partition; validateDiskSetup in bootstrap/kubeadm/webhooks/admission/kubeadmconfig.go only adds up the percentages of diskLayout",
	client: "a partition without a layout is refused",
}}
