package apiservertest

import (
	"reflect"
	"slices"
	"strings"
	"sync"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/kubernetes/scheme"
)

// clientKinds returns client-go's types. The variable scheme.Scheme may have other types too, such
// as those of the operator under test.
var clientKinds = sync.OnceValue(func() *runtime.Scheme {
	s := runtime.NewScheme()
	utilruntime.Must(scheme.AddToScheme(s))
	return s
})

// clusterScoped are the built-in kinds that are in no namespace.
var clusterScoped = []string{
	"CSIDriver", "CSINode", "CertificateSigningRequest", "ClusterRole", "ClusterRoleBinding", "ClusterTrustBundle",
	"DeviceClass", "DeviceTaintRule", "FlowSchema", "IPAddress", "IngressClass", "MutatingAdmissionPolicy",
	"MutatingAdmissionPolicyBinding", "MutatingWebhookConfiguration", "Namespace", "Node", "PersistentVolume", "PriorityClass",
	"PriorityLevelConfiguration", "ResourceSlice", "RuntimeClass", "ServiceCIDR", "StorageClass", "StorageVersion",
	"StorageVersionMigration", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "ValidatingWebhookConfiguration",
	"VolumeAttachment", "VolumeAttributesClass",
}

// shortNames are those of built-in kinds (kubernetes/pkg/registry, ShortNames).
var shortNames = map[string][]string{
	"CertificateSigningRequest": {"csr"}, "ConfigMap": {"cm"}, "CronJob": {"cj"}, "DaemonSet": {"ds"}, "Deployment": {"deploy"}, "Endpoints": {"ep"},
	"Event": {"ev"}, "HorizontalPodAutoscaler": {"hpa"}, "IPAddress": {"ip"}, "Ingress": {"ing"}, "LimitRange": {"limits"}, "Namespace": {"ns"},
	"NetworkPolicy": {"netpol"}, "Node": {"no"}, "PersistentVolume": {"pv"}, "PersistentVolumeClaim": {"pvc"}, "Pod": {"po"},
	"PodDisruptionBudget": {"pdb"}, "PriorityClass": {"pc"}, "ReplicaSet": {"rs"}, "ReplicationController": {"rc"}, "ResourceQuota": {"quota"},
	"Service": {"svc"}, "ServiceAccount": {"sa"}, "StatefulSet": {"sts"}, "StorageClass": {"sc"}, "VolumeAttributesClass": {"vac"},
}

// upserted are the built-in kinds of which an update creates an object that does not exist
// (kubernetes/pkg/registry, AllowCreateOnUpdate).
var upserted = []string{
	"ClusterRole", "ClusterRoleBinding", "Endpoints", "Event", "Lease", "LimitRange", "Role", "RoleBinding", "RuntimeClass", "Service",
}

// conditional are the built-in kinds whose updates need a resourceVersion
// (kubernetes/pkg/registry, AllowUnconditionalUpdate).
var conditional = []string{
	"CSIDriver", "CSINode", "CSIStorageCapacity", "ClusterTrustBundle", "Lease", "MutatingAdmissionPolicy",
	"MutatingAdmissionPolicyBinding", "MutatingWebhookConfiguration", "PodCertificateRequest", "PodDisruptionBudget",
	"RuntimeClass", "StorageVersionMigration", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding",
	"ValidatingWebhookConfiguration", "VolumeAttachment",
}

// generated are the built-in kinds that have a metadata.generation
// (kubernetes/pkg/registry, PrepareForCreate).
var generated = []string{
	"CSIDriver", "CronJob", "DaemonSet", "Deployment", "DeviceClass", "DeviceTaintRule", "EndpointSlice", "FlowSchema",
	"HorizontalPodAutoscaler", "Ingress", "IngressClass", "Job", "MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding",
	"MutatingWebhookConfiguration", "NetworkPolicy", "Pod", "PodDisruptionBudget", "PodTemplate", "PriorityClass",
	"PriorityLevelConfiguration", "ReplicaSet", "ReplicationController", "ResourceSlice", "StatefulSet",
	"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "ValidatingWebhookConfiguration",
}

