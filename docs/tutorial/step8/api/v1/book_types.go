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

// BookSpec is what the library knows about a book.
type BookSpec struct {
	// title as it is on the cover.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=200
	Title string `json:"title"`
	// authors are who has made the book.
	//
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=20
	Authors []Author `json:"authors,omitzero"`
	// isbn is the ISBN of 13 digits.
	//
	// +optional
	// +kubebuilder:validation:Pattern=`^[0-9]{13}$`
	ISBN string `json:"isbn,omitempty"`
	// pages is how many pages the book has.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	Pages int32 `json:"pages,omitempty"`
	// shelf is where the book stands.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=20
	Shelf string `json:"shelf,omitempty"`
}

// Author is a person who has made a book.
type Author struct {
	// name of the author.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=100
	Name string `json:"name"`
	// role in which the author has made the book, if it is not as its writer.
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
