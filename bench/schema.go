package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apiextensions-apiserver/pkg/crdserverscheme"
	"k8s.io/apimachinery/pkg/api/operation"
	metavalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	serializer "k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/kubectl-validate/pkg/openapiclient"
	"sigs.k8s.io/kubectl-validate/pkg/validator"
	"sigs.k8s.io/yaml"

	"github.com/crdkit/crdkit/schema"
)

// route is a typical HTTPRoute of the Gateway API. The schema of HTTPRoute has more than 300 fields,
// lists that are maps, defaults and CEL rules.
const route = `{
	"apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute",
	"metadata": {"name": "shop", "namespace": "default", "labels": {"app": "shop", "team": "storefront"}},
	"spec": {
		"parentRefs": [{"name": "public", "sectionName": "https"}, {"name": "internal", "namespace": "infra"}],
		"hostnames": ["shop.example.com", "www.shop.example.com"],
		"rules": [
			{
				"matches": [{"path": {"type": "PathPrefix", "value": "/cart"}, "method": "GET", "headers": [{"name": "x-canary", "value": "true"}]}],
				"filters": [
					{"type": "RequestHeaderModifier", "requestHeaderModifier": {"set": [{"name": "x-shop", "value": "1"}], "remove": ["x-debug"]}},
					{"type": "URLRewrite", "urlRewrite": {"path": {"type": "ReplacePrefixMatch", "replacePrefixMatch": "/"}}}
				],
				"backendRefs": [{"name": "cart", "port": 8080, "weight": 9}, {"name": "cart-canary", "port": 8080, "weight": 1}]
			},
			{"matches": [{"path": {"type": "Exact", "value": "/health"}}], "filters": [{"type": "RequestRedirect", "requestRedirect": {"scheme": "https", "statusCode": 301}}]},
			{"backendRefs": [{"name": "shop", "port": 8080}]}
		]
	}
}`

// schema measures the creation of an object in a version that is not the storage version. It
// compares three implementations:
//
//   - package schema;
//   - the functions of apiextensions-apiserver and apimachinery that package schema uses, called
//     one after another on compiled schemas;
//   - kubectl-validate as a library.
func (b bench) schema() error {
	file, definition, err := routes()
	if err != nil {
		return err
	}
	d, err := schema.New(definition)
	if err != nil {
		return err
	}
	body, ctx := []byte(route), context.Background()
	v := d.Version("v1")
	upstream, err := newBare(definition, "v1")
	if err != nil {
		return err
	}
	if upstream.storage, err = newBare(definition, d.StorageVersion()); err != nil {
		return err
	}
	peer, err := validator.New(openapiclient.NewLocalCRDFiles(os.DirFS(filepath.Dir(file))))
	if err != nil {
		return err
	}
	ours := func() (object, stored json.RawMessage, err error) {
		out, err := v.Create(ctx, body, schema.FieldValidation(metav1.FieldValidationStrict))
		return out.Object, out.Stored, err
	}
	validate := func() error {
		_, u, err := peer.Parse(body)
		if err != nil {
			return err
		}
		return peer.Validate(u)
	}

	// All three must return the same result, including for an invalid object.
	object, stored, err := ours()
	if err != nil {
		return err
	}
	wantObject, wantStored, err := upstream.create(ctx, body)
	if err != nil {
		return err
	}
	if diff := cmp.Diff([]string{string(wantObject), string(wantStored)}, []string{string(object), string(stored)}); diff != "" {
		return fmt.Errorf("package schema and upstream's functions make different objects:\n%s", diff)
	}
	if err := validate(); err != nil {
		return fmt.Errorf("kubectl-validate: %w", err)
	}
	body = bytes.Replace(body, []byte(`"statusCode": 301`), []byte(`"statusCode": 300`), 1)
	if _, _, err := ours(); err == nil {
		return fmt.Errorf("package schema accepts a wrong object")
	}
	if _, _, err := upstream.create(ctx, body); err == nil {
		return fmt.Errorf("upstream's functions accept a wrong object")
	}
	if validate() == nil {
		return fmt.Errorf("kubectl-validate accepts a wrong object")
	}
	body = []byte(route)

	create := func() { _, _, _ = ours() }
	b.compare("schema/create/upstream", create, func() { _, _, _ = upstream.create(ctx, body) }, func(ours, theirs float64) float64 { return ours / theirs })
	b.compare("schema/create/kubectl-validate", create, func() { _ = validate() }, func(ours, theirs float64) float64 { return theirs / ours })
	fmt.Printf("  creating an HTTPRoute takes %.0f µs\n", b.median(create)*1e6)
	return nil
}

// routes returns the CustomResourceDefinition of HTTPRoute, and its file, which is a test file of
// apiextensions-apiserver.
func routes() (file string, _ *apiextensionsv1.CustomResourceDefinition, err error) {
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/apiextensions-apiserver").Output()
	if err != nil {
		return "", nil, err
	}
	file = filepath.Join(strings.TrimSpace(string(dir)), "test/integration/ratcheting_test_cases/crds/standard-install.yaml")
	text, err := os.ReadFile(file)
	if err != nil {
		return "", nil, err
	}
	for document := range bytes.SplitSeq(text, []byte("\n---\n")) {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.Unmarshal(document, crd); err != nil {
			return "", nil, err
		}
		if crd.Spec.Names.Kind == "HTTPRoute" {
			return file, crd, nil
		}
	}
	return "", nil, fmt.Errorf("%s has no HTTPRoute", file)
}

