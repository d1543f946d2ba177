package offline

import (
	"context"

	"github.com/crdkit/crdkit/schema"
)

// Get returns an object in any version that is served: see [schema.Version.Read]. Without a
// namespace, that is default. The result has Stored too, as the object is stored.
func (r *Resource) Get(ctx context.Context, version, namespace, name string) (*schema.Result, error) {
	req := &request{version: version, namespace: namespace}
	return r.serve(ctx, req, "get", nil, func(ctx context.Context) (*schema.Result, error) {
		key, err := req.key(name)
		if err != nil {
			return nil, err
		}
		rec, u, err := req.read(ctx, key)
		if err != nil {
			return nil, err
		}
		return req.result(rec, u)
	})
}
