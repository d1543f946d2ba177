// Package patch makes the JSON patch (RFC 6902) of a mutating admission webhook
// from what the author's function changed, applied to the object as the API
// server sent it.
//
// A webhook that compares the object it received with the encoding of its Go
// value sees more than the author's changes: members that the Go type does not
// know are gone, or have gone to another list element, an empty status is new,
// large integers are others. [Make] takes the encoding of the Go value twice,
// before and after the function; only what differs between these two is a
// change, and everything else in raw stays as it is, to the byte.
//
// # The law
//
// The patch turns raw into merge(raw, before, after), which is:
//
//   - raw, where before and after are equal, by text: numbers too;
//   - for objects, the merge of each member that after has; without the members
//     that only before had, and with those of raw that neither has, which are the
//     unknown ones. Where raw or before has nothing or null and the other an
//     object, it counts as an object without members: a Go struct is encoded also
//     where raw has nothing, and may be left out when it is zero. What raw lacks
//     is thus added with what changed in it, and not with its zero values;
//   - for lists of which raw's is as long as before's, the elements of after: a
//     new one as it is, and one that was element i of before as the merge of
//     element i of raw, wherever it stands now;
//   - after, in all other cases.
//
// Three properties follow, and are tested with the API server's own patch
// library:
//
//  1. If every list element has more of its own than any edit changes, then what the
//     function did to its value (to set, remove, insert, move and edit at any depth) is
//     done to raw at the same places, and nothing else is.
//  2. In any case raw becomes after when unknown members are not looked at, and
//     no unknown member is invented, doubled, or put beside one that it did not
//     stand beside before.
//  3. If raw equals before, it becomes after.
//
// # Which list element is which
//
// Package listmatch has the rule.
//
// # The patch
//
// The operations are add, remove, replace and move; those on an object are in
// order of names. A list is replaced whole when that is shorter than the
// operations on its elements, or when they would be very many; what stays in it
// then is raw's text. The same input gives the same bytes.
//
// There are at most 10,000 operations, as many as the API server takes in a PATCH
// request; where there would be more, objects and lists are replaced whole. Of a
// webhook it takes any number, and bounds only what copy operations copy, of which
// there are none here. What it cannot read, because it is nested deeper than
// 10,000 levels, is an error.
//
// # What it does not do
//
// [Make] believes that before's list elements are in raw's order; where a
// conversion stands between the two, [MakeConverted] looks.
//
// It does not add test operations: the API server applies a patch to the very
// object that it sent. It takes the order of raw's list elements for that of
// before's, so a Go type that sorts a list while decoding it mixes up what is
// unknown in them. Two texts of one value, such as 1 and 1.0, are different
// values in before and after, which must come from the same encoder.
package patch
