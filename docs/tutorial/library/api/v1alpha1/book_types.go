package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Book is a book of the library.
//
// +kubebuilder:object:root=true
// +kubebuilder:deprecatedversion
type Book struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// +required
	Spec BookSpec `json:"spec,omitzero"`
}

// BookSpec describes a book.
type BookSpec struct {
	// title is the title on the cover.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=200
	Title string `json:"title"`
	// authors are the names of the authors, without duplicates.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=20
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=100
	Authors []string `json:"authors,omitzero"`
	// isbn is the ISBN with 13 digits.
	//
	// +optional
	// +kubebuilder:validation:Pattern=`^[0-9]{13}$`
	ISBN string `json:"isbn,omitempty"`
	// pages is the number of pages.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	Pages int32 `json:"pages,omitempty"`
	// shelf is the shelf on which the book stands.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=20
	Shelf string `json:"shelf,omitempty"`
}

// BookList is a list of books.
//
// +kubebuilder:object:root=true
type BookList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`
	Items           []Book `json:"items"`
}
