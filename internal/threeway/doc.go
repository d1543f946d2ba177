// Package threeway merges what two sides have made of one JSON object. It finds what
// changed between before and after, and makes the same changes to a third object, which
// has more than before, or has been edited. There are two encodings of the changes:
//
//   - [Patch] is for a mutating webhook. Before and after are the encodings of a Go value
//     before and after the author's function; the third is the object as the API server
//     sent it. The changes become a JSON patch (RFC 6902), and at once the merged object.
//   - [Diff] is for a conversion. Before is what has come back from an older version, and
//     after what had gone there. The [Changes] become an annotation. [Changes.Apply] makes
//     them to what has come back of an object that a user may have edited in between.
//
// Where nothing changed, the third object keeps its text. Two laws hold for both:
//
//  1. If the third object equals before, it becomes after.
//  2. Parts that only the third object has stay where they were: nothing is lost, invented,
//     doubled, or put beside what it did not stand beside, as far as list elements can be
//     identified.
//
// # Which list element is which
//
//  1. Equal elements are the same, and so are those with equal declared keys. Elements
//     with different declared keys are never the same. A key that an element lacks is its
//     default in the schema, or else empty. Several elements with one key are told apart as
//     in a list without keys.
//  2. Of the others, those are the same that have the most in common: the most shared leaves,
//     less those that differ in the element that has more. A leaf is a value, at any depth,
//     and its path.
//  3. An element is the same in its place if one leaf differs, or if one of the two elements has
//     all leaves of the other. Elsewhere they must also share a leaf that no other element has;
//     then it suffices that most members of the element stayed.
//  4. Where no leaf is shared, the only element that changed between two unchanged
//     neighbors is the same, unless both have strings.
//  5. Where two elements are equally likely, neither is chosen.
//  6. A conversion keeps the length and the order of a list. So where elements seem to be
//     removed or moved, [Diff] pairs each element with the next that has all of it, or, instead
//     of removing any, with the next that shares a leaf, if that is possible for all of them.
//     It takes what is left at the same index of lists of one length for the same.
//
// A zero value is like an absent one: it is not a leaf, and not part of a key. These cannot be
// told: a new element that shares nearly all leaves with one that was removed is taken for it,
// and an element is new that was edited in most of its leaves. Only the first thousand values of an
// element are compared, and elements that share only leaves that more than 16 elements have
// are not compared at all.
//
// # Patches
//
// Each member that after has is merged, the members that only before had go, and those
// that neither has stay. Where raw or before has nothing or null and the other an object,
// it counts as an empty object: a Go struct is encoded also where raw has nothing, and may
// be left out when it is zero. Lists are merged if raw's is as long as before's; a Go type
// that sorts a list while decoding it mixes up what is unknown in its elements, for which
// [PatchConverted] looks. All else becomes what it is in after.
//
// A list is replaced whole when elements change places, and when that is shorter than the
// operations on its elements. If there would be more than 10,000 operations, which is as many
// as the API server takes in a PATCH request, the members of the object are replaced whole.
// There are no test operations: the API server applies a patch to the very object that it
// sent.
//
// # Changes
//
// A change has a path of names and selectors of list elements, and a hash of what before
// had there:
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
// [Changes.Compact] keeps hashes of the elements instead: then an edited element is not found.
//
// A change is void where the third object is no longer as before was, except that an
// object at the top, such as spec, is made again. Where before had nothing and the user
// has put something, objects and lists with keys are merged, and the user's value stays in
// all other cases. The order of elements is restored if the user has left it alone.
//
// Numbers are equal if their text is: 1 is not 1.0. Null, an empty list, an empty object
// and nothing are four different things. Objects are compared down to 100 steps.
package threeway
