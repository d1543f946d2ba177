package admission_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	goruntime "runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/crdkit/crdkit/admission"
	"github.com/crdkit/crdkit/conversion"
	"github.com/crdkit/crdkit/examples/pizza/api/v1alpha1"
	"github.com/crdkit/crdkit/examples/pizza/api/v1beta1"
	"github.com/crdkit/crdkit/scheme"
	"github.com/crdkit/crdkit/test/expect"
)

func pizzaScheme(t testing.TB) *runtime.Scheme {
	t.Helper()
	s, err := scheme.New(
		scheme.Version(v1beta1.GroupVersion, &v1beta1.Pizza{}, &v1beta1.PizzaList{}),
		scheme.Version(v1alpha1.GroupVersion, &v1alpha1.Pizza{}, &v1alpha1.PizzaList{}, &v1alpha1.Topping{}, &v1alpha1.ToppingList{}),
	)
	expect.NoError(t, err)
	return s
}

// allow is a validating function that allows all objects.
func allow[T runtime.Object](context.Context, T) (field.ErrorList, error) { return nil, nil }

func allowUpdate[T runtime.Object](context.Context, T, T) (field.ErrorList, error) { return nil, nil }

func addTomato(_ context.Context, p *v1beta1.Pizza) error {
	p.Spec.Toppings = append([]v1beta1.PizzaTopping{{Name: "tomato"}}, p.Spec.Toppings...)
	return nil
}

// request is a review of a pizza; the parts that are empty are left out.
type request struct {
	review, group, kind, version, operation, subresource, object, old string
	nameless                                                          bool
}

func (r request) String() string {
	or := func(s, otherwise string) string {
		if s == "" {
			return otherwise
		}
		return s
	}
	gv := fmt.Sprintf(`"group":%q,"version":%q`, strings.TrimPrefix(or(r.group, "restaurant.programming-kubernetes.info"), "none"), or(r.version, "v1beta1"))
	text := fmt.Sprintf(`{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/%s","request":{"uid":"u-1","kind":{%s,"kind":%q},"resource":{%s,"resource":"pizzas"},"name":"margherita","namespace":"default","operation":%q,"userInfo":{"username":"ada"},"dryRun":true`,
		or(r.review, "v1"), gv, or(r.kind, "Pizza"), gv, or(r.operation, "CREATE"))
	if r.subresource != "" {
		text += fmt.Sprintf(`,"subResource":%q`, r.subresource)
	}
	if r.nameless {
		text = strings.Replace(text, `"name":"margherita",`, "", 1)
	}
	old := r.old
	if old == "" && (r.operation == "UPDATE" || r.operation == "DELETE") {
		old = pizza(or(r.version, "v1beta1"), "")
	}
	if old == "none" {
		old = ""
	}
	return text + `,"object":` + or(r.object, "null") + `,"oldObject":` + or(old, "null") + `}}`
}

func pizza(version, rest string) string {
	return `{"apiVersion":"restaurant.programming-kubernetes.info/` + version + `","kind":"Pizza","metadata":{"name":"margherita","namespace":"default"}` + rest + `}`
}

