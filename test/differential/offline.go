package differential

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Reporter is the part of testing.TB that a suite needs.
type Reporter interface {
	Helper()
	Errorf(format string, args ...any)
}

// RunOffline runs the suite without a server, and reports what is not as the cases say.
func (s *Suite) RunOffline(ctx context.Context, t Reporter) error {
	t.Helper()
	r, err := s.begin()
	if err != nil {
		return err
	}
	for i := range s.Cases {
		c := &s.Cases[i]
		name, resourceVersion := r.name(i, ""), ""
		var old []byte
		if c.Old != nil {
			stored, err := r.oldOffline(ctx, c, name)
			if err != nil {
				return fmt.Errorf("%s: the old object: %w", c.Name, err)
			}
			object, err := decode(stored)
			if err != nil {
				return err
			}
			metadata := object["metadata"].(map[string]any)
			resourceVersion = "10"
			metadata["uid"], metadata["resourceVersion"] = "3b7c", resourceVersion
			old = mustJSON(object)
		}
		if c.Read {
			if _, err := r.definition.Version(r.version(c.Version)).Read(ctx, old); err != nil {
				return fmt.Errorf("%s: %w", c.Name, err)
			}
			continue
		}
		out, err := r.offline(ctx, exchange{
			definition: r.definition, version: r.version(c.Version), status: c.Status, old: old,
			body: r.body(c, name, resourceVersion), send: Send{FieldValidation: metav1.FieldValidationStrict},
		})
		o, err := offline(out, err, 0)
		if err != nil {
			return fmt.Errorf("%s: %w", c.Name, err)
		}
		if fault := c.expect(o); fault != "" {
			t.Errorf("%s", fault)
		}
	}
	return nil
}

// oldOffline creates an old object without a server.
func (r *run) oldOffline(ctx context.Context, c *Case, name string) ([]byte, error) {
	version := r.version(c.OldVersion)
	body := r.fill(c.Old, version, name, "")
	out, err := r.before.Version(version).Create(ctx, body)
	if _, ok := c.Old["status"]; ok && err == nil && hasStatus(r.CRD, version) {
		out, err = r.before.Version(version).UpdateStatus(ctx, body, out.Stored)
	}
	if err != nil {
		return nil, err
	}
	return out.Stored, nil
}
