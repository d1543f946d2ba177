// Package listmatch finds out which element of a list is which element of an edited
// copy of it. The patch of a mutating webhook keeps what an element has that its editor did
// not see, so a wrong answer would give one element what belongs to another.
//
// # The rule
//
//  1. Equal elements are the same, and so are those with equal declared keys. Elements
//     whose declared keys differ are never the same.
//  2. Of the others, those are the same that share the most leaves, of which the leaves
//     that no other element has count first. A leaf is a value, at any depth, and its
//     path. Where such an element was moved too, it must share a leaf that nobody else
//     has, or one of the two must have all leaves of the other.
//  3. Where no leaf is shared, the only element that changed between two unchanged
//     neighbors is the same, unless a string in it became another one.
//  4. Where two elements are equally likely, neither is chosen.
//
// Case, white space and punctuation make a string no other one, only less alike. A zero
// value is like an absent one: it is no leaf, and no part of a key.
//
// # What it cannot tell
//
// An element that shares a leaf of its own with one that was removed is taken for it. One
// that was edited so that it has more in common with a removed one than with its former
// self is taken for the removed one. Only the first thousand values of an element are compared,
// and leaves that more than 16 elements share count for nothing.
package listmatch
