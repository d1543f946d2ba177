package restaurant

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Pizza is a pizza on the menu.
//
// +kubebuilder:object:root=true
type Pizza struct {
	metav1.TypeMeta
	metav1.ObjectMeta

	Spec   PizzaSpec
	Status PizzaStatus
}

// PizzaSpec is what the customer asks for.
type PizzaSpec struct {
	// Toppings of the pizza. The order does not matter. No list and an empty one are two
	// things, because they are in the served versions.
	Toppings []PizzaTopping
}

// PizzaTopping is one topping of a pizza.
type PizzaTopping struct {
	// Name of a Topping.
	Name string
	// Quantity is the number of portions.
	Quantity int32
}

// PizzaStatus is what the restaurant says about the pizza.
type PizzaStatus struct {
	// Cost is the sum of the toppings' costs; nil until it has been computed.
	Cost *float64
}

// PizzaList is a list of pizzas.
//
// +kubebuilder:object:root=true
type PizzaList struct {
	metav1.TypeMeta
	metav1.ListMeta

	Items []Pizza
}

// Topping is a topping that pizzas may have.
//
// +kubebuilder:object:root=true
type Topping struct {
	metav1.TypeMeta
	metav1.ObjectMeta

	Spec ToppingSpec
}

// ToppingSpec is what there is to know about a topping.
type ToppingSpec struct {
	// Cost of one portion.
	Cost float64
}

// ToppingList is a list of toppings.
//
// +kubebuilder:object:root=true
type ToppingList struct {
	metav1.TypeMeta
	metav1.ListMeta

	Items []Topping
}
