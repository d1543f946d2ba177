package threeway

import (
	"bytes"
	"hash/maphash"
)

// texts numbers texts: equal ones have the same number, and different ones are
// numbered in the order in which they come. It is a hash table; the seed of the
// hash has no influence on the numbers.
type texts struct {
	seed  maphash.Seed
	slots []int // the number that a hash leads to, and one more
	all   [][]byte
}

// reset forgets all texts, and makes room for so many.
func (t *texts) reset(n int) {
	if t.seed == (maphash.Seed{}) {
		t.seed = maphash.MakeSeed()
	}
	size := 4
	for size < 2*n {
		size *= 2
	}
	if cap(t.slots) < size {
		t.slots = make([]int, size)
	}
	t.slots = t.slots[:size]
	clear(t.slots)
	t.all = t.all[:0]
}

// free forgets all texts, and keeps room for so many.
func (t *texts) free(most int) {
	clear(t.all[:cap(t.all)])
	t.all = t.all[:0]
	if cap(t.slots) > 2*most {
		t.slots, t.all = nil, nil
	}
}

// find returns the number of a text, none if it is not there.
func (t *texts) find(text []byte) int {
	return t.slots[t.slot(text)] - 1
}

// add returns the number of a text, and whether it is new.
func (t *texts) add(text []byte) (number int, added bool) {
	slot := t.slot(text)
	if t.slots[slot] == 0 {
		t.all = append(t.all, text)
		t.slots[slot] = len(t.all)
		added = true
	}
	return t.slots[slot] - 1, added
}

// slot returns where the number of a text is or belongs.
func (t *texts) slot(text []byte) int {
	slot := int(maphash.Bytes(t.seed, text) & uint64(len(t.slots)-1))
	for t.slots[slot] != 0 && !bytes.Equal(t.all[t.slots[slot]-1], text) {
		slot = (slot + 1) & (len(t.slots) - 1)
	}
	return slot
}