func post(t testing.TB, h http.Handler, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// ask returns the response to a request that is decided.
func ask(t testing.TB, h http.Handler, r request) *admissionv1.AdmissionResponse {
	t.Helper()
	w := post(t, h, r.String())
	answer := &admissionv1.AdmissionReview{}
	if err := json.Unmarshal(w.Body.Bytes(), answer); err != nil || w.Code != http.StatusOK || answer.Response == nil {
		t.Fatalf("got no decision: %d %s: %v", w.Code, w.Body, err)
	}
	want := "v1"
	if r.review != "" {
		want = r.review
	}
	if answer.Kind != "AdmissionReview" || answer.APIVersion != "admission.k8s.io/"+want || answer.Response.UID != "u-1" {
		t.Errorf("the answer is %s %s for %s", answer.APIVersion, answer.Kind, answer.Response.UID)
	}
	return answer.Response
}

// undecided returns the Status of a request that is not decided.
func undecided(t testing.TB, h http.Handler, r request) metav1.Status {
	t.Helper()
	w := post(t, h, r.String())
	var status metav1.Status
	if err := json.Unmarshal(w.Body.Bytes(), &status); err != nil || status.Kind != "Status" || int(status.Code) != w.Code || w.Code < 400 {
		t.Fatalf("got no error: %d %s: %v", w.Code, w.Body, err)
	}
	if status.Details.UID != "u-1" || status.Details.Causes[len(status.Details.Causes)-1].Message != "admission.k8s.io/v1" {
		t.Errorf("the details %+v lack the UID or the version", status.Details)
	}
	return status
}

// patched applies the patch of a response with the API server's library.
func patched(t testing.TB, object string, response *admissionv1.AdmissionResponse) string {
	t.Helper()
	if !response.Allowed || response.PatchType == nil || *response.PatchType != admissionv1.PatchTypeJSONPatch {
		t.Fatalf("no patch: %+v", response)
	}
	patch, err := jsonpatch.DecodePatch(response.Patch)
	expect.NoError(t, err)
	out, err := patch.Apply([]byte(object))
	if err != nil {
		t.Fatalf("%v: %s", err, response.Patch)
	}
	return string(out)
}

// A mutation becomes a patch, and fields that the Go type does not know stay.
func TestMutate_UnknownFields(t *testing.T) {
	h := admission.NewHandler(pizzaScheme(t), admission.Mutate(addTomato))
	object := pizza("v1beta1", `,"spec":{"toppings":[{"name":"salami","unknown":9007199254740993}],"future":true}`)
	for _, review := range []string{"v1", "v1beta1"} {
		for _, operation := range []string{"CREATE", "UPDATE"} {
			response := ask(t, h, request{review: review, operation: operation, object: object})
			if diff := cmp.Diff(`[{"op":"add","path":"/spec/toppings/0","value":{"name":"tomato"}}]`, string(response.Patch)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			want := pizza("v1beta1", `,"spec":{"future":true,"toppings":[{"name":"tomato"},{"name":"salami","unknown":9007199254740993}]}`)
			if diff := cmp.Diff(want, patched(t, object, response)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		}
	}
}

// Without a change there is no patch.
func TestMutate_NoChange(t *testing.T) {
	h := admission.NewHandler(pizzaScheme(t), admission.Mutate(func(context.Context, *v1beta1.Pizza) error { return nil }))
	response := ask(t, h, request{object: pizza("v1beta1", `,"spec":null,"unknown":1`)})
	if !response.Allowed || response.Patch != nil || response.PatchType != nil {
		t.Errorf("got %+v", response)
	}
}

// Each mutator sees the changes of the one before, and there is one patch.
func TestMutate_SeveralFunctions(t *testing.T) {
	salt := func(_ context.Context, p *v1alpha1.Pizza) error {
		p.Spec.Toppings = append(p.Spec.Toppings, "salt")
		return nil
	}
	h := admission.NewHandler(pizzaScheme(t),
		admission.ConvertWith(registry(t)),
		admission.Mutate(addTomato),
		admission.Mutate(salt), // written for another version
		admission.Mutate(func(_ context.Context, p *v1beta1.Pizza) error {
			var names []string
			for _, topping := range p.Spec.Toppings {
				names = append(names, topping.Name)
			}
			if diff := cmp.Diff([]string{"tomato", "salami", "salt"}, names); diff != "" {
				t.Errorf("the last mutator sees (-want +got):\n%s", diff)
			}
			p.Labels = map[string]string{"done": "yes"}
			return nil
		}),
		admission.Validate(func(_ context.Context, p *v1beta1.Pizza) (field.ErrorList, error) {
			if p.Labels["done"] != "yes" {
				t.Error("the validator does not see the result")
			}
			return nil, nil
		}))
	object := pizza("v1alpha1", `,"spec":{"toppings":["salami"],"future":1.0}`)
	want := `{"apiVersion":"restaurant.programming-kubernetes.info/v1alpha1","kind":"Pizza","metadata":{"labels":{"done":"yes"},"name":"margherita","namespace":"default"},"spec":{"future":1.0,"toppings":["tomato","salami","salt"]}}`
	if diff := cmp.Diff(want, patched(t, object, ask(t, h, request{version: "v1alpha1", object: object}))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// toToppings converts a list of names to a list of toppings.
func toToppings(_ context.Context, in *v1alpha1.Pizza, out *v1beta1.Pizza) error {
	for _, name := range in.Spec.Toppings {
		if name == "nails" {
			return errors.New("cannot convert nails")
		}
		out.Spec.Toppings = append(out.Spec.Toppings, v1beta1.PizzaTopping{Name: name})
	}
	return nil
}

func toNames(_ context.Context, in *v1beta1.Pizza, out *v1alpha1.Pizza) error {
	for _, topping := range in.Spec.Toppings {
		out.Spec.Toppings = append(out.Spec.Toppings, topping.Name)
	}
	return nil
}

// registry converts between lists of names and lists of toppings.
func registry(t testing.TB) *conversion.Registry {
	t.Helper()
	reg := conversion.NewRegistry(pizzaScheme(t))
	expect.NoError(t, conversion.AddSpoke(reg, toToppings, toNames))
	return reg
}

// A function for the hub serves all versions.
func TestConvertWith_HubFunction(t *testing.T) {
	h := admission.NewHandler(pizzaScheme(t), admission.ConvertWith(registry(t)), admission.Mutate(addTomato))
	for _, spec := range []string{``, `,"spec":{}`, `,"spec":null`, `,"spec":{"toppings":null}`, `,"spec":{"toppings":[]}`} {
		object := pizza("v1alpha1", spec)
		want := pizza("v1alpha1", `,"spec":{"toppings":["tomato"]}`)
		if diff := cmp.Diff(want, patched(t, object, ask(t, h, request{version: "v1alpha1", object: object}))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", spec, diff)
		}
	}
}

// Field errors deny with a status and its causes.
func TestValidate_FieldErrors(t *testing.T) {
	toppings := field.NewPath("spec", "toppings")
	h := admission.NewHandler(pizzaScheme(t),
		admission.Validate(func(ctx context.Context, _ *v1beta1.Pizza) (field.ErrorList, error) {
			admission.Warn(ctx, "%d toppings are out of season", 2)
			return field.ErrorList{field.NotFound(toppings.Index(0).Child("name"), "nails")}, nil
		}),
		admission.Validate(func(context.Context, *v1beta1.Pizza) (field.ErrorList, error) {
			return field.ErrorList{field.Required(toppings.Index(1).Child("name"), "say which")}, nil
		}))
	response := ask(t, h, request{object: pizza("v1beta1", "")})
	want := &admissionv1.AdmissionResponse{
		UID:      "u-1",
		Warnings: []string{"2 toppings are out of season"},
		Result: &metav1.Status{
			Status:  "Failure",
			Code:    422,
			Reason:  metav1.StatusReasonInvalid,
			Message: `Pizza.restaurant.programming-kubernetes.info "margherita" is invalid: [spec.toppings[0].name: Not found: "nails", spec.toppings[1].name: Required value: say which]`,
			Details: &metav1.StatusDetails{
				Group: "restaurant.programming-kubernetes.info", Kind: "Pizza", Name: "margherita",
				Causes: []metav1.StatusCause{
					{Type: "FieldValueNotFound", Field: "spec.toppings[0].name", Message: `Not found: "nails"`},
					{Type: "FieldValueRequired", Field: "spec.toppings[1].name", Message: "Required value: say which"},
				},
			},
		},
	}
	if diff := cmp.Diff(want, response); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Errors deny the request, or leave it undecided.
func TestHandler_Errors(t *testing.T) {
	pizzas := schema.GroupResource{Group: "restaurant.programming-kubernetes.info", Resource: "pizzas"}
	for name, c := range map[string]struct {
		err     error
		denied  bool
		code    int32
		message string
	}{
		"forbidden":         {apierrors.NewForbidden(pizzas, "x", errors.New("closed")), true, 403, `pizzas.restaurant.programming-kubernetes.info "x" is forbidden: closed`},
		"a wrapped error":   {fmt.Errorf("reading the quota: %w", apierrors.NewForbidden(pizzas, "x", errors.New("RBAC"))), false, 500, "Pizza default/margherita: reading the quota: pizzas"},
		"not found":         {apierrors.NewNotFound(pizzas, "x"), false, 500, "Pizza default/margherita: pizzas"},
		"unauthorized":      {apierrors.NewUnauthorized("token expired"), false, 500, "token expired"},
		"an aggregate":      {field.ErrorList{field.Required(field.NewPath("a"), ""), field.Required(field.NewPath("b"), "")}.ToAggregate(), true, 422, "[a: Required value, b: Required value]"},
		"joined denials":    {errors.Join(apierrors.NewForbidden(pizzas, "x", errors.New("closed")), apierrors.NewForbidden(pizzas, "x", errors.New("and full"))), true, 403, "closed; pizzas.restaurant.programming-kubernetes.info \"x\" is forbidden: and full"},
		"two wrapped ones":  {fmt.Errorf("reading the quota: %w; and then: %w", apierrors.NewForbidden(pizzas, "x", errors.New("a")), apierrors.NewForbidden(pizzas, "x", errors.New("b"))), false, 500, "reading the quota: pizzas"},
		"a nil field error": {(*field.Error)(nil), false, 500, "panic: "},
		"an odd code":       {&apierrors.StatusError{ErrStatus: metav1.Status{Code: 1000, Message: "odd"}}, false, 500, "odd"},
		"a mixture":         {errors.Join(apierrors.NewForbidden(pizzas, "x", errors.New("closed")), errors.New("out of flour")), true, 403, `pizzas.restaurant.programming-kubernetes.info "x" is forbidden: closed`},
		"one field error":   {field.Invalid(field.NewPath("spec"), 7, "no"), true, 422, "spec: Invalid value: 7: no"},
		"too many requests": {apierrors.NewTooManyRequests("later", 5), false, 429, "later"},
		"unavailable":       {apierrors.NewServiceUnavailable("the oven is cold"), false, 503, "the oven is cold"},
		"any other error":   {errors.New("out of flour"), false, 500, "Pizza default/margherita: out of flour"},
		"a deadline":        {fmt.Errorf("asking: %w", context.DeadlineExceeded), false, 504, "Pizza default/margherita: asking: context deadline exceeded"},
	} {
		t.Run(name, func(t *testing.T) {
			for role, option := range map[string]admission.Option{
				"mutating":   admission.Mutate(func(context.Context, *v1beta1.Pizza) error { return c.err }),
				"validating": admission.Validate(func(context.Context, *v1beta1.Pizza) (field.ErrorList, error) { return nil, c.err }),
			} {
				h := admission.NewHandler(pizzaScheme(t), option)
				r := request{object: pizza("v1beta1", "")}
				var got metav1.Status
				if c.denied {
					response := ask(t, h, r)
					if response.Allowed {
						t.Fatalf("%s: it is allowed", role)
					}
					got = *response.Result
				} else {
					got = undecided(t, h, r)
				}
				if got.Code != c.code || !strings.Contains(got.Message, c.message) || got.Status != "Failure" {
					t.Errorf("%s: got %+v", role, got)
				}
			}
		})
	}
}

func TestWrappedFieldErrors_Deny(t *testing.T) {
	size, top := field.Required(field.NewPath("spec", "size"), ""), field.NotFound(field.NewPath("spec", "toppings"), "nails")
	list := field.ErrorList{size, top}.ToAggregate()
	timeout := apierrors.NewServiceUnavailable("the oven is cold")
	for name, c := range map[string]struct {
		err    error
		text   string
		fields []string
	}{
		"one error":          {fmt.Errorf("the menu: %w", size), "the menu: spec.size: Required value", []string{"spec.size"}},
		"an aggregate":       {fmt.Errorf("the menu: %w", list), `the menu: [spec.size: Required value, spec.toppings: Not found: "nails"]`, []string{"spec.size", "spec.toppings"}},
		"twice":              {fmt.Errorf("today: %w", fmt.Errorf("the menu: %w", list)), "today: the menu: [spec.size", []string{"spec.size", "spec.toppings"}},
		"one of two":         {fmt.Errorf("%w, and so: %w", timeout, top), "the oven is cold, and so: spec.toppings: Not found", []string{"spec.toppings"}},
		"joined and wrapped": {fmt.Errorf("the menu: %w", errors.Join(timeout, size)), "the menu: the oven is cold\nspec.size: Required value", []string{"spec.size"}},
		"beside another":     {errors.Join(fmt.Errorf("the menu: %w", size), top), `[the menu: spec.size: Required value, spec.toppings: Not found: "nails"]`, []string{"spec.size", "spec.toppings"}},
	} {
		t.Run(name, func(t *testing.T) {
			h := admission.NewHandler(pizzaScheme(t), admission.Mutate(func(context.Context, *v1beta1.Pizza) error { return c.err }))
			got := ask(t, h, request{object: pizza("v1beta1", "")})
			if got.Allowed || got.Result.Code != 422 || !strings.Contains(got.Result.Message, `"margherita" is invalid: `+c.text) {
				t.Fatalf("got %+v", got.Result)
			}
			var fields []string
			for _, cause := range got.Result.Details.Causes {
				fields = append(fields, cause.Field)
			}
			if diff := cmp.Diff(c.fields, fields); diff != "" {
				t.Errorf("causes (-want +got):\n%s", diff)
			}
		})
	}
}

// An option may be given to several handlers.
func TestOption_SharedByHandlers(t *testing.T) {
	option := admission.Validate(func(_ context.Context, p *v1beta1.Pizza) (field.ErrorList, error) {
		_ = *p.Spec.Toppings[len(p.Spec.Toppings)-1].Quantity
		return nil, nil
	}, admission.IfChanged("spec"))
	if fault(runtime.NewScheme(), option) == nil {
		t.Error("the scheme knows nothing, and there is no fault")
	}
	one, other := admission.NewHandler(pizzaScheme(t), admission.Mutate(addTomato), option), admission.NewHandler(pizzaScheme(t), option)
	var wg sync.WaitGroup
	for _, h := range []http.Handler{other, one, other} {
		wg.Go(func() {
			if !ask(t, h, request{object: pizza("v1beta1", `,"spec":{"toppings":[{"name":"a","quantity":1}]}`)}).Allowed {
				t.Error("it is denied")
			}
		})
		_ = admission.NewHandler(pizzaScheme(t), option)
	}
	wg.Wait()
}

// An error also names an object that has no name yet.
func TestHandler_NamelessObject(t *testing.T) {
	h := admission.NewHandler(pizzaScheme(t),
		admission.Validate(func(context.Context, *v1beta1.Pizza) (field.ErrorList, error) {
			return field.ErrorList{field.Required(field.NewPath("spec"), "no")}, nil
		}),
		admission.ValidateDelete(func(context.Context, *v1beta1.Pizza) (field.ErrorList, error) { return nil, errors.New("out of flour") }))
	nameless := func(r request) request { r.nameless = true; return r }
	generated := strings.Replace(pizza("v1beta1", ""), `"name":"margherita"`, `"generateName":"m-"`, 1)
	if got := ask(t, h, nameless(request{object: generated})); !strings.HasPrefix(got.Result.Message, `Pizza.restaurant.programming-kubernetes.info "m-" is invalid`) {
		t.Errorf("got %s", got.Result.Message)
	}
	if got := undecided(t, h, nameless(request{operation: "DELETE"})); got.Message != "Pizza default/margherita: out of flour" {
		t.Errorf("got %s", got.Message)
	}
}

// The error for a panic of the converter names the object.
func TestConvertWith_Panic(t *testing.T) {
	h := admission.NewHandler(pizzaScheme(t), admission.ConvertWith(panicking), admission.Mutate(addTomato))
	if got := undecided(t, h, request{version: "v1alpha1", object: pizza("v1alpha1", "")}); got.Message != "Pizza default/margherita: the converter panicked: no oven" {
		t.Errorf("got %s", got.Message)
	}
}

// converter is a converter between both versions.
type converter func(ctx context.Context, object []byte, to schema.GroupVersion) ([]byte, error)

func (c converter) Convert(ctx context.Context, object []byte, to schema.GroupVersion) ([]byte, error) {
	return c(ctx, object, to)
}

func (converter) Versions(schema.GroupKind) []string { return []string{"v1alpha1", "v1beta1"} }

var panicking = converter(func(context.Context, []byte, schema.GroupVersion) ([]byte, error) { panic("no oven") })

// failing converts nothing.
func failing(err error) converter {
	return func(context.Context, []byte, schema.GroupVersion) ([]byte, error) { return nil, err }
}

// renamed replaces the version of an object of v1alpha1.
func renamed(object []byte, to schema.GroupVersion) []byte {
	return bytes.Replace(object, []byte(v1alpha1.GroupVersion.String()), []byte(to.String()), 1)
}

// A panic leaves the request undecided, and the next request is served.
func TestHandler_Panic(t *testing.T) {
	for role, option := range map[string]admission.Option{
		"mutating": admission.Mutate(func(_ context.Context, p *v1beta1.Pizza) error {
			if len(p.Spec.Toppings) == 0 {
				panic("dough everywhere")
			}
			return nil
		}),
		"validating": admission.Validate(func(_ context.Context, p *v1beta1.Pizza) (field.ErrorList, error) {
			_ = p.Spec.Toppings[0] // the classic
			return nil, nil
		}),
	} {
		h := admission.NewHandler(pizzaScheme(t), option)
		got := undecided(t, h, request{object: pizza("v1beta1", "")})
		if got.Code != 500 || got.Reason != metav1.StatusReasonInternalError || !strings.HasPrefix(got.Message, "Pizza default/margherita: the admission function panicked: ") {
			t.Errorf("%s: got %+v", role, got)
		}
		if !ask(t, h, request{object: pizza("v1beta1", `,"spec":{"toppings":[{"name":"a"}]}`)}).Allowed {
			t.Errorf("%s: the next request is denied", role)
		}
	}
}

// A denial is certain, whatever else is not decided. Otherwise a failurePolicy of Ignore would
// admit an object that is denied for certain, because of another check that failed.
func TestDenial_UndecidedCheck(t *testing.T) {
	deny := admission.Validate(func(context.Context, *v1beta1.Pizza) (field.ErrorList, error) {
		return field.ErrorList{field.Invalid(field.NewPath("spec"), 1, "no")}, nil
	})
	wait := admission.Validate(func(context.Context, *v1beta1.Pizza) (field.ErrorList, error) {
		return nil, apierrors.NewServiceUnavailable("the oven is cold")
	})
	sameText := admission.Validate(func(context.Context, *v1beta1.Pizza) (field.ErrorList, error) {
		return nil, errors.New("spec: Invalid value: 1: no")
	})
	for _, options := range [][]admission.Option{{deny, wait}, {wait, deny}, {sameText, deny}} {
		if got := ask(t, admission.NewHandler(pizzaScheme(t), options...), request{object: pizza("v1beta1", "")}); got.Allowed || got.Result.Code != 422 {
			t.Errorf("got %+v", got)
		}
	}
	if got := undecided(t, admission.NewHandler(pizzaScheme(t), wait, wait), request{object: pizza("v1beta1", "")}); got.Code != 503 || got.Message != "Pizza default/margherita: the oven is cold" {
		t.Errorf("got %+v", got)
	}
}

// A denial is certain even if a conversion for a later function fails.
func TestDenial_FailedConversion(t *testing.T) {
	deny := admission.Validate(func(context.Context, *v1beta1.Pizza) (field.ErrorList, error) {
		return field.ErrorList{field.Invalid(field.NewPath("spec"), 1, "no")}, nil
	})
	for _, converter := range []admission.Converter{failing(field.Required(field.NewPath("spec"), "required here")), panicking} {
		for _, filters := range [][]admission.Filter{nil, {admission.IfChanged("spec")}} {
			behind := admission.Validate(allow[*v1alpha1.Pizza], filters...)
			for _, options := range [][]admission.Option{{deny, behind}, {behind, deny}} {
				h := admission.NewHandler(pizzaScheme(t), append(options, admission.ConvertWith(converter))...)
				if got := ask(t, h, request{operation: "UPDATE", object: pizza("v1beta1", `,"spec":{}`)}); got.Allowed || got.Result.Code != 422 || !strings.Contains(got.Result.Message, "spec: Invalid value: 1: no") {
					t.Errorf("got %+v", got.Result)
				}
			}
		}
	}
}

// The user is not at fault for an object that a mutator broke.
func TestMutate_BrokenObject(t *testing.T) {
	h := admission.NewHandler(pizzaScheme(t),
		admission.Mutate(func(_ context.Context, u *unstructured.Unstructured) error {
			return unstructured.SetNestedField(u.Object, "tomato", "spec", "toppings")
		}),
		admission.Validate(allow[*v1beta1.Pizza]))
	if got := undecided(t, h, request{object: pizza("v1beta1", "")}); got.Code != 500 || !strings.Contains(got.Message, "the object cannot be decoded into its Go type") {
		t.Errorf("got %+v", got)
	}
}

// An object that does not fit its Go type is denied, also if that is the type of the version from which it is converted.
func TestHandler_UndecodableObject(t *testing.T) {
	h := admission.NewHandler(pizzaScheme(t), admission.ConvertWith(registry(t)), admission.Mutate(addTomato))
	for version, want := range map[string]string{
		"v1beta1":  "Pizza default/margherita: the object cannot be decoded into its Go type: json: cannot unmarshal string into Go struct field PizzaSpec.spec.toppings",
		"v1alpha1": "cannot unmarshal string into Go struct field PizzaSpec.spec.toppings of type []string",
	} {
		response := ask(t, h, request{version: version, object: pizza(version, `,"spec":{"toppings":"tomato"}`)})
		if response.Allowed || response.Result.Code != 400 || !strings.Contains(response.Result.Message, want) {
			t.Errorf("%s: got %+v", version, response.Result)
		}
	}
}

// A stored object that does not fit its Go type blocks no function that does not look at it.
func TestHandler_UndecodableOldObject(t *testing.T) {
	r := request{operation: "UPDATE", object: pizza("v1beta1", ""), old: pizza("v1beta1", `,"spec":{"toppings":[{"quantity":99999999999}]}`)}
	if !ask(t, admission.NewHandler(pizzaScheme(t), admission.Validate(allow[*v1beta1.Pizza])), r).Allowed {
		t.Error("the repair is denied")
	}
	got := undecided(t, admission.NewHandler(pizzaScheme(t), admission.ValidateUpdate(allowUpdate[*v1beta1.Pizza])), r)
	if got.Code != 500 || !strings.Contains(got.Message, "the stored object: the object cannot be decoded into its Go type") {
		t.Errorf("got %+v", got)
	}
}

func TestRequest_WithoutObjectIsRefused(t *testing.T) {
	h := admission.NewHandler(pizzaScheme(t), admission.Mutate(addTomato),
		admission.ValidateDelete(allow[*v1beta1.Pizza]))
	if got := ask(t, h, request{operation: "CREATE"}); got.Allowed || got.Result.Code != 400 {
		t.Errorf("got %+v, want a denial with 400", got)
	}
	if got := undecided(t, h, request{operation: "DELETE", old: "none"}); !strings.Contains(got.Message, "the stored object: the object cannot be decoded into its Go type") {
		t.Errorf("got %+v", got)
	}
}

// A mutator may assign the whole object.
func TestMutate_WholeObject(t *testing.T) {
	h := admission.NewHandler(pizzaScheme(t), admission.ConvertWith(registry(t)), admission.Mutate(func(_ context.Context, p *v1beta1.Pizza) error {
		*p = v1beta1.Pizza{ObjectMeta: p.ObjectMeta, Spec: v1beta1.PizzaSpec{Toppings: []v1beta1.PizzaTopping{{Name: "tomato"}}}}
		return nil
	}))
	for version, spec := range map[string]string{"v1beta1": `,"spec":{"toppings":[{"name":"tomato"}]}`, "v1alpha1": `,"spec":{"toppings":["tomato"]}`} {
		object := pizza(version, "")
		if diff := cmp.Diff(pizza(version, spec), patched(t, object, ask(t, h, request{version: version, object: object}))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", version, diff)
		}
	}
}

// A change in the hub hits the right element of the spoke. A conversion may count, sort or join
// list elements; what a function changed in the hub then is at another index of the spoke.
func TestConvertWith_ListElements(t *testing.T) {
	reg := conversion.NewRegistry(pizzaScheme(t))
	err := conversion.AddSpoke(reg,
		func(_ context.Context, in *v1alpha1.Pizza, out *v1beta1.Pizza) error {
			counts := map[string]int32{}
			for _, name := range in.Spec.Toppings {
				counts[name]++
			}
			for _, name := range slices.Sorted(maps.Keys(counts)) {
				out.Spec.Toppings = append(out.Spec.Toppings, v1beta1.PizzaTopping{Name: name, Quantity: new(counts[name])})
			}
			return nil
		},
		func(_ context.Context, in *v1beta1.Pizza, out *v1alpha1.Pizza) error {
			for _, topping := range in.Spec.Toppings {
				out.Spec.Toppings = append(out.Spec.Toppings, slices.Repeat([]string{topping.Name}, int(*topping.Quantity))...)
			}
			return nil
		})
	expect.NoError(t, err)
	h := admission.NewHandler(pizzaScheme(t), admission.ConvertWith(reg), admission.Mutate(func(_ context.Context, p *v1beta1.Pizza) error {
		p.Spec.Toppings = slices.DeleteFunc(p.Spec.Toppings, func(t v1beta1.PizzaTopping) bool { return t.Name == "pineapple" })
		return nil
	}))
	object := pizza("v1alpha1", `,"spec":{"toppings":["tomato","pineapple","tomato"]}`)
	want := pizza("v1alpha1", `,"spec":{"toppings":["tomato","tomato"]}`)
	if diff := cmp.Diff(want, patched(t, object, ask(t, h, request{version: "v1alpha1", object: object}))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Warnings may come from several goroutines.
func TestWarn_Concurrent(t *testing.T) {
	h := admission.NewHandler(pizzaScheme(t), admission.Validate(func(ctx context.Context, _ *v1beta1.Pizza) (field.ErrorList, error) {
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() { admission.Warn(ctx, "hot %d", i) })
		}
		wg.Wait()
		return nil, nil
	}))
	if got := ask(t, h, request{object: pizza("v1beta1", "")}); len(got.Warnings) != 8 {
		t.Errorf("got %d warnings", len(got.Warnings))
	}
}

// A failed conversion leaves the request undecided.
func TestConvertWith_Failure(t *testing.T) {
	h := admission.NewHandler(pizzaScheme(t), admission.ConvertWith(registry(t)), admission.Mutate(addTomato))
	got := undecided(t, h, request{version: "v1alpha1", object: pizza("v1alpha1", `,"spec":{"toppings":["nails"]}`)})
	if got.Code != 500 || !strings.HasSuffix(got.Message, "cannot convert nails") {
		t.Errorf("got %+v", got)
	}
}

// Functions are called for their operations, and not for subresources.
func TestHandler_Operations(t *testing.T) {
	var calls []string
	note := func(format string, args ...any) { calls = append(calls, fmt.Sprintf(format, args...)) }
	toppings := func(p *v1beta1.Pizza) int { return len(p.Spec.Toppings) }
	h := admission.NewHandler(pizzaScheme(t),
		admission.Mutate(func(_ context.Context, p *v1beta1.Pizza) error { note("mutate %d", toppings(p)); return nil }),
		admission.Validate(func(_ context.Context, p *v1beta1.Pizza) (field.ErrorList, error) {
			note("validate %d", toppings(p))
			return nil, nil
		}),
		admission.Validate(func(_ context.Context, p *v1beta1.Pizza) (field.ErrorList, error) {
			note("create %d", toppings(p))
			return nil, nil
		}, admission.On(admissionv1.Create)),
		admission.ValidateUpdate(func(_ context.Context, p, old *v1beta1.Pizza) (field.ErrorList, error) {
			note("update %d from %d", toppings(p), toppings(old))
			return nil, nil
		}),
		admission.ValidateDelete(func(_ context.Context, old *v1beta1.Pizza) (field.ErrorList, error) {
			note("delete %d", toppings(old))
			return nil, nil
		}))
	one := pizza("v1beta1", `,"spec":{"toppings":[{"name":"a"}]}`)
	two := pizza("v1beta1", `,"spec":{"toppings":[{"name":"a"},{"name":"b"}]}`)
	for _, c := range []struct {
		r    request
		want []string
	}{
		{request{operation: "CREATE", object: one}, []string{"mutate 1", "validate 1", "create 1"}},
		{request{operation: "UPDATE", object: two, old: one}, []string{"mutate 2", "validate 2", "update 2 from 1"}},
		{request{operation: "DELETE", old: two}, []string{"delete 2"}},
		{request{operation: "CONNECT", subresource: "proxy"}, nil},
		{request{operation: "UPDATE", subresource: "status", object: two, old: one}, nil},
		{request{operation: "UPDATE", subresource: "scale", kind: "Scale", object: `{"apiVersion":"autoscaling/v1","kind":"Scale"}`}, nil},
	} {
		calls = nil
		if response := ask(t, h, c.r); !response.Allowed {
			t.Errorf("%v is denied: %v", c.r, response.Result)
		}
		if diff := cmp.Diff(c.want, calls); diff != "" {
			t.Errorf("%s %s (-want +got):\n%s", c.r.operation, c.r.subresource, diff)
		}
	}
}

// A request for a kind or a version that no function is written for is an error.
func TestHandler_NoFunction(t *testing.T) {
	h := admission.NewHandler(pizzaScheme(t), admission.Mutate(addTomato))
	if got := undecided(t, h, request{kind: "Calzone", object: pizza("v1beta1", "")}); got.Code != 500 || !strings.Contains(got.Message, "no function is registered for kind Calzone.restaurant.programming-kubernetes.info") {
		t.Errorf("got %+v", got)
	}
	if got := undecided(t, h, request{version: "v1alpha1", object: pizza("v1alpha1", "")}); got.Code != 500 || !strings.Contains(got.Message, "are for version v1beta1, not v1alpha1: use ConvertWith, or add functions for v1alpha1") {
		t.Errorf("got %+v", got)
	}
}

func TestRequestFrom(t *testing.T) {
	h := admission.NewHandler(pizzaScheme(t), admission.Validate(func(ctx context.Context, _ *v1beta1.Pizza) (field.ErrorList, error) {
		r, ok := admission.RequestFrom(ctx)
		if again, _ := admission.RequestFrom(ctx); again != r {
			t.Error("it is decoded twice")
		}
		if !ok || r.UserInfo.Username != "ada" || !*r.DryRun || r.Operation != admissionv1.Create || r.Name != "margherita" {
			t.Errorf("the request is %+v, %v", r, ok)
		}
		return nil, nil
	}))
	ask(t, h, request{object: pizza("v1beta1", "")})
	if _, ok := admission.RequestFrom(t.Context()); ok {
		t.Error("there is a request where none should be")
	}
	admission.Warn(t.Context(), "nobody hears this")
}

// fault returns the error with which NewHandler panics, or nil.
func fault(s *runtime.Scheme, opts ...admission.Option) (err error) {
	defer func() { err, _ = recover().(error) }()
	admission.NewHandler(s, opts...)
	return nil
}

// An incomplete handler is found when the program starts.
func TestNewHandler_Faults(t *testing.T) {
	type unknown struct{ v1beta1.Pizza }
	for name, c := range map[string]struct {
		options []admission.Option
		want    []string
	}{
		"no functions":   {nil, []string{"the handler has no functions"}},
		"a nil function": {[]admission.Option{admission.Validate[*v1beta1.Pizza](nil)}, []string{"a function is nil"}},
		"unknown types": {
			[]admission.Option{
				admission.Mutate(func(context.Context, *unknown) error { return nil }),
				admission.Validate(allow[runtime.Object]),
			},
			[]string{"type *admission_test.unknown is not registered in the scheme", "type runtime.Object, expected a pointer to a struct"},
		},
		"a nil converter": {[]admission.Option{admission.ConvertWith(nil)}, []string{"the converter of ConvertWith is nil"}},
		"a nil registry":  {[]admission.Option{admission.ConvertWith((*conversion.Registry)(nil))}, []string{"the converter of ConvertWith is nil"}},
		"a list": {
			[]admission.Option{admission.Mutate(func(context.Context, *v1beta1.PizzaList) error { return nil })},
			[]string{"type *v1beta1.PizzaList is a list"},
		},
	} {
		t.Run(name, func(t *testing.T) { expect.ErrorContains(t, fault(pizzaScheme(t), c.options...), c.want...) })
	}
}

func TestRequestWithoutBody_IsRefused(t *testing.T) {
	h := admission.NewHandler(pizzaScheme(t), admission.Mutate(addTomato))
	r := &http.Request{Method: http.MethodPost, URL: &url.URL{}, Header: http.Header{"Content-Type": {"application/json"}}}
	w := httptest.NewRecorder()
	if h.ServeHTTP(w, r); w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "the body is empty") {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
}

// Strings share memory, but not with the request.
func TestKeptString_HoldsNoRequest(t *testing.T) {
	var kept []string
	h := admission.NewHandler(pizzaScheme(t), admission.Mutate(func(_ context.Context, p *v1alpha1.Pizza) error {
		kept = append(kept, p.Spec.Toppings[0])
		return nil
	}))
	r := request{version: "v1alpha1", object: pizza("v1alpha1", `,"spec":{"toppings":["a"`+strings.Repeat(`,"`+strings.Repeat("x", 100)+`"`, 10000)+`]}`)}
	heap := func() int64 {
		goruntime.GC()
		var m goruntime.MemStats
		goruntime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	ask(t, h, r) // has memory of its own, for the next ones
	before := heap()
	for range 30 {
		ask(t, h, r)
	}
	if held := heap() - before; held > 10<<20 {
		t.Errorf("%d strings of one byte, each of a request of a megabyte, hold %d bytes", len(kept), held)
	}
}

func TestHandler_NoUIDOfRequestBefore(t *testing.T) {
	h := admission.NewHandler(pizzaScheme(t), admission.Mutate(addTomato))
	if w := post(t, h, request{object: pizza("v1beta1", "")}.String()); !strings.Contains(w.Body.String(), "u-1") {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
	w := httptest.NewRecorder()
	if h.ServeHTTP(w, r); strings.Contains(w.Body.String(), "u-1") {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
}

// FuzzHandler checks that any body gets an answer that can be read, whatever the handler has answered before, and that a
// patch applies to the object that was sent.
func FuzzHandler(f *testing.F) {
	f.Add([]byte(request{object: pizza("v1beta1", `,"spec":{"toppings":[{"name":"a","quantity":2,"x":[1.0]}]}`)}.String()))
	f.Add([]byte(request{version: "v1alpha1", object: pizza("v1alpha1", `,"spec":null`), old: "{}"}.String()))
	f.Add([]byte(request{operation: "DELETE", review: "v1beta1", old: pizza("v1beta1", "")}.String()))
	f.Add([]byte(request{operation: "UPDATE", subresource: "status", object: `{"metadata":{"deletionTimestamp":"x"},"spec":1}`, old: `{"spec":1.0}`}.String()))
	f.Add([]byte(request{operation: "CONNECT", kind: "Calzone", version: "v1alpha1", object: `{"metadata":{"labels":{"a":null},"managedFields":[{}]}}`}.String()))
	schema, versions := pizzaScheme(f), registry(f)
	handler := func() http.Handler {
		return admission.NewHandler(schema, admission.ConvertWith(versions),
			admission.Mutate(addTomato),
			admission.Mutate(label[*unstructured.Unstructured]),
			admission.Mutate(label[*metav1.PartialObjectMetadata], admission.On(admissionv1.Connect, admissionv1.Update), admission.UnlessDeleting()),
			admission.Mutate(label[*v1beta1.Pizza], admission.Subresource("status")),
			admission.Validate(func(ctx context.Context, _ *v1beta1.Pizza) (field.ErrorList, error) {
				if _, err := admission.OldFrom[*unstructured.Unstructured](ctx); err != nil {
					return nil, err
				}
				admission.RequestFrom(ctx)
				return nil, nil
			}, admission.IfChanged("spec", "metadata.labels")))
	}
	h := handler()
	f.Fuzz(func(t *testing.T, body []byte) {
		w := post(t, h, string(body))
		answer := &admissionv1.AdmissionReview{}
		if err := json.Unmarshal(w.Body.Bytes(), answer); err != nil {
			t.Fatalf("%q is answered with %q: %v", body, w.Body, err)
		}
		if fresh := post(t, handler(), string(body)); fresh.Code != w.Code || fresh.Body.String() != w.Body.String() {
			t.Errorf("%q is answered with %d %s, by a new handler with %d %s", body, w.Code, w.Body, fresh.Code, fresh.Body)
		}
		asked := &admissionv1.AdmissionReview{}
		if w.Code != http.StatusOK || answer.Response.Patch == nil || json.Unmarshal(body, asked) != nil || asked.Request == nil {
			return
		}
		patched(t, string(asked.Request.Object.Raw), answer.Response)
	})
}
