package apiservertest

import (
	"fmt"
	"maps"
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/storage"
)

// selectable returns the fields by which clients may select objects of a built-in kind, besides name and namespace
// (kubernetes/pkg/registry, ToSelectableFields and SelectableFields).
func selectable(obj runtime.Object) fields.Set {
	switch o := obj.(type) {
	case *corev1.Pod:
		return fields.Set{
			"spec.nodeName": o.Spec.NodeName, "spec.restartPolicy": string(o.Spec.RestartPolicy), "spec.schedulerName": o.Spec.SchedulerName,
			"spec.serviceAccountName": o.Spec.ServiceAccountName, "spec.hostNetwork": strconv.FormatBool(o.Spec.HostNetwork),
			"status.phase": string(o.Status.Phase), "status.podIP": o.Status.PodIP, "status.nominatedNodeName": o.Status.NominatedNodeName,
		}
	case *corev1.Node:
		return fields.Set{"spec.unschedulable": strconv.FormatBool(o.Spec.Unschedulable)}
	case *corev1.Namespace:
		return fields.Set{"status.phase": string(o.Status.Phase)}
	case *corev1.Secret:
		return fields.Set{"type": string(o.Type)}
	case *corev1.Service:
		return fields.Set{"spec.clusterIP": o.Spec.ClusterIP, "spec.type": string(o.Spec.Type)}
	case *corev1.Event:
		set := involved("involvedObject", o.InvolvedObject)
		set["reason"], set["type"], set["reportingComponent"], set["source"] = o.Reason, o.Type, o.ReportingController, o.Source.Component
		if o.Source.Component == "" {
			set["source"] = o.ReportingController
		}
		return set
	case *eventsv1.Event:
		set := involved("regarding", o.Regarding)
		set["reason"], set["type"], set["reportingController"] = o.Reason, o.Type, o.ReportingController
		return set
	case *corev1.ReplicationController:
		return fields.Set{"status.replicas": strconv.Itoa(int(o.Status.Replicas))}
	case *batchv1.Job:
		return fields.Set{"status.successful": strconv.Itoa(int(o.Status.Succeeded))}
	case *certificatesv1.CertificateSigningRequest:
		return fields.Set{"spec.signerName": o.Spec.SignerName}
	case *certificatesv1.ClusterTrustBundle:
		return fields.Set{"spec.signerName": o.Spec.SignerName}
	case *certificatesv1.PodCertificateRequest:
		return fields.Set{"spec.signerName": o.Spec.SignerName, "spec.podName": o.Spec.PodName, "spec.nodeName": string(o.Spec.NodeName)}
	case *resourcev1.ResourceSlice:
		set := fields.Set{"spec.nodeName": "", "spec.driver": o.Spec.Driver, "spec.pool.name": o.Spec.Pool.Name}
		if o.Spec.NodeName != nil {
			set["spec.nodeName"] = *o.Spec.NodeName
		}
		return set
	}
	return nil
}

func involved(field string, ref corev1.ObjectReference) fields.Set {
	return fields.Set{
		field + ".kind": ref.Kind, field + ".namespace": ref.Namespace, field + ".name": ref.Name, field + ".uid": string(ref.UID),
		field + ".apiVersion": ref.APIVersion, field + ".resourceVersion": ref.ResourceVersion, field + ".fieldPath": ref.FieldPath,
	}
}

// addSelectors makes a scheme accept the fields of a kind in selectors.
func addSelectors(s *runtime.Scheme, gvk schema.GroupVersionKind, obj runtime.Object) {
	known := selectable(obj)
	if known == nil {
		return // the scheme accepts name and namespace
	}
	_ = s.AddFieldLabelConversionFunc(gvk, func(label, value string) (string, string, error) { // the scheme has the kind
		if known.Has(label) || label == "metadata.name" || label == "metadata.namespace" {
			return label, value, nil
		}
		return "", "", fmt.Errorf("field label not supported: %s", label)
	})
}

// withSelectable adds the selectable fields to those that a function returns.
func withSelectable(attrs storage.AttrFunc) storage.AttrFunc {
	return func(obj runtime.Object) (labels.Set, fields.Set, error) {
		l, f, err := attrs(obj)
		if err == nil {
			maps.Copy(f, selectable(obj))
		}
		return l, f, err
	}
}
