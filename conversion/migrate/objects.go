package migrate

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

const (
	pageSize = 500 // as client-go's pager has it
	workers  = 8   // that rewrite objects
)

// objects calls f for each object, concurrently, and counts the outcomes.
func (m *migrator) objects(ctx context.Context, d *definition, report *Report, f func(context.Context, listed) (outcome, error)) error {
	counts := &tally{report: report, observe: m.observe}
	defer counts.end()
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
	for range workers {
		group.Go(func() error {
			for l := range waiting {
				o, err := f(ctx, l)
				if ctx.Err() != nil {
					return ctx.Err()
				}
				if _, away := errors.AsType[*unreachableError](err); away {
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

// listed is the metadata of an object in a version.
type listed struct {
	*metav1.PartialObjectMetadata
	version string
}

// object rewrites an object that was last written before a resourceVersion.
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

// each calls f for the metadata of each object, page by page. Before each page it calls
// expect with the number of listed and of remaining objects.
//
// A page fails if one of its objects cannot be converted, or if it takes the conversion
// webhook too long. In both cases a smaller page is tried. If a page of one object fails,
// the object is listed in another version, in which it may be stored. The objects after it
// are listed in that version, too, until one cannot be converted to it.
func (m *migrator) each(ctx context.Context, d *definition, expect func(n int64, remaining *int64), f func(listed) error) error {
	if err := d.check(); err != nil {
		return err
	}
	opts := metav1.ListOptions{Limit: pageSize}
	var n int64
	last := ""       // the object that was listed last
	turn := 0        // of which version
	left := 0        // objects of the last page that failed
	var errs []error // of the next object, one a version
	for len(errs) < len(d.served) {
		v := d.served[turn%len(d.served)]
		answers := maxAnswers
		if opts.Limit > 1 {
			answers = maxPageAnswers
		}
		list, err := m.page(ctx, d.resource(v), opts, answers)
		switch {
		case apierrors.IsResourceExpired(err):
			// The snapshot of the first page has gone. The API server returns a token for a
			// newer one (apiserver/pkg/storage/etcd3, handleCompactedErrorForPaging). Objects are
			// in the order of their names, so no old object is left out.
			expired, _ := errors.AsType[*apierrors.StatusError](err)
			if opts.Continue = expired.ErrStatus.Continue; opts.Continue == "" {
				n = 0
			}
			continue
		case err != nil && (!answered(err) || !transient(err)):
			return fmt.Errorf("listing the objects in %s: %w", v.Name, err)
		case err != nil && opts.Limit > 1:
			left, opts.Limit = int(opts.Limit), max(1, opts.Limit/8)
			continue
		case err != nil:
			opts.Limit = pageSize
			errs = append(errs, fmt.Errorf("in %s: %w", v.Name, err))
			turn++
			continue
		}
		n += int64(len(list.Items))
		expect(n, list.RemainingItemCount)
		errs = nil
		if left -= len(list.Items); left <= 0 && opts.Limit == 1 {
			opts.Limit = pageSize // the page failed for another reason than one of its objects
		}
		for i := range list.Items {
			if err := f(listed{&list.Items[i], v.Name}); err != nil {
				return err
			}
			last = objectName(list.Items[i].Namespace, list.Items[i].Name)
		}
		if list.Continue == "" {
			return nil
		}
		opts.Continue = list.Continue
	}
	which := "the first object"
	if last != "" {
		which = "the object after " + last
	}
	return fmt.Errorf("%s cannot be read in any served version: fix the conversion, or serve the version in which it is stored: %w", which, errors.Join(errs...))
}

// now returns the current resourceVersion. A version that cannot be read may delay it only if there
// is no other one.
func (m *migrator) now(ctx context.Context, d *definition) (string, error) {
	var errs []error
	for _, answers := range []int{1, maxAnswers} {
		errs = nil
		for _, v := range d.served {
			list, err := m.page(ctx, d.resource(v), metav1.ListOptions{Limit: 1}, answers)
			if err == nil {
				return list.ResourceVersion, nil
			}
			errs = append(errs, fmt.Errorf("listing the objects in %s: %w", v.Name, err))
		}
	}
	return "", errors.Join(errs...)
}

// page lists some objects. It returns an error that the API server has answered so many times.
func (m *migrator) page(ctx context.Context, resource schema.GroupVersionResource, opts metav1.ListOptions, answers int) (*metav1.PartialObjectMetadataList, error) {
	var list *metav1.PartialObjectMetadataList
	err := m.insistFor(ctx, answers, func() (err error) {
		list, err = m.metadata.Resource(resource).List(ctx, opts)
		return err
	})
	return list, err
}
