package schema_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/klog/v2"

	"github.com/crdkit/crdkit/schema"
	"github.com/crdkit/crdkit/test/expect"
	"github.com/crdkit/crdkit/test/testobj"
)

// TestRequests_Traps checks what testdata/traps say of each request. That the server
// does the same is checked elsewhere, with a server.
func TestRequests_Traps(t *testing.T) {
	for _, suite := range traps(t) {
		t.Run(suite.CRD.Spec.Group, func(t *testing.T) {
			expect.NoError(t, suite.RunOffline(t.Context(), t))
		})
	}
}

// valueOf decodes JSON for comparison.
func valueOf(t testing.TB, text []byte) any {
	t.Helper()
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return value
}

func same(t *testing.T, want string, got []byte) {
	t.Helper()
	if diff := cmp.Diff(valueOf(t, []byte(want)), valueOf(t, got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestCreate_ReturnsWhatIsStored(t *testing.T) {
	out, err := pizza().Version("v1").Create(t.Context(), []byte(`{
		"apiVersion":"restaurant.example.com/v1","kind":"Pizza",
		"metadata":{"name":"p","uid":"u","resourceVersion":"","creationTimestamp":"2020-01-01T00:00:00Z","managedFields":[{"manager":"m"}],"generation":8},
		"spec":{"toppings":[{"name":"ham","colour":"pink"}]},"status":{"slices":1}}`))
	expect.NoError(t, err)
	want := `{"apiVersion":"restaurant.example.com/v1","kind":"Pizza","metadata":{"name":"p","namespace":"default","generation":1},
		"spec":{"size":"large","toppings":[{"name":"ham","amount":1}]}}`
	same(t, want, out.Object)
	same(t, want, out.Stored)
	if diff := cmp.Diff([]string{`unknown field "spec.toppings[0].colour"`}, out.Warnings); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Create in another version loses what the storage version lacks.
func TestCreate_InAnotherVersion(t *testing.T) {
	out, err := pizza().Version("v1alpha1").Create(t.Context(), []byte("apiVersion: restaurant.example.com/v1alpha1\nkind: Pizza\nmetadata: {name: p}\nspec: {toppings: [ham]}\n"), schema.Namespace("rome"))
	expect.NoError(t, err)
	metadata := `"kind":"Pizza","metadata":{"name":"p","namespace":"rome","generation":1}`
	// The list of strings is not a list of objects, but that is not checked.
	same(t, `{"apiVersion":"restaurant.example.com/v1",`+metadata+`,"spec":{"toppings":["ham"]}}`, out.Stored)
	same(t, `{"apiVersion":"restaurant.example.com/v1alpha1",`+metadata+`,"spec":{"toppings":["ham"]}}`, out.Object)
	if diff := cmp.Diff([]string{"restaurant.example.com/v1alpha1 Pizza is deprecated; use restaurant.example.com/v1 Pizza"}, out.Warnings); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// An error is the server's own, and the warnings stay.
func TestCreate_ErrorAndWarnings(t *testing.T) {
	out, err := pizza().Version("v1alpha1").Create(t.Context(), []byte(`{"apiVersion":"restaurant.example.com/v1alpha1","kind":"Pizza","metadata":{"name":"p"},"spec":{"toppings":[1]}}`))
	if !apierrors.IsInvalid(err) || err.Error() != `Pizza.restaurant.example.com "p" is invalid: spec.toppings[0]: Invalid value: "integer": spec.toppings[0] in body must be of type string: "integer"` {
		t.Errorf("got %v", err)
	}
	var status *apierrors.StatusError
	if !errors.As(err, &status) || len(status.ErrStatus.Details.Causes) != 1 || status.ErrStatus.Details.Causes[0].Type != metav1.CauseType(field.ErrorTypeTypeInvalid) {
		t.Errorf("the causes are %+v", status)
	}
	if out.Object != nil || out.Stored != nil || len(out.Warnings) != 1 {
		t.Errorf("the result is %+v", out)
	}
}

func TestRequests_CannotBeServed(t *testing.T) {
	crd := strings.Replace(pizzaYAML(t), "served: true\n    storage: false", "served: false\n    storage: false", 1)
	crd = strings.Replace(crd, "scope:", "conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {url: 'https://example.com/'}}}\n  scope:", 1)
	d, err := schema.Parse([]byte(crd))
	expect.NoError(t, err)
	body := []byte(`{` + head + `}`)
	for _, test := range []struct {
		name, want string
		err        error
	}{
		{"unknown version", "schema: Pizza.restaurant.example.com has no version v3: want one of v1, v1alpha1", second(d.Version("v3").Create(t.Context(), body))},
		{"unknown version of a status", "has no version v3", second(d.Version("v3").UpdateStatus(t.Context(), body, body))},
		{"a version that is not served", "schema: version v1alpha1 of Pizza.restaurant.example.com is not served: the server could not find the requested resource (get pizzas.restaurant.example.com)", second(d.Version("v1alpha1").Read(t.Context(), body))},
		{"an old object of another version", "a webhook converts it to v1: convert it first", second(d.Version("v1").Read(t.Context(), []byte(strings.Replace(string(body), "/v1", "/v1alpha1", 1))))},
		{"an old object of a version that is not there", "schema: the stored object has kind Pizza in restaurant.example.com/v3, expected Pizza.restaurant.example.com in one of the versions v1, v1alpha1", second(d.Version("v1").Read(t.Context(), []byte(strings.Replace(string(body), "/v1", "/v3", 1))))},
		{"an old object of another kind", "expected Pizza.restaurant.example.com in one of the versions v1, v1alpha1", second(d.Version("v1").Read(t.Context(), []byte(`{"apiVersion":"v1","kind":"Pod","metadata":{}}`)))},
		{"an old object that is none", "schema: the stored object: ", second(d.Version("v1").Update(t.Context(), body, []byte("[")))},
		{"field validation", `fieldValidation: Unsupported value: "Maybe"`, second(d.Version("v1").Create(t.Context(), body, schema.FieldValidation("Maybe")))},
		{"field validation of an update", `UpdateOptions.meta.k8s.io "" is invalid: fieldValidation`, second(d.Version("v1").Update(t.Context(), body, body, schema.FieldValidation("Maybe")))},
		{"too large", "limit is 3145728", second(d.Version("v1").Create(t.Context(), make([]byte, 3<<20+1)))},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.err == nil || !strings.Contains(test.err.Error(), test.want) {
				t.Errorf("got %v, want %s", test.err, test.want)
			}
		})
	}
}

func second[T any](_ T, err error) error { return err }

// A webhook that converts leaves what is stored to the caller.
func TestCreate_WebhookConverts(t *testing.T) {
	crd := strings.Replace(pizzaYAML(t), "scope:", "conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {url: 'https://example.com/'}}}\n  scope:", 1)
	d, err := schema.Parse([]byte(crd))
	expect.NoError(t, err)
	out, err := d.Version("v1alpha1").Create(t.Context(), []byte(`{"apiVersion":"restaurant.example.com/v1alpha1","kind":"Pizza","metadata":{"name":"p"}}`))
	if err != nil || out.Stored != nil || out.Object == nil {
		t.Errorf("got %+v, %v", out, err)
	}
}

func TestUpdate_KeepsWhatTheServerKnows(t *testing.T) {
	old := `{"apiVersion":"restaurant.example.com/v1","kind":"Pizza","metadata":{"name":"p","namespace":"rome","uid":"u","resourceVersion":"7","generation":3,"creationTimestamp":"2020-01-01T00:00:00Z"},"spec":{"toppings":[]},"status":{"slices":1}}`
	body := `{"apiVersion":"restaurant.example.com/v1","kind":"Pizza","metadata":{"name":"p","resourceVersion":"RV"},"spec":{"size":"small","toppings":[]},"status":{"slices":9}}`
	v := pizza().Version("v1")
	out, err := v.Update(t.Context(), []byte(strings.Replace(body, "RV", "7", 1)), []byte(old))
	expect.NoError(t, err)
	same(t, `{"apiVersion":"restaurant.example.com/v1","kind":"Pizza","metadata":{"name":"p","namespace":"rome","uid":"u","generation":4,"creationTimestamp":"2020-01-01T00:00:00Z"},"spec":{"size":"small","toppings":[]},"status":{"slices":1}}`, out.Object)
	out, err = v.UpdateStatus(t.Context(), []byte(strings.Replace(body, "RV", "7", 1)), []byte(old))
	expect.NoError(t, err)
	same(t, `{"apiVersion":"restaurant.example.com/v1","kind":"Pizza","metadata":{"name":"p","namespace":"rome","uid":"u","generation":3,"creationTimestamp":"2020-01-01T00:00:00Z"},"spec":{"size":"large","toppings":[]},"status":{"slices":9}}`, out.Object)
	if _, err := v.Update(t.Context(), []byte(strings.Replace(body, "RV", "6", 1)), []byte(old)); !apierrors.IsConflict(err) {
		t.Errorf("got %v", err)
	}
}

// The server logs an error of the metadata that two steps of an update report.
func TestUpdate_LogsNothing(t *testing.T) {
	ctx := klog.NewContext(t.Context(), funcr.New(func(_, text string) { t.Errorf("it logs %s", text) }, funcr.Options{}))
	old := `{"apiVersion":"restaurant.example.com/v1","kind":"Pizza","metadata":{"name":"p","labels":{"-":"a"}},"spec":{"toppings":[]}}`
	if _, err := pizza().Version("v1").Update(ctx, []byte(old), []byte(old)); !apierrors.IsInvalid(err) {
		t.Errorf("got %v", err)
	}
}

func TestCreate_RefusesAResourceVersion(t *testing.T) {
	body := `{"apiVersion":"restaurant.example.com/v1","kind":"Pizza","metadata":{"name":"p","resourceVersion":"7"},"spec":{"toppings":[]}}`
	if _, err := pizza().Version("v1").Create(t.Context(), []byte(body)); err == nil || err.Error() != "resourceVersion should not be set on objects to be created" {
		t.Errorf("got %v", err)
	}
}

// A status with a default is there again.
func TestCreate_StatusWithADefault(t *testing.T) {
	d, err := schema.Parse([]byte(strings.NewReplacer(
		"storage: true,", "storage: true, subresources: {status: {}},",
		"{type: object}", "{type: object, properties: {status: {type: string, default: new}}}",
	).Replace(tiny("apples"))))
	expect.NoError(t, err)
	object := `{"apiVersion":"example.com/v1","kind":"Apples","metadata":{"name":"a","generation":1}}`
	out, err := d.Version("v1").Create(t.Context(), []byte(object))
	expect.NoError(t, err)
	same(t, object, out.Stored)
	same(t, strings.TrimSuffix(object, "}")+`,"status":"new"}`, out.Object)
}

// Many goroutines share a definition.
func TestDefinition_Concurrent(t *testing.T) {
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				body := []byte(`{` + head + `,"spec":{"toppings":[{"name":"a"},{"name":"b","x":1}],"template":{"apiVersion":"v1","kind":"Pod"}}}`)
				out, err := pizza().Version("v1").Create(t.Context(), body)
				if err == nil {
					_, err = pizza().Version("v1").Update(t.Context(), out.Object, out.Stored)
				}
				if err == nil {
					_, err = pizza().Version("v1alpha1").Read(t.Context(), out.Stored)
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

func TestCreate_EndsWithTheContext(t *testing.T) {
	d, err := schema.Parse([]byte(strings.Replace(tiny("apples"), "{type: object}",
		"{type: object, properties: {a: {type: array, maxItems: 5000, items: {type: integer}, x-kubernetes-validations: [{rule: 'self.all(x, x == 0)'}]}}}", 1)))
	expect.NoError(t, err)
	body := []byte(`{"apiVersion":"example.com/v1","kind":"Apples","metadata":{"name":"a"},"a":[` + strings.Repeat("0,", 4999) + `0]}`)
	v := d.Version("v1")
	if _, err := v.Create(t.Context(), body); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := v.Create(ctx, body); !errors.Is(err, context.Canceled) {
		t.Errorf("create: got %v", err)
	}
	old := []byte(`{"apiVersion":"example.com/v1","kind":"Apples","metadata":{"name":"a"}}`)
	if _, err := v.Update(ctx, body, old); !errors.Is(err, context.Canceled) {
		t.Errorf("update: got %v", err)
	}
}

// The steps say what the requests say.
func TestSteps_LikeTheRequests(t *testing.T) {
	const head = `"apiVersion":"restaurant.example.com/v1","kind":"Pizza","metadata":{"name":"p","uid":"u","resourceVersion":"7"}`
	object := func(rest string) []byte { return []byte("{" + head + "," + rest + "}") }
	v, refused := pizza().Version("v1"), 0
	for _, old := range []string{`"spec":{"toppings":[]}`, `"spec":{"size":"huge","toppings":[{"name":"ham"},{"name":"ham"}]},"status":{"slices":"two"}`} {
		for _, now := range []string{
			`"spec":{"toppings":[{"name":"egg"}]}`, `"spec":{"size":"huge","toppings":[],"colour":"red"},"status":{"slices":3}`, `"spec":{},"status":{"slices":-1}`,
			`"spec":{"size":"huge","toppings":[{"name":"ham"},{"name":"ham"}],"crust":{"thick":1}},"status":{"slices":"two"}`,
		} {
			decoded := func(text []byte) map[string]any {
				u := testobj.Parse(t, string(text))
				v.Prune(u.Object)
				v.Default(u.Object)
				return u.Object
			}
			was, is := decoded(object(old)), decoded(object(now))
			_, created := v.Create(t.Context(), []byte(strings.Replace(string(object(now)), `,"resourceVersion":"7"`, "", 1)))
			_, updated := v.Update(t.Context(), object(now), object(old))
			_, reported := v.UpdateStatus(t.Context(), object(now), object(old))
			for _, step := range []struct {
				errs field.ErrorList
				err  error
			}{
				{v.ValidateUpdate(t.Context(), is, was), updated},
				{v.ValidateStatusUpdate(t.Context(), is, was), reported},
				{func() field.ErrorList { delete(is, "status"); return v.Validate(t.Context(), is) }(), created},
			} {
				var want []string
				if step.err != nil {
					refused++
					for _, c := range step.err.(*apierrors.StatusError).ErrStatus.Details.Causes {
						want = append(want, c.Field+": "+c.Message)
					}
				}
				var got []string
				for _, err := range step.errs {
					path := err.Field
					if path == "" {
						path = "<nil>"
					}
					got = append(got, path+": "+err.ErrorBody())
				}
				slices.Sort(want)
				slices.Sort(got)
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s\n%s\n(-request +step):\n%s", old, now, diff)
				}
			}
		}
	}
	if refused < 10 {
		t.Errorf("only %d are refused", refused)
	}
}
