package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Topping is a topping that pizzas refer to by its name.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,categories=restaurant
// +kubebuilder:printcolumn:name="Cost",type=number,JSONPath=`.spec.cost`,description="The cost of one portion."
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Topping struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// +required
	Spec ToppingSpec `json:"spec"`
}

// ToppingSpec describes a topping.
type ToppingSpec struct {
	// cost of one portion.
	//
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	// +required
	Cost float64 `json:"cost"`
}

// ToppingList is a list of toppings.
//
// +kubebuilder:object:root=true
type ToppingList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`
	Items           []Topping `json:"items"`
}
