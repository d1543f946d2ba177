// Package lost keeps what a conversion to an older version loses.
//
// Let H be an object of the hub version, and B what is left of it on the way to
// a spoke and back. [Diff] finds the changes that make H of B; they are stored
// beside the spoke. When the spoke is converted to the hub again, that gives B,
// or, if a user has edited the spoke, another object B2. [Changes.Apply] makes
// the changes to it:
//
//	changes, err := lost.Diff(b, h, keys)  // on the way to the spoke
//	text := changes.Encode()               // is stored there
//	changes, err := lost.Parse(text)       // on the way back
//	hub, err := changes.Apply(b2, keys)
//
// It is a merge of three: B, and what two sides have made of it, H and B2. Two
// laws hold:
//
//  1. Exactness: if B2 is B, the result is H.
//  2. The user wins: where B2 differs from B, it stays as it is. What the user
//     changed or removed, in objects and in lists with keys, is not touched.
//
// What no change is about keeps its text. An object in which something changes
// keeps the order of its members; new ones come last.
//
// # Changes
//
// A change has a path, of which each step is the name of a member, or selects a
// list element. A hash is a short one, of what B had there. The kinds are:
//
//	{"path":["a","b"],"value":1}               B has nothing there, H has 1
//	{"path":["a","b"],"value":1,"was":"hash"}  B has another value
//	{"path":["a","b"],"was":"hash"}            H has nothing
//	{"path":["a"],"insert":1,"after":E}        H has an element more, behind E
//	{"path":["a"],"order":[E,F],"from":[1,0]}  H has E before F, B has F before E
//
// The selectors of elements are:
//
//	{"key":{"name":"ham"}}          in a list with keys: the one that has this key
//	{"hash":"hash","nth":1,"at":3}  in any other: the one with this content, with nth such
//	                                elements before it; B had it at that index
//
// A change at a path that ends in a hash has no was: it would be the same one.
// A new element of a list with keys is a value at the path that ends in its key.
// Like insert, it has after and before: the nearest elements in H that are also
// in B.
//
// In B2, the steps of the path must lead somewhere, and what was in B must still
// be there; otherwise the change is void, except that an object at the top, such as
// spec, is made again for what B had not in it. Where B had nothing and the user has
// put something, objects are merged member by member, lists with keys element by
// element, and the user's value stays in all other cases. A new element goes
// behind its one neighbour, or else before the other one. The order of elements
// is restored if the user has left it as it was in B.
//
// Each change can be applied without the others, see [Changes.ApplyAs], and in one of
// three modes: where B2 is as B was ([Unedited]), anyway ([Always]), or not at all
// ([Never]). [Changes.Near] finds the changes that may cause a difference somewhere else in
// the object.
//
// # Equality
//
// Strings are equal if they say the same, and objects in any order of members.
// Numbers are equal if their text is: 1 is not 1.0. Null, an empty list, an empty
// object and nothing are four different things.
//
// # What it does not do
//
// It does not know what a spoke can express: the caller finds out which changes are
// against an edit of the spoke, and leaves them out.
//
// Elements of a list without keys are known by their content alone. If a user
// edits one, what it had lost stays lost. If a user adds one that is equal to one
// that only H had, the list then has both.
//
// Objects are compared down to paths of 100 steps, and beyond that whole.
package lost
