package reference

import (
	"cmp"
	"iter"
	"slices"
	"strings"

	"k8s.io/client-go/tools/cache"
)

// maxRun is how many users one run holds. A new one shifts up to so many pointers.
const maxRun = 256

// users are the objects that name one object, sorted: runs of pointers, each of at
// most maxRun, so that neither to add nor to remove one moves all the others.
type users struct {
	target cache.ObjectName
	count  int
	runs   [][]*user
}

// user is one object that names others.
type user struct {
	name cache.ObjectName
	uses []*users
}

func compareNames(a, b cache.ObjectName) int {
	return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
}

func compareUsers(a, b *user) int { return compareNames(a.name, b.name) }

// run returns the number of the run in which a user is, or belongs.
func (u *users) run(r *user) int {
	i, _ := slices.BinarySearchFunc(u.runs, r, func(run []*user, r *user) int {
		return compareUsers(run[len(run)-1], r)
	})
	return min(i, len(u.runs)-1)
}

// add adds a user that is not there.
func (u *users) add(r *user) {
	u.count++
	if len(u.runs) == 0 {
		u.runs = [][]*user{{r}}
		return
	}
	i := u.run(r)
	run := u.runs[i]
	j, _ := slices.BinarySearchFunc(run, r, compareUsers)
	switch {
	case len(run) < maxRun:
		u.runs[i] = slices.Insert(run, j, r)
	case j == maxRun: // behind all: runs that are filled in order stay full
		u.runs = slices.Insert(u.runs, i+1, []*user{r})
	default:
		right := slices.Clone(run[maxRun/2:])
		clear(run[maxRun/2:])
		left := run[:maxRun/2]
		if j <= len(left) {
			left = slices.Insert(left, j, r)
		} else {
			right = slices.Insert(right, j-len(left), r)
		}
		u.runs[i] = left
		u.runs = slices.Insert(u.runs, i+1, right)
	}
}

// remove removes a user that is there.
func (u *users) remove(r *user) {
	u.count--
	i := u.run(r)
	j, _ := slices.BinarySearchFunc(u.runs[i], r, compareUsers)
	u.runs[i] = slices.Delete(u.runs[i], j, j+1)
	switch {
	case len(u.runs[i]) == 0:
		u.runs = slices.Delete(u.runs, i, i+1)
	case i+1 < len(u.runs) && len(u.runs[i])+len(u.runs[i+1]) <= maxRun/2:
		u.join(i)
	case i > 0 && len(u.runs[i-1])+len(u.runs[i]) <= maxRun/2:
		u.join(i - 1)
	}
}

// join makes one run of two.
func (u *users) join(i int) {
	u.runs[i] = append(u.runs[i], u.runs[i+1]...)
	u.runs = slices.Delete(u.runs, i+1, i+2)
}

// in returns how many of them are in a namespace. They are sorted by it, so that it
// looks into no more than two of the runs.
func (u *users) in(namespace string) (count int) {
	for _, run := range u.runs {
		first, last := run[0].name.Namespace, run[len(run)-1].name.Namespace
		switch {
		case first > namespace:
			return count
		case first == namespace && last == namespace:
			count += len(run)
		case last >= namespace:
			for _, r := range run {
				if r.name.Namespace == namespace {
					count++
				}
			}
		}
	}
	return count
}

// outside returns the names, sorted, but for those in a namespace; all, if that is
// empty.
func (u *users) outside(namespace string) iter.Seq[cache.ObjectName] {
	within := func(r *user) bool { return namespace != "" && r.name.Namespace == namespace }
	return func(yield func(cache.ObjectName) bool) {
		for _, run := range u.runs {
			if within(run[0]) && within(run[len(run)-1]) {
				continue
			}
			for _, r := range run {
				if !within(r) && !yield(r.name) {
					return
				}
			}
		}
	}
}
