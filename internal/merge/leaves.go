package merge

import (
	"cmp"
	"hash/maphash"
	"iter"
	"math"
	"slices"
)

// most is the number of values of an element that are compared.
const most = 1000

// seed differs from process to process, because hashes are never stored.
var seed = maphash.MakeSeed()

// leaf is a value in an element that is not zero, as hashes.
type leaf struct {
	member uint64 // the hash of the element's member that has the value
	path   uint64 // the same for all elements of a list
	value  uint64 // odd for strings
}

func (l leaf) isString() bool { return l.value&1 == 1 }

func (l leaf) compare(o leaf) int {
	return cmp.Or(cmp.Compare(l.member, o.member), cmp.Compare(l.path, o.path), cmp.Compare(l.value, o.value))
}

// further returns the path of a value one step further. It is the finalizer of SplitMix64.
func further(path, to uint64) uint64 {
	x := (path + 0x9e3779b97f4a7c15) ^ to
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// leavesOf returns the leaves of an element, sorted, each once.
func (r *reader) leavesOf(n *node) []leaf {
	var all []leaf
	values := 0
	var collect func(member, path uint64, n *node)
	collect = func(member, path uint64, n *node) {
		if values++; values > most {
			return
		}
		switch {
		case n.is('{'):
			for _, kid := range r.kids(n) {
				to := further(path, maphash.Bytes(seed, kid.name))
				collect(cmp.Or(member, to), to, kid)
			}
		case n.is('['):
			for _, kid := range r.kids(n) {
				collect(member, further(path, 1), kid)
			}
		case r.zero(n):
		case n.is('"'):
			all = append(all, leaf{member, path, maphash.Bytes(seed, unquote(n.text)) | 1})
		default:
			all = append(all, leaf{member, path, maphash.Bytes(seed, n.text) &^ 1})
		}
	}
	collect(0, 0, n)
	slices.SortFunc(all, leaf.compare)
	return slices.Compact(all)
}

// compareLeaves returns how many leaves of two elements differ, in the element in which more do;
// whether one element has all leaves of the other; and whether more of their members stayed than
// differ. The leaves of a member, or at a path, count as one if none of them is shared, and a
// member of which less than half is shared differs.
func compareLeaves(before, after []leaf) (differ int, whole, most bool) {
	shared, gone, added := 0, 0, 0
	stayed, left, came := 0, 0, 0 // members
	for b, a := range pairs(before, after, func(l leaf) uint64 { return l.member }) {
		both, was, is := 0, 0, 0
		for b, a := range pairs(b, a, func(l leaf) uint64 { return l.path }) {
			n := 0
			for _, l := range b {
				if has(a, l) {
					n++
				}
			}
			both, was, is = both+n, was+apart(b, n), is+apart(a, n)
		}
		if both == 0 {
			was, is = min(was, 1), min(is, 1)
		}
		shared, gone, added = shared+both, gone+was, added+is
		if both > 0 && both >= max(was, is) {
			stayed++
		} else {
			left, came = left+min(len(b), 1), came+min(len(a), 1)
		}
	}
	return max(gone, added), shared == min(len(before), len(after)), stayed > max(left, came)
}

// apart returns the number as which the leaves at a path that are not shared count.
func apart(leaves []leaf, shared int) int {
	if shared == 0 {
		return min(len(leaves), 1)
	}
	return len(leaves) - shared
}

// pairs yields the leaves of two elements that have the same key, by which they are sorted.
func pairs(before, after []leaf, key func(leaf) uint64) iter.Seq2[[]leaf, []leaf] {
	return func(yield func(before, after []leaf) bool) {
		cut := func(leaves *[]leaf, at uint64) []leaf {
			n := 0
			for n < len(*leaves) && key((*leaves)[n]) == at {
				n++
			}
			first := (*leaves)[:n]
			*leaves = (*leaves)[n:]
			return first
		}
		for len(before)+len(after) > 0 {
			at := uint64(math.MaxUint64)
			for _, leaves := range [][]leaf{before, after} {
				if len(leaves) > 0 {
					at = min(at, key(leaves[0]))
				}
			}
			if !yield(cut(&before, at), cut(&after, at)) {
				return
			}
		}
	}
}

// has reports whether sorted leaves have one.
func has(leaves []leaf, l leaf) bool {
	_, found := slices.BinarySearchFunc(leaves, l, leaf.compare)
	return found
}