// nameOf returns what checks the names of a built-in kind (kubernetes/pkg/apis, ValidateObjectMeta).
func nameOf(kind string) validation.ValidateNameFunc {
	switch kind {
	case "Namespace", "Service", "StatefulSet":
		return validation.NameIsDNSLabel
	case "ClusterRole", "ClusterRoleBinding", "ClusterTrustBundle", "Event", "IPAddress", "PodDisruptionBudget", "Role", "RoleBinding":
		return func(name string, _ bool) []string { return content.IsPathSegmentName(name) }
	}
	return validation.NameIsDNSSubdomain
}

// shortFinalizers are the groups of Kubernetes whose objects may have a finalizer without a domain
// (kubernetes/pkg/apis, where ValidateObjectMeta is that of apimachinery).
var shortFinalizers = []string{"admissionregistration.k8s.io", "coordination.k8s.io", "node.k8s.io", "policy"}

// keptMetadata has, for built-in kinds, the path of the metadata that the status subresource does not change
// (kubernetes/pkg/registry, PrepareForUpdate and GetResetFields of the strategies for status).
var keptMetadata = map[string][]any{
	"Deployment": {"metadata", "labels"}, "Pod": {"metadata", "ownerReferences"},
	"DeviceTaintRule": {"metadata"}, "FlowSchema": {"metadata"}, "PodCertificateRequest": {"metadata"}, "PriorityLevelConfiguration": {"metadata"},
	"ResourceClaim": {"metadata"}, "ServiceCIDR": {"metadata"}, "StorageVersionMigration": {"metadata"},
	"ValidatingAdmissionPolicy": {"metadata"}, "VolumeAttachment": {"metadata"},
}

// immutable has, for built-in kinds, the fields that an update must not change once they are set
// (kubernetes/pkg/apis, ValidateUpdate). Any other value may be a default that is missing here.
var immutable = map[string][]string{
	"ClusterRoleBinding": {"roleRef"}, "ConfigMap": nil, "DaemonSet": {"spec.selector"}, "Deployment": {"spec.selector"},
	"Job":                   {"spec.completionMode", "spec.selector", "spec.template"},
	"PersistentVolumeClaim": {"spec.accessModes", "spec.selector", "spec.storageClassName", "spec.volumeName"},
	"ReplicaSet":            {"spec.selector"}, "RoleBinding": {"roleRef"}, "Secret": {"type"},
	"StatefulSet":  {"spec.podManagementPolicy", "spec.selector", "spec.serviceName", "spec.volumeClaimTemplates"},
	"StorageClass": {"parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"},
}

// validateImmutable refuses changes of immutable fields, and of the data of a ConfigMap or Secret that is immutable. A suspended
// Job may change.
func validateImmutable(kind string, obj, old runtime.Object) (errs field.ErrorList) {
	paths, known := immutable[kind]
	if !known {
		return nil
	}
	now, _ := runtime.DefaultUnstructuredConverter.ToUnstructured(obj) // a type of client-go
	before, _ := runtime.DefaultUnstructuredConverter.ToUnstructured(old)
	frozen := before["immutable"] == true
	if frozen {
		paths = slices.Concat(paths, []string{"immutable", "data", "binaryData"})
	}
	if suspended, _, _ := unstructured.NestedBool(before, "spec", "suspend"); suspended {
		return nil
	}
	for _, path := range paths {
		steps := strings.Split(path, ".")
		want, set, _ := unstructured.NestedFieldNoCopy(before, steps...)
		got, _, _ := unstructured.NestedFieldNoCopy(now, steps...)
		if (set || frozen) && !reflect.DeepEqual(got, want) {
			errs = append(errs, field.Invalid(field.NewPath(steps[0], steps[1:]...), got, validation.FieldImmutableErrorMsg))
		}
	}
	return errs
}

// desired returns the part of an object whose changes increment its generation
// (kubernetes/pkg/registry, PrepareForUpdate).
func desired(obj runtime.Object) any {
	switch o := obj.(type) {
	case *admissionregistrationv1.MutatingWebhookConfiguration:
		return o.Webhooks
	case *admissionregistrationv1.ValidatingWebhookConfiguration:
		return o.Webhooks
	case *appsv1.Deployment:
		return []any{o.Spec, o.Annotations}
	case *corev1.PodTemplate:
		return o.Template
	case *discoveryv1.EndpointSlice:
		return []any{o.Labels, o.AddressType, o.Endpoints, o.Ports}
	case *schedulingv1.PriorityClass:
		return nil
	}
	return fieldOf(obj, "Spec").Interface()
}
