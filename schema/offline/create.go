package offline

import (
	"cmp"
	"context"
	"errors"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/admission"

	"github.com/crdkit/crdkit/schema"
	"github.com/crdkit/crdkit/schema/internal/pipeline"
)

// Create creates an object, given in JSON or YAML, in a version that is served. It is
// created in its own namespace, or else in default. The result has Object, which is the
// object as the server answers it in this version, and Stored, which is the object as it is
// stored, in the storage version. Object has all metadata except managedFields.
//
// The error is the server's own: see the package documentation. The result is never nil; if
// there is an error, it has the warnings.
//
// The steps are: decode, prune and default; mutating webhooks; validation by the schema;
// validating webhooks; conversion to the storage version; storage (see
// [schema.Version.Create], and apiserver/pkg/registry/generic/registry/store.go).
//
// A server ends the names that it generates with five random letters. Here they are counted:
// the first name ends in bbbbb, the next one in bbbbc.
func (r *Resource) Create(ctx context.Context, version string, object []byte, opts ...RequestOption) (*schema.Result, error) {
	req := &request{version: version, operation: admission.Create}
	return r.serve(ctx, req, "post", opts, func(ctx context.Context) (*schema.Result, error) {
		const most = 8 // maxNameGenerationCreateAttempts of store.go
		c := &creation{request: req, body: object}
		for try := 1; ; try++ {
			out, err := c.try(ctx)
			if !c.generatesName || !apierrors.IsAlreadyExists(err) || try == most {
				return out, err
			}
		}
	})
}

// creation is a request that creates an object. It is tried again if a generated name is
// taken.
type creation struct {
	*request
	body          []byte
	name          string                     // in the request
	mutated       *unstructured.Unstructured // what the mutating webhooks made; they are called once
	generatesName bool
}

func (c *creation) try(ctx context.Context) (*schema.Result, error) {
	r := c.resource
	u, err := c.prepared(r.definition.Version(c.version).Create(ctx, c.body, c.untilValidation(c.mutate)))
	if err != nil {
		return nil, err
	}
	u.SetUID(r.uid())
	u.SetCreationTimestamp(metav1.NewTime(r.now()))
	u.SetResourceVersion(c.resourceVersion)
	// AdmissionToValidateObjectFunc of apiserver/pkg/registry/rest/create.go: a webhook that
	// changes the name does not change the name of the request.
	if err := c.validate(ctx, c.attributes(u, nil, cmp.Or(c.name, u.GetName()))); err != nil {
		return nil, err
	}
	if n, err := strconv.ParseUint(c.resourceVersion, 10, 64); err == nil && n != 0 && !c.dryRun {
		// apiserver/pkg/storage/errors.go, ErrResourceVersionSetOnCreate.
		return nil, errors.New("resourceVersion should not be set on objects to be created")
	}
	text, err := c.encode(ctx, u)
	if err != nil {
		return nil, err
	}
	rec, ok := c.store(keyOf(u), text, 0)
	if !ok {
		return nil, r.alreadyExists(u)
	}
	return c.finish(ctx, rec)
}

// mutate is mutating admission, and what the server does to the name after that.
func (c *creation) mutate(ctx context.Context, u *unstructured.Unstructured) error {
	if c.mutated == nil {
		c.name, c.namespace = u.GetName(), u.GetNamespace()
		if err := c.mutateObject(ctx, u, nil, c.name); err != nil {
			return err
		}
		c.mutated = u.DeepCopy()
		c.generatesName = u.GetGenerateName() != "" && u.GetName() == ""
	}
	u.Object = c.mutated.DeepCopy().Object
	if c.generatesName {
		u.SetName(c.resource.generateName(u.GetGenerateName()))
	}
	c.resourceVersion = u.GetResourceVersion()
	pipeline.RemoveMetadata(u, "resourceVersion") // storage asks for it, after the validating webhooks
	return nil
}

// alreadyExists is the error of Create in registry/generic/registry/store.go. If the object
// asks for a generated name, the server speaks of that, also if it has a name (rest/create.go,
// CheckGeneratedNameError).
func (r *Resource) alreadyExists(u *unstructured.Unstructured) error {
	err := apierrors.NewAlreadyExists(r.groupResource(), u.GetName())
	if u.GetGenerateName() != "" {
		err = apierrors.NewGenerateNameConflict(r.groupResource(), u.GetName(), 1)
	}
	existing := &unstructured.Unstructured{}
	if rec, ok := r.find(keyOf(u)); ok && existing.UnmarshalJSON(rec.text) == nil && existing.GetDeletionTimestamp() != nil {
		err.ErrStatus.Message = "object is being deleted: " + err.ErrStatus.Message
	}
	return err
}
