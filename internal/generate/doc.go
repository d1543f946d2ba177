// Package generate makes random objects that the structural schema of a
// CustomResourceDefinition accepts, and objects that are right but for one rule.
//
// An object is a function of a stream of draws, see [github.com/crdkit/crdkit/internal/draw]:
// the object of zeros has only what is required, each value the least that its schema
// allows, and an object becomes smaller as its draws do. The draws are read once, into a
// tree that has the shape of the object, and nothing more is drawn if the API server would not
// accept that object. Its parts that have CEL rules of their own are mended one by one,
// each in the place of one in an accepted object; if that is not enough, the tree of an
// object that is known to be accepted is changed towards the one drawn, part by part, as
// far as that makes an accepted object. So a draw keeps its meaning whether or not other
// draws made something that had to go: an object shrinks as well as if there were no rules.
// And there is always an object: the one that is known.
//
// What is made is what the API server stores: it is valid before defaulting and after, and
// pruning takes nothing away from it. What k8s.io/kube-openapi, which the API server
// validates with, does not accept is not made, though JSON schema may allow it: a number
// written without a fraction must obey the whole part of a multipleOf of 2.5, and no
// integer is below a maximum of 10.5.
package generate
