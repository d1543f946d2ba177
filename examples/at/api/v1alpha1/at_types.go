package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// At is a command that runs once, at its time, in a Pod of the same name.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Schedule",type=string,JSONPath=`.spec.schedule`,description="When the command runs."
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`,description="PENDING, RUNNING or DONE."
// +kubebuilder:validation:XValidation:rule="oldSelf.status.phase == 'PENDING' || self.spec.schedule == oldSelf.spec.schedule",message="the command has been started",fieldPath=".spec.schedule"
// +kubebuilder:validation:XValidation:rule="oldSelf.status.phase == 'PENDING' || self.spec.command == oldSelf.spec.command",message="the command has been started",fieldPath=".spec.command"
// +kubebuilder:validation:XValidation:rule="oldSelf.status.phase == 'PENDING' || self.spec.image == oldSelf.spec.image",message="the command has been started",fieldPath=".spec.image"
type At struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// +required
	Spec AtSpec `json:"spec"`
	// status is the outcome of the command. The default makes a new At PENDING.
	//
	// +kubebuilder:default={}
	// +optional
	Status AtStatus `json:"status,omitzero"`
}

// AtSpec has the command, and the time at which it runs.
type AtSpec struct {
	// schedule is the time to run the command, in UTC and whole seconds, such as
	// 2019-07-03T02:00:00Z. A time in the past means now.
	// ---
	// The pattern rejects text that the format accepts, but that is not an RFC 3339 time, and that
	// a client in Go could not read.
	//
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$`
	// +required
	Schedule metav1.Time `json:"schedule"`
	// command is the command that sh -c runs.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	// +required
	Command string `json:"command"`
	// image is the container image in which the command runs. It must have a shell.
	//
	// +kubebuilder:default=busybox
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Image string `json:"image,omitzero"`
}

// Phase is the progress of an At.
//
// +kubebuilder:validation:Enum=PENDING;RUNNING;DONE
type Phase string

// The phases, in their order.
const (
	PhasePending Phase = "PENDING" // it waits for its time
	PhaseRunning Phase = "RUNNING" // it has a Pod
	PhaseDone    Phase = "DONE"    // the Pod has ended, or has been deleted
)

// AtStatus is the outcome of the command.
type AtStatus struct {
	// phase is PENDING, then RUNNING, and then DONE.
	//
	// +kubebuilder:default=PENDING
	// +optional
	Phase Phase `json:"phase,omitzero"`
	// podUID is the UID of the one Pod that may run the command.
	//
	// +optional
	PodUID types.UID `json:"podUID,omitzero"`
}

// AtList is a list of Ats.
//
// +kubebuilder:object:root=true
type AtList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`
	Items           []At `json:"items"`
}
