package migrate

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

const (
	firstPage = 50
	maxPage   = 500
	// pageBytes is what a page should take. Metadata may have 256 KiB of annotations, and as
	// much of managedFields as the request limit lets through.
	pageBytes = 4 << 20
)

// objects calls f for each object, for several at a time, and counts what has become of it.
func (m *migrator) objects(ctx context.Context, d *definition, report *Report, f func(context.Context, listed) (outcome, error)) error {
	counts := &tally{report: report}
	if m.observe != nil {
		var told sync.WaitGroup
		end, cancel := context.WithCancel(context.WithoutCancel(ctx))
		told.Go(func() { counts.observe(end, m.observe) })
		defer told.Wait()
		defer cancel()
	}
	group, ctx := errgroup.WithContext(ctx)
	waiting := make(chan listed)
	group.Go(func() error {
		defer close(waiting)
		return m.each(ctx, d, counts.expect, func(l listed) error {
			select {
			case waiting <- l:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	})
	for range m.workers {
		group.Go(func() error {
			for l := range waiting {
				o, err := f(ctx, l)
				if ctx.Err() != nil {
					return ctx.Err()
				}
				var out *unreachableError
				if errors.As(err, &out) {
					return err
				}
				if err := counts.count(o, Problem{Namespace: l.Namespace, Name: l.Name, Err: err}); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return group.Wait()
}

// listed is the metadata of an object, as a version has it.
type listed struct {
	*metav1.PartialObjectMetadata
	version string
}

// object rewrites one, if it was written before a resourceVersion.
func (m *migrator) object(ctx context.Context, d *definition, since string, l listed) (outcome, error) {
	order, err := resourceversion.CompareResourceVersion(l.ResourceVersion, since)
	switch {
	case err != nil:
		return failed, err
	case order > 0:
		return current, nil
	case l.version == d.served[0].Name:
		return m.rewrite(ctx, d, l.PartialObjectMetadata)
	}
	// Labels and annotations may differ from version to version.
	now, o, err := m.get(ctx, d, l.PartialObjectMetadata)
	switch {
	case now == nil:
		return o, err
	case now.ResourceVersion != l.ResourceVersion:
		return current, nil
	}
	return m.rewrite(ctx, d, now)
}

// each calls f for the metadata of each object, page by page, and before that expect with
// how many were listed and how many remain.
//
// An object that cannot be converted fails the whole page, and so does a page that is too
// much for the conversion webhook: in both cases a smaller page is tried. If it is one object,
// it is listed in another version, in which it may be stored, and so is what follows, up to an
// object that cannot be converted to that.
func (m *migrator) each(ctx context.Context, d *definition, expect func(n int64, remaining *int64), f func(listed) error) error {
	if err := d.check(); err != nil {
		return err
	}
	opts := metav1.ListOptions{Limit: firstPage}
	ceiling := int64(maxPage) // no larger page has been too much
	var n int64
	last := ""         // the object that was listed last
	turn := 0          // of which version
	var faults []error // of the next object, one a version
	for len(faults) < len(d.served) {
		v := d.served[turn%len(d.served)]
		list, err := m.page(ctx, d.resource(v), opts)
		switch {
		case apierrors.IsResourceExpired(err):
			// The snapshot of the first page has gone. The API server says how to go on with a
			// newer one (apiserver/pkg/storage/etcd3, handleCompactedErrorForPaging): the order is
			// that of the names, so nothing old is left out.
			if opts.Continue = continueOf(err); opts.Continue == "" {
				n = 0
			}
			continue
		case err != nil && answered(err) && transient(err) && opts.Limit > 1:
			ceiling = max(1, opts.Limit/8)
			opts.Limit = ceiling
			continue
		case err != nil && answered(err) && transient(err):
			opts.Limit, ceiling = firstPage, maxPage
			faults = append(faults, fmt.Errorf("in %s: %w", v.Name, err))
			turn++
			continue
		case err != nil:
			return fmt.Errorf("listing its objects in %s: %w", v.Name, err)
		}
		n += int64(len(list.Items))
		expect(n, list.RemainingItemCount)
		faults = nil
		size := 0
		for i := range list.Items {
			size += list.Items[i].Size()
			if err := f(listed{&list.Items[i], v.Name}); err != nil {
				return err
			}
			last = objectName(list.Items[i].Namespace, list.Items[i].Name)
		}
		if list.Continue == "" {
			return nil
		}
		opts.Continue = list.Continue
		opts.Limit = min(ceiling, nextLimit(opts.Limit, len(list.Items), size))
	}
	which := "the first of its objects"
	if last != "" {
		which = "the object after " + last
	}
	return fmt.Errorf("no version can show %s: fix the conversion, or serve the version in which it is stored: %w", which, errors.Join(faults...))
}

// now returns the resourceVersion of the moment.
func (m *migrator) now(ctx context.Context, d *definition) (string, error) {
	var faults []error
	for _, v := range d.served {
		list, err := m.page(ctx, d.resource(v), metav1.ListOptions{Limit: 1})
		if err == nil {
			return list.ResourceVersion, nil
		}
		faults = append(faults, fmt.Errorf("listing its objects in %s: %w", v.Name, err))
	}
	return "", errors.Join(faults...)
}

// nextLimit is how many objects the next page should have, after one of n objects and size
// bytes.
func nextLimit(limit int64, n, size int) int64 {
	if n == 0 || size == 0 {
		return limit
	}
	return max(1, min(2*limit, maxPage, int64(pageBytes/(size/n+1))))
}

func continueOf(err error) string {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return status.Status().Continue
	}
	return ""
}

func (m *migrator) page(ctx context.Context, resource schema.GroupVersionResource, opts metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
	var list *metav1.PartialObjectMetadataList
	answers := maxAnswers
	if opts.Limit > 1 {
		answers = maxPageAnswers
	}
	err := m.insistFor(ctx, answers, func() (err error) {
		list, err = m.metadata.Resource(resource).List(ctx, opts)
		return err
	})
	return list, err
}
