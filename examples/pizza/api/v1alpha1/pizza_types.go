package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Pizza is a pizza on the menu.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=pz,categories=restaurant
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Toppings",type=string,JSONPath=`.spec.toppings`,description="What is on the pizza."
// +kubebuilder:printcolumn:name="Cost",type=number,JSONPath=`.status.cost`,description="The cost of all toppings."
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Pizza struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// +optional
	Spec PizzaSpec `json:"spec,omitzero"`
	// +optional
	Status PizzaStatus `json:"status,omitzero"`
}

// PizzaSpec is what the customer asks for.
type PizzaSpec struct {
	// toppings are names of Toppings, at most 100. A name that is given twice
	// means a double portion. The order does not matter. Without any, the pizza
	// gets tomato, mozzarella and salami.
	//
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	// +optional
	Toppings []string `json:"toppings,omitzero"`
}

// PizzaStatus is what the restaurant says about the pizza.
type PizzaStatus struct {
	// cost is the sum of the toppings' costs, to the cent. It is absent until it
	// has been computed.
	//
	// +kubebuilder:validation:Minimum=0
	// +optional
	Cost *float64 `json:"cost,omitempty"`
}

// PizzaList is a list of pizzas.
//
// +kubebuilder:object:root=true
type PizzaList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`
	Items           []Pizza `json:"items"`
}
