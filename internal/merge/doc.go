// Package merge merges two changes of one JSON object: it finds the differences between before
// and after, and applies them to a third object, which has more than before, or has been edited.
// There are two encodings of the differences:
//
//   - [Patch] is for a mutating webhook. Before and after are the encodings of a Go value before
//     and after the author's function; the third is the object as the API server sent it. The
//     changes become a JSON patch (RFC 6902), and the merged object.
//   - [Diff] is for a conversion. After is an object that is converted to an older version, and
//     before is the same object after its return from there. The [Changes] become an annotation,
//     and [Changes.Apply] applies them to the returned object after a user may have edited it in the
//     older version.
//
// Where nothing changed, the third object keeps its text. Two laws hold for both:
//
//  1. If the third object equals before, it becomes after.
//  2. Parts that only the third object has stay in their places: as far as list elements can be
//     identified, none is lost, invented, doubled or moved.
//
// # Which list element is which
//
//  1. Equal elements are the same, and so are those with equal declared keys. Elements with
//     different declared keys are never the same. A missing key has its default in the schema, or
//     else is empty. Several elements with one key are matched as in a list without keys.
//  2. Of the others, those are the same that share the most leaves, less those that differ in the
//     element that has more. A leaf is a value, at any depth, and its path.
//  3. An element is the same in its place if one leaf differs, or if one of the two elements has
//     all leaves of the other. Elsewhere they must also share a leaf that no other element has;
//     then it suffices that most members of the element stayed.
//  4. Where no leaf is shared, the only element that changed between two unchanged
//     neighbors is the same, unless both have strings.
//  5. Where two elements are equally likely, neither is chosen.
//  6. Because a conversion keeps the length and the order of a list, where elements seem to be
//     removed or moved, [Diff] pairs each element with the next that has all its leaves or, instead
//     of removing any, with the next that shares a leaf, if that is possible for all of them. It
//     pairs the remaining elements of lists of one length by their index.
//
// A zero value is like an absent one: it is not a leaf, and not part of a key. A new element that
// shares nearly all leaves with a removed one is taken for it, and an element that was edited in
// most of its leaves is taken for a new one. Only the first thousand values of an element are
// compared, and elements that share only leaves that more than 16 elements have are not compared at
// all.
//
// # Patches
//
// Each member of after is merged, members that only before has are removed, and those that neither
// has stay. If one of raw and before has an object, an absent value or null in the other counts as
// an empty object, because a Go struct may be encoded where raw has nothing, and left out when it
// is zero. Lists are merged if raw's is as long as before's. A Go type that sorts a list while
// decoding it mixes up the unknown fields of its elements, unless [Patch] matches them as those of a
// conversion.
// All other values become those of after.
//
// A list is replaced whole if elements change places, or if that is shorter than the operations on
// its elements. Instead of more than 10,000 operations, which is the limit of the API server for a
// PATCH request, the members of the object are replaced whole. There are no test operations,
// because the API server applies a patch to the very object that it sent.
//
// # Changes
//
// A change has a path of names and selectors of list elements, and a hash of the value in before:
//
//	{"path":["a","b"],"value":1}               before has nothing there, after has 1
//	{"path":["a","b"],"value":1,"was":"hash"}  before has another value
//	{"path":["a","b"],"was":"hash"}            after has nothing
//	{"path":["a"],"insert":1,"after":E}        after has an element more, behind E
//	{"path":["a"],"order":[E,F],"from":[1,0]}  after has E before F, before has F before E
//	{"path":["a"],"elements":[…]}              what before has there, to find elements again
//	{"key":{"name":"ham"}}                     the element of a list with keys that has this key
//	{"at":3}                                   in any other list, the one with this index in before
//
// [Changes.Compact] keeps hashes of the elements instead, by which an edited element is not found.
//
// A change is void where the third object differs from before, except that an object at the top,
// such as spec, is created again. Where the user has added a value that before lacks, objects and
// lists are merged, of which a list without keys gets the elements that it lacks, and the user's value
// stays in all other cases. The order of elements is restored if the user has not changed it.
//
// Numbers are equal if their texts are, so 1 differs from 1.0. Null, an empty list, an empty object
// and an absent value all differ. Objects are compared down to 100 steps.
package merge
