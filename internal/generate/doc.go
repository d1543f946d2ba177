// Package generate makes random objects that the structural schema of a CustomResourceDefinition
// accepts, and objects that break a rule of it in one place.
//
// An object is a function of a stream of draws (see [github.com/crdkit/crdkit/internal/choices]),
// which are read once, into a tree with the shape of the object. Zeros make an object that has only
// the required fields, with the least values, and smaller draws make a smaller object.
//
// If the CEL rules refuse that object, it is repaired without further draws. First, parts with
// rules of their own are repaired one by one, each by its own rules. If that is not enough, the
// tree of an accepted object is changed towards the drawn one, part by part, while its objects are
// accepted. A draw therefore has the same meaning whatever is repaired elsewhere, and objects
// shrink as well as without rules.
//
// Objects are as the API server stores them: valid before and after defaulting, and unchanged by
// pruning. The package is as strict as k8s.io/kube-openapi, with which the API server validates: an
// integer must be a multiple of the whole part of a multipleOf of 2.5, and no integer satisfies a
// maximum of 10.5.
package generate
