package registration

import (
	"net/netip"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// NetworkPolicy adds a NetworkPolicy with the name of the declaration to the manifests. It admits to the Pods with the labels
// only the API servers, which connect from the CIDRs, such as 10.0.0.0/28, and the peers, such as Prometheus, and those only to
// the TCP port on which the container listens (not that of the [Service]). [Webhooks.Inject] neither reads nor writes it.
//
// API servers connect from the nodes of the control plane or, if it is hosted, from addresses that the provider documents.
// With Konnectivity, the Pods of its agents connect: give them as a peer, or the CIDRs of their nodes if they use the host
// network. If a CIDR is wrong, all calls of the webhooks time out. The policy
//
//   - blocks all other ports of the Pods, unless another policy allows them,
//   - never blocks the node of a Pod: neither the probes of its kubelet nor its processes in the host network,
//   - has no effect if the network plugin does not enforce policies, and
//   - depends on how the plugin sees API servers in the host network: by default, Cilium matches no node by a CIDR.
func NetworkPolicy(podLabels map[string]string, port int32, apiServers []string, peers ...networkingv1.NetworkPolicyPeer) Option {
	return func(s *settings) {
		if _, err := labels.ValidatedSelectorFromSet(podLabels); err != nil || len(podLabels) == 0 { // none selects all Pods
			s.errorf("NetworkPolicy: labels %v, expected valid ones of the operator's Pods", podLabels)
		}
		if port < 1 || port > 65535 {
			s.errorf("NetworkPolicy: port %d, expected that of the container, from 1 to 65535", port)
		}
		var from []networkingv1.NetworkPolicyPeer
		for _, cidr := range apiServers {
			if prefix, err := netip.ParsePrefix(cidr); err != nil || prefix != prefix.Masked() {
				s.errorf("NetworkPolicy: CIDR %q of API servers, expected one such as 10.0.0.0/28 or fd00::/64", cidr)
			}
			from = append(from, networkingv1.NetworkPolicyPeer{IPBlock: &networkingv1.IPBlock{CIDR: cidr}})
		}
		if from = append(from, peers...); len(from) == 0 { // would admit everyone
			s.errorf("NetworkPolicy: neither CIDRs nor peers, expected those of the API servers")
		}
		if s.networkPolicy != nil {
			s.errorf("NetworkPolicy is given twice")
		}
		s.networkPolicy = &networkingv1.NetworkPolicySpec{
			PodSelector: metav1.LabelSelector{MatchLabels: podLabels},
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
			Ingress:     []networkingv1.NetworkPolicyIngressRule{{From: from, Ports: []networkingv1.NetworkPolicyPort{{Port: new(intstr.FromInt32(port))}}}},
		}
	}
}

// networkPolicyObjects returns the policy, if there is one.
func (s *settings) networkPolicyObjects() []*object {
	if s.networkPolicy == nil {
		return nil
	}
	spec, _ := runtime.DefaultUnstructuredConverter.ToUnstructured(s.networkPolicy) // of a struct, which cannot fail
	gv := networkingv1.SchemeGroupVersion
	return []*object{{kind: "NetworkPolicy", name: s.name, resource: gv.WithResource("networkpolicies"), declared: map[string]any{
		"apiVersion": gv.String(), "kind": "NetworkPolicy", "metadata": map[string]any{"name": s.name, "namespace": s.ownNamespace}, "spec": spec,
	}}}
}
