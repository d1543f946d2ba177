package reference

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"k8s.io/client-go/tools/cache"
)

// index maps targets to their referrers.
//
// It remembers the targets of each referrer, because the old object of an event may be outdated, or
// missing in a tombstone.
type index struct {
	mu      sync.Mutex
	targets map[cache.ObjectName]*users
	uses    map[cache.ObjectName][]*users // by referrer
}

// users are the referrers of one target. They are sorted only when they are read, because the
// events of an initial list arrive in any order.
type users struct {
	target   cache.ObjectName
	names    []cache.ObjectName
	unsorted bool
}

func newIndex() *index {
	return &index{targets: map[cache.ObjectName]*users{}, uses: map[cache.ObjectName][]*users{}}
}

func compareNames(a, b cache.ObjectName) int {
	return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
}

// set replaces the targets of an object. The targets are sorted and have no duplicates.
func (x *index) set(name cache.ObjectName, targets []cache.ObjectName) {
	x.mu.Lock()
	defer x.mu.Unlock()
	old := x.uses[name]
	names := func(u *users, target cache.ObjectName) int { return compareNames(u.target, target) }
	if slices.CompareFunc(old, targets, names) == 0 {
		return // a resync, or a change of other fields
	}
	for _, u := range old {
		if _, found := slices.BinarySearchFunc(targets, u.target, compareNames); !found {
			x.remove(u, name)
		}
	}
	if len(targets) == 0 {
		delete(x.uses, name)
		return
	}
	uses := make([]*users, len(targets))
	for i, target := range targets {
		u := x.targets[target]
		if u == nil {
			u = &users{target: target}
			x.targets[target] = u
		}
		if _, found := slices.BinarySearchFunc(old, target, names); !found {
			last := len(u.names) - 1
			u.unsorted = u.unsorted || last >= 0 && compareNames(u.names[last], name) > 0
			u.names = append(u.names, name)
		}
		uses[i] = u
	}
	x.uses[name] = uses
}

// remove removes a referrer from a target that has it.
func (x *index) remove(u *users, name cache.ObjectName) {
	i := slices.Index(u.names, name)
	if u.names = slices.Delete(u.names, i, i+1); len(u.names) == 0 {
		delete(x.targets, u.target)
	}
}

// of returns the number of referrers of the target, and the first ones, sorted, or all if the
// limit is negative. Referrers in the namespace leaveOut do not count.
func (x *index) of(target cache.ObjectName, limit int, leaveOut string) (first []cache.ObjectName, count int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	u := x.targets[target]
	if u == nil {
		return nil, 0
	}
	if u.unsorted {
		slices.SortFunc(u.names, compareNames)
		u.unsorted = false
	}
	names := u.names
	if leaveOut != "" {
		names = slices.DeleteFunc(slices.Clone(names), func(n cache.ObjectName) bool { return n.Namespace == leaveOut })
	}
	count = len(names)
	if limit < 0 || limit > count {
		limit = count
	}
	return slices.Clone(names[:limit]), count
}
