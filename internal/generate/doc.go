// Package generate makes random objects that the structural schema of a CustomResourceDefinition
// accepts, and objects that break a rule of it in one place.
//
// An object is a function of a stream of draws, see [github.com/crdkit/crdkit/internal/draw]. The
// object of zeros has only the required fields, with the least values, and smaller draws make a
// smaller object. The draws are read once, into a tree with the shape of the object.
//
// If the CEL rules refuse that object, nothing more is drawn. First, parts with rules of their own
// are repaired one by one, each by its rules alone. If that is not enough, the tree of an
// accepted object is changed towards the drawn one, part by part, while its objects are accepted.
// So a draw has the same meaning whatever had to be changed elsewhere, and objects shrink as well
// as without rules.
//
// Objects are as the API server stores them: valid before and after defaulting, and pruning drops
// nothing. Where k8s.io/kube-openapi, with which the API server validates, is stricter than JSON
// schema, so is this package: an integer must obey the whole part of a multipleOf of 2.5, and no
// integer is below a maximum of 10.5.
package generate
