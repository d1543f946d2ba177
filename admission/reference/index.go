package reference

import (
	"slices"
	"sync"

	"k8s.io/client-go/tools/cache"
)

// index knows who names whom. A change costs the logarithm of the number of users;
// their count, and the first of them, cost nothing.
//
// It remembers what each object names. So it does not depend on the old object of
// an event, which a tombstone may have in another state or not at all.
type index struct {
	mu      sync.RWMutex
	users   map[cache.ObjectName]*user
	targets map[cache.ObjectName]*users
}

func newIndex() *index {
	return &index{users: map[cache.ObjectName]*user{}, targets: map[cache.ObjectName]*users{}}
}

// set says which objects a referrer names, sorted and each once, in the place of
// those that it named before.
func (x *index) set(name cache.ObjectName, targets []cache.ObjectName) {
	x.mu.Lock()
	defer x.mu.Unlock()
	r := x.users[name]
	if r == nil && len(targets) == 0 {
		return
	}
	if r == nil {
		r = &user{name: name}
		x.users[name] = r
	}
	if slices.EqualFunc(r.uses, targets, func(u *users, target cache.ObjectName) bool { return u.target == target }) {
		return // a resync, or a change of something else
	}
	for _, u := range r.uses {
		if u.remove(r); u.count == 0 {
			delete(x.targets, u.target)
		}
	}
	r.uses = nil
	if len(targets) == 0 {
		delete(x.users, name)
		return
	}
	r.uses = make([]*users, 0, len(targets))
	for _, target := range targets {
		u := x.targets[target]
		if u == nil {
			u = &users{target: target}
			x.targets[target] = u
		}
		u.add(r)
		r.uses = append(r.uses, u)
	}
}

// of returns the number of those who name an object, and the first of them, sorted;
// all, if most is negative. Those in a namespace can be left out.
func (x *index) of(target cache.ObjectName, most int, leaveOut string) (names []cache.ObjectName, count int) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	u := x.targets[target]
	if u == nil {
		return nil, 0
	}
	count = u.count
	if leaveOut != "" {
		count -= u.in(leaveOut)
	}
	if most < 0 || most > count {
		most = count
	}
	names = make([]cache.ObjectName, 0, most)
	for name := range u.outside(leaveOut) {
		if len(names) == most {
			break
		}
		names = append(names, name)
	}
	return names, count
}
