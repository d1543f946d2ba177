package webhook

import "container/heap"

// share is what one connection takes of something that all of them share.
type share struct {
	conn  *connection
	bytes int64
	turn  uint64 // when it last grew
	index int    // in the heap; of no meaning while bytes is 0
}

// shares knows who has the largest share, whatever the number of them. The zero value
// is ready for use.
type shares struct {
	turn uint64
	heap shareHeap
}

// add changes a share.
func (s *shares) add(h *share, n int64) {
	if n == 0 {
		return
	}
	was := h.bytes
	h.bytes += n
	if n > 0 {
		s.turn++
		h.turn = s.turn
	}
	switch {
	case was == 0:
		heap.Push(&s.heap, h)
	case h.bytes == 0:
		heap.Remove(&s.heap, h.index)
	default:
		heap.Fix(&s.heap, h.index)
	}
}

// largest returns the largest share; of equal ones, that which has not grown for
// longest; nil if there is none.
func (s *shares) largest() *share {
	if len(s.heap) == 0 {
		return nil
	}
	return s.heap[0]
}

type shareHeap []*share

func (h shareHeap) Len() int { return len(h) }

func (h shareHeap) Less(i, j int) bool {
	if h[i].bytes != h[j].bytes {
		return h[i].bytes > h[j].bytes
	}
	return h[i].turn < h[j].turn
}

func (h shareHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

func (h *shareHeap) Push(x any) {
	s := x.(*share)
	s.index = len(*h)
	*h = append(*h, s)
}

func (h *shareHeap) Pop() any {
	last := len(*h) - 1
	s := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return s
}

var _ heap.Interface = (*shareHeap)(nil)
