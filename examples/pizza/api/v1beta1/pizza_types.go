package v1beta1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// MaxPortions is the largest number of portions of all toppings of a pizza. It is the same in every
// version, so that each pizza of one version is valid in the others.
const MaxPortions = 100

// Pizza is a pizza on the menu.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
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
	// toppings are at most 100 portions in all. The order does not matter.
	// Without any, the pizza gets tomato, mozzarella and salami.
	//
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:XValidation:rule="self.map(t, t.quantity).sum() <= 100",message="a pizza has at most 100 portions of toppings"
	// +optional
	Toppings []PizzaTopping `json:"toppings,omitzero"`
}

// PizzaTopping is one topping of a pizza.
type PizzaTopping struct {
	// name of a Topping.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	// +required
	Name string `json:"name"`
	// quantity is the number of portions, 1 if it is not given.
	//
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	// +default=1
	// +optional
	Quantity *int32 `json:"quantity,omitempty"`
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
