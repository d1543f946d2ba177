package listmapkeys

// builtin are the keys of the lists of Kubernetes' own types that the patchMergeKey tag does
// not name, or not completely: those of the listMapKey markers in k8s.io/api, which server-side
// apply uses. After an equals sign is the default of a key. Conditions have no tag where
// strategic merge patches replace them.
var builtin = map[string]string{
	"admissionregistration/v1.ValidatingAdmissionPolicyStatus.conditions":       "type",
	"admissionregistration/v1alpha1.ValidatingAdmissionPolicyStatus.conditions": "type",
	"admissionregistration/v1beta1.ValidatingAdmissionPolicyStatus.conditions":  "type",
	"apiserverinternal/v1alpha1.StorageVersionStatus.conditions":                "type",
	"apiserverinternal/v1alpha1.StorageVersionStatus.storageVersions":           "apiServerID",
	"certificates/v1.CertificateSigningRequestStatus.conditions":                "type",
	"certificates/v1beta1.CertificateSigningRequestStatus.conditions":           "type",
	"core/v1.Container.ports":                                                  "containerPort protocol=TCP",
	"core/v1.EphemeralContainerCommon.ports":                                   "containerPort protocol=TCP",
	"core/v1.PodSpec.topologySpreadConstraints":                                "topologyKey whenUnsatisfiable",
	"core/v1.PodStatus.volumeHealth":                                           "name",
	"core/v1.PodVolumeHealth.healthConditions":                                 "status reason",
	"core/v1.ResourceRequirements.claims":                                      "name",
	"core/v1.ResourceStatus.resources":                                         "resourceID",
	"core/v1.ServiceSpec.ports":                                                "port protocol=TCP",
	"core/v1.VolumeHealthStatus.healthConditions":                              "status reason",
	"flowcontrol/v1beta1.FlowSchemaStatus.conditions":                          "type",
	"flowcontrol/v1beta1.PriorityLevelConfigurationStatus.conditions":          "type",
	"flowcontrol/v1beta2.FlowSchemaStatus.conditions":                          "type",
	"flowcontrol/v1beta2.PriorityLevelConfigurationStatus.conditions":          "type",
	"resource/v1.AllocatedDeviceStatus.conditions":                             "type",
	"resource/v1.ResourceClaimStatus.devices":                                  "driver device pool shareID",
	"resource/v1beta1.AllocatedDeviceStatus.conditions":                        "type",
	"resource/v1beta1.ResourceClaimStatus.devices":                             "driver device pool shareID",
	"resource/v1beta2.AllocatedDeviceStatus.conditions":                        "type",
	"resource/v1beta2.ResourceClaimStatus.devices":                             "driver device pool shareID",
	"scheduling/v1alpha3.CompositePodGroupTemplate.compositePodGroupTemplates": "name",
	"scheduling/v1alpha3.CompositePodGroupTemplate.podGroupTemplates":          "name",
	"scheduling/v1alpha3.WorkloadSpec.compositePodGroupTemplates":              "name",
	"scheduling/v1alpha3.WorkloadSpec.podGroupTemplates":                       "name",
	"scheduling/v1beta1.CompositePodGroupTemplate.compositePodGroupTemplates":  "name",
	"scheduling/v1beta1.CompositePodGroupTemplate.podGroupTemplates":           "name",
	"scheduling/v1beta1.WorkloadSpec.compositePodGroupTemplates":               "name",
	"scheduling/v1beta1.WorkloadSpec.podGroupTemplates":                        "name",
}
