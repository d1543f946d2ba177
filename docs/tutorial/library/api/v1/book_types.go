package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Book is a book of the library.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
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
	// authors are the people who made the book.
	//
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=20
	Authors []Author `json:"authors,omitzero"`
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

// Author is a person who made a book.
type Author struct {
	// name is the name of the author.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=100
	Name string `json:"name"`
	// role is what the author did, if it was not writing.
	//
	// +optional
	// +kubebuilder:validation:Enum=Translator;Illustrator
	Role string `json:"role,omitempty"`
}

// BookList is a list of books.
//
// +kubebuilder:object:root=true
type BookList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`
	Items           []Book `json:"items"`
}