// bare contains the arguments of the upstream functions.
type bare struct {
	apiVersion string
	structural *structuralschema.Structural
	storage    *bare // the storage version, which is another one
	schema     validation.SchemaValidator
	cel        *cel.Validator
	serializer *serializer.Serializer
}

func newBare(crd *apiextensionsv1.CustomResourceDefinition, version string) (*bare, error) {
	v1, err := apihelpers.GetSchemaForVersion(crd, version)
	if err != nil {
		return nil, err
	}
	internal := &apiextensions.CustomResourceValidation{}
	if err := apiextensionsv1.Convert_v1_CustomResourceValidation_To_apiextensions_CustomResourceValidation(v1, internal, nil); err != nil {
		return nil, err
	}
	b := &bare{apiVersion: crd.Spec.Group + "/" + version, serializer: serializer.NewSerializerWithOptions(serializer.DefaultMetaFactory, nil, crdserverscheme.NewUnstructuredObjectTyper(), serializer.SerializerOptions{Strict: true})}
	if b.structural, err = structuralschema.NewStructural(internal.OpenAPIV3Schema); err != nil {
		return nil, err
	}
	if b.schema, _, err = validation.NewSchemaValidator(internal.OpenAPIV3Schema); err != nil {
		return nil, err
	}
	b.cel = cel.NewValidator(b.structural, true, celconfig.PerCallLimit)
	return b, nil
}

// create calls the upstream functions in the order of the API server. It returns the object in the
// response, and the object in storage.
func (b *bare) create(ctx context.Context, body []byte) (object, stored json.RawMessage, err error) {
	obj, _, err := b.serializer.Decode(body, nil, &unstructured.Unstructured{})
	if err != nil {
		return nil, nil, err
	}
	u := obj.(*unstructured.Unstructured)
	unknown, err := b.coerce(u, true, false)
	if err != nil {
		return nil, nil, err
	}
	if len(unknown) > 0 {
		return nil, nil, fmt.Errorf("unknown fields %q", unknown)
	}
	defaulting.Default(u.Object, b.structural)
	for _, name := range []string{"creationTimestamp", "uid", "managedFields"} {
		unstructured.RemoveNestedField(u.Object, "metadata", name)
	}
	delete(u.Object, "status")
	u.SetGeneration(1)

	typed := &metav1.ObjectMeta{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object["metadata"].(map[string]any), typed); err != nil {
		return nil, nil, err
	}
	path := field.NewPath("metadata")
	errs := metavalidation.ValidateObjectMetaDeclaratively(ctx, operation.Create, typed, nil, true, metavalidation.NameIsDNSSubdomain, path, true)
	errs = append(errs, validation.ValidateCustomResource(nil, u.Object, b.schema)...)
	errs = append(errs, objectmeta.Validate(ctx, nil, u.Object, b.structural, false)...)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, b.structural, u.Object)...)
	if len(errs) == 0 {
		errs, _ = b.cel.Validate(ctx, nil, b.structural, u.Object, nil, celconfig.RuntimeCELCostBudget)
	}
	if len(errs) == 0 {
		errs = metavalidation.ValidateObjectMetaAccessor(u, true, metavalidation.NameIsDNSSubdomain, path)
	}
	if len(errs) > 0 {
		return nil, nil, errs.ToAggregate()
	}
	return b.store(u)
}

// store converts an object to the storage version, and converts the stored object back.
func (b *bare) store(u *unstructured.Unstructured) (object, stored json.RawMessage, err error) {
	requested := u.GetAPIVersion()
	u.SetAPIVersion(b.storage.apiVersion)
	if _, err := b.storage.coerce(u, false, false); err != nil {
		return nil, nil, err
	}
	if stored, err = json.Marshal(u.Object); err != nil {
		return nil, nil, err
	}
	if _, err := b.storage.coerce(u, false, true); err != nil {
		return nil, nil, err
	}
	defaulting.Default(u.Object, b.storage.structural)
	u.SetAPIVersion(requested)
	if _, err := b.coerce(u, false, false); err != nil {
		return nil, nil, err
	}
	object, err = json.Marshal(u.Object)
	return object, stored, err
}

// coerce validates and prunes metadata, and prunes all other fields.
func (b *bare) coerce(u *unstructured.Unstructured, track, drop bool) ([]string, error) {
	meta, _, unknown, err := objectmeta.GetObjectMetaWithOptions(u.Object, objectmeta.ObjectMetaOptions{DropMalformedFields: drop, ReturnUnknownFieldPaths: track})
	if err != nil {
		return nil, err
	}
	unknown = append(unknown, pruning.PruneWithOptions(u.Object, b.structural, true, structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: track})...)
	defaulting.PruneNonNullableNullsWithoutDefaults(u.Object, b.structural)
	fault, more := objectmeta.CoerceWithOptions(nil, u.Object, b.structural, false, objectmeta.CoerceOptions{DropInvalidFields: drop, ReturnUnknownFieldPaths: track})
	if fault != nil {
		return nil, fault
	}
	return append(unknown, more...), objectmeta.SetObjectMeta(u.Object, meta)
}
