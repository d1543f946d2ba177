package validate_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/api/operation"
	"k8s.io/apimachinery/pkg/api/resource"
	upstream "k8s.io/apimachinery/pkg/api/validate"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/crdkit/crdkit/admission"
	"github.com/crdkit/crdkit/admission/validate"
)

// rules are what two values break: Immutable, and ImmutableOnceSet.
type rules struct{ immutable, onceSet string }

func broken[T any](value, oldValue T) rules {
	path := field.NewPath("a")
	text := func(errs field.ErrorList) string {
		var details []string
		for _, e := range errs {
			details = append(details, e.Detail)
		}
		return strings.Join(details, "; ")
	}
	return rules{text(validate.Immutable(path, value, oldValue)), text(validate.ImmutableOnceSet(path, value, oldValue))}
}

// Equal and unset mean the same for every kind of field.
func TestImmutable_EveryKindOfField(t *testing.T) {
	const immutable, modified, cleared = "field is immutable", "field cannot be modified once set", "field cannot be cleared once set"
	var (
		same   = rules{}
		set    = rules{immutable, ""}
		change = rules{immutable, modified}
		unset  = rules{immutable, cleared}
	)
	type limits struct {
		CPU   resource.Quantity
		Names []string
		Until *metav1.Time
	}
	q := resource.MustParse
	noon := metav1.NewTime(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC))
	noonElsewhere := metav1.NewTime(noon.In(time.FixedZone("X", 3600)))
	for name, c := range map[string]struct{ want, got rules }{
		"the same string":                        {same, broken("a", "a")},
		"a string is set":                        {set, broken("a", "")},
		"a string is changed":                    {change, broken("b", "a")},
		"a string is cleared":                    {unset, broken("", "a")},
		"both are empty":                         {same, broken("", "")},
		"false becomes true":                     {set, broken(true, false)},
		"true becomes false":                     {unset, broken(false, true)},
		"a nil pointer stays":                    {same, broken[*int32](nil, nil)},
		"a nil pointer gets zero":                {set, broken(new(int32(0)), nil)},
		"a pointer to zero gets one":             {change, broken(new(int32(1)), new(int32(0)))},
		"a pointer to zero is cleared":           {unset, broken(nil, new(int32(0)))},
		"other pointers to the same":             {same, broken(new("a"), new("a"))},
		"nil becomes an empty list":              {same, broken([]string{}, nil)},
		"an empty list becomes nil":              {same, broken(nil, []string{})},
		"a list is filled":                       {set, broken([]string{"a"}, []string{})},
		"a list grows":                           {change, broken([]string{"a", "b"}, []string{"a"})},
		"a list changes its order":               {change, broken([]string{"b", "a"}, []string{"a", "b"})},
		"a list is emptied":                      {unset, broken([]string{}, []string{"a"})},
		"a list of an empty string":              {set, broken([]string{""}, nil)},
		"nil becomes an empty map":               {same, broken(map[string]string{}, nil)},
		"a map changes":                          {change, broken(map[string]string{"a": "2"}, map[string]string{"a": "1"})},
		"a map is emptied":                       {unset, broken(map[string]string{}, map[string]string{"a": "1"})},
		"a quantity is written in another way":   {same, broken(q("1000m"), q("1"))},
		"a quantity of zero":                     {same, broken(q("0"), resource.Quantity{})},
		"a quantity changes":                     {change, broken(q("2"), q("1"))},
		"a pointer to a quantity of zero is one": {set, broken(new(q("0")), nil)},
		"the same time in another zone":          {same, broken(noonElsewhere, noon)},
		"a time is cleared":                      {unset, broken(nil, &noon)},
		"a struct that differs in nil and empty": {same, broken(limits{CPU: q("1"), Names: []string{}}, limits{CPU: q("1000m")})},
		"a struct with nothing but zeros is set": {set, broken(limits{CPU: q("1")}, limits{CPU: q("0"), Names: []string{}})},
		"a struct changes in one field":          {change, broken(limits{CPU: q("1"), Until: &noon}, limits{CPU: q("1")})},
		"a struct is cleared":                    {unset, broken(limits{}, limits{Names: []string{"a"}})},
		"a pointer to an empty struct is set":    {set, broken(&limits{}, nil)},
		"an interface is set":                    {set, broken[any]("a", nil)},
		"an interface changes its type":          {change, broken[any](1, "a")},
	} {
		if diff := cmp.Diff(c.want, c.got, cmp.AllowUnexported(rules{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// An unexported field cannot be compared.
func TestImmutable_UnexportedField(t *testing.T) {
	type hidden struct{ a int }
	for name, compare := range map[string]func() field.ErrorList{
		"a struct":  func() field.ErrorList { return validate.Immutable(spec, hidden{1}, hidden{2}) },
		"time.Time": func() field.ErrorList { return validate.ImmutableOnceSet(spec, time.Time{}, time.Time{}) },
	} {
		func() {
			defer func() {
				if text := fmt.Sprint(recover()); !strings.Contains(text, "unexported field") {
					t.Errorf("%s: got %s", name, text)
				}
			}()
			compare()
		}()
	}
}

// The error is that of apimachinery.
func TestImmutable_Apimachinery(t *testing.T) {
	path := field.NewPath("spec", "a")
	for _, c := range [][2]any{{"a", "a"}, {"b", "a"}, {nil, "a"}, {[]string{}, []string(nil)}, {map[string]int{"a": 1}, nil}} {
		want := validation.ValidateImmutableField(c[0], c[1], path)
		if diff := cmp.Diff(want.ToAggregate(), validate.Immutable(path, c[0], c[1]).ToAggregate(), cmp.Comparer(sameText)); diff != "" {
			t.Errorf("%v (-want +got):\n%s", c, diff)
		}
	}
}

func sameText(a, b error) bool { return fmt.Sprint(a) == fmt.Sprint(b) }

// A rule that holds is not an error.
func TestValidate_NoError(t *testing.T) {
	key := func(s string) string { return s }
	for name, errs := range map[string]field.ErrorList{
		"Immutable":        validate.Immutable(spec, 1, 1),
		"ImmutableOnceSet": validate.ImmutableOnceSet(spec, 1, 1),
		"Transition":       validate.Transition(spec, 1, 1, nil),
		"ExactlyOneOf":     validate.ExactlyOneOf(spec, map[string]bool{"a": true}),
		"AtMostOneOf":      validate.AtMostOneOf(spec, nil),
		"AtLeastOneOf":     validate.AtLeastOneOf(spec, map[string]bool{"a": true, "b": true}),
		"ChangedOnlyBy":    validate.ChangedOnlyBy(t.Context(), spec, 1, 1),
		"SetOnlyBy":        validate.SetOnlyBy(t.Context(), spec, 0),
		"EachItem":         validate.EachItem(spec, []string{"a"}, []string{"a"}, key, validate.Immutable),
		"NoRemoveItem":     validate.NoRemoveItem(spec, []string{"a"}, []string{"a"}, key),
	} {
		if errs != nil {
			t.Errorf("%s returns %#v, want nil", name, errs)
		}
	}
}

// A transition must be in the table.
func TestTransition(t *testing.T) {
	type phase string
	table := map[phase][]phase{"Pending": {"Ready", "Failed"}, "Ready": {"Failed"}, "Done": {}}
	for _, c := range []struct{ from, to, want string }{
		{"Pending", "Ready", ""},
		{"Pending", "Failed", ""},
		{"Pending", "Pending", ""},
		{"Failed", "Failed", ""},
		{"Legacy", "Legacy", ""},
		{"", "", ""},
		{"Ready", "Pending", `a: Invalid value: "Pending": may not change from "Ready" to this: supported values: "Failed"`},
		{"Pending", "Done", `a: Invalid value: "Done": may not change from "Pending" to this: supported values: "Ready", "Failed"`},
		{"Pending", "", `a: Invalid value: "": may not change from "Pending" to this: supported values: "Ready", "Failed"`},
		{"Failed", "Ready", `a: Invalid value: "Ready": may not change from "Failed"`},
		{"Done", "Ready", `a: Invalid value: "Ready": may not change from "Done"`},
		{"Legacy", "Pending", `a: Invalid value: "Pending": may not change from "Legacy"`},
		{"", "Pending", `a: Invalid value: "Pending": may not change from ""`},
	} {
		got := ""
		if err := validate.Transition(field.NewPath("a"), phase(c.to), phase(c.from), table).ToAggregate(); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%q to %q: got %s, want %s", c.from, c.to, got, c.want)
		}
	}
	want := "a: Invalid value: 14: may not change from 15 to this: supported values: 16, 17"
	if got := validate.Transition(field.NewPath("a"), 14, 15, map[int][]int{15: {16, 17}}).ToAggregate(); got == nil || got.Error() != want {
		t.Errorf("got %v, want %s", got, want)
	}
}

// The errors name the members that are set, and all candidates.
func TestOneOf(t *testing.T) {
	const (
		none    = "a: Invalid value: \"\": must specify one of: `x`, `y`, `z`"
		exactly = "a: Invalid value: \"{x, z}\": must specify exactly one of: `x`, `y`, `z`"
		most    = "a: Invalid value: \"{x, z}\": must specify at most one of: `x`, `y`, `z`"
	)
	type verdicts struct{ Exactly, Most, Least string }
	for set, want := range map[string]verdicts{
		"":   {none, "", none},
		"y":  {},
		"zx": {exactly, most, ""},
	} {
		isSet := map[string]bool{}
		for _, name := range []string{"z", "y", "x"} {
			isSet[name] = strings.Contains(set, name)
		}
		text := func(errs field.ErrorList) string {
			if errs == nil {
				return ""
			}
			return errs.ToAggregate().Error()
		}
		path := field.NewPath("a")
		got := verdicts{text(validate.ExactlyOneOf(path, isSet)), text(validate.AtMostOneOf(path, isSet)), text(validate.AtLeastOneOf(path, isSet))}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("with %q (-want +got):\n%s", set, diff)
		}
	}
}

// The errors are those of apimachinery.
func TestOneOf_Apimachinery(t *testing.T) {
	members := upstream.NewUnionMembership(upstream.NewUnionMember("x"), upstream.NewUnionMember("y"), upstream.NewUnionMember("z"))
	path, create := field.NewPath("a"), operation.Operation{Type: operation.Create}
	has := func(name string) upstream.ExtractorFn[string, bool] {
		return func(set string) bool { return strings.Contains(set, name) }
	}
	for _, set := range []string{"", "x", "z", "xy", "yz", "xyz"} {
		isSet := map[string]bool{"x": has("x")(set), "y": has("y")(set), "z": has("z")(set)}
		wantOne := upstream.Union(t.Context(), create, path, set, "", members, has("x"), has("y"), has("z"))
		if diff := cmp.Diff(wantOne.ToAggregate(), validate.ExactlyOneOf(path, isSet).ToAggregate(), cmp.Comparer(sameText)); diff != "" {
			t.Errorf("with %q (-want +got):\n%s", set, diff)
		}
		wantMost := upstream.ZeroOrOneOfUnion(t.Context(), create, path, set, "", members, has("x"), has("y"), has("z"))
		if diff := cmp.Diff(wantMost.ToAggregate(), validate.AtMostOneOf(path, isSet).ToAggregate(), cmp.Comparer(sameText)); diff != "" {
			t.Errorf("with %q (-want +got):\n%s", set, diff)
		}
	}
}

// Only some users can change a field.
func TestOnlyBy(t *testing.T) {
	ada := authenticationv1.UserInfo{Username: "ada", Groups: []string{"system:authenticated", "admins"}}
	bob := authenticationv1.UserInfo{Username: "bob", Groups: []string{"system:authenticated"}}
	operator := authenticationv1.UserInfo{Username: "system:serviceaccount:db-system:operator", Groups: []string{"system:serviceaccounts", "system:serviceaccounts:db-system"}}
	imposter := authenticationv1.UserInfo{Username: "system:serviceaccount:default:operator", Groups: []string{"system:serviceaccounts", "system:serviceaccounts:default"}}
	all := []authenticationv1.UserInfo{ada, bob, operator, imposter}
	unset, set, other := &Database{}, &Database{Spec: DatabaseSpec{MaintenanceBy: "x"}}, &Database{Spec: DatabaseSpec{MaintenanceBy: "y"}}

	for name, c := range map[string]struct {
		who  []func(authenticationv1.UserInfo) bool
		want string
	}{
		"nobody":                       {nil, ""},
		"a user":                       {[]func(authenticationv1.UserInfo) bool{validate.User("ada")}, "ada"},
		"one of two users":             {[]func(authenticationv1.UserInfo) bool{validate.User("eve", "bob")}, "bob"},
		"a group":                      {[]func(authenticationv1.UserInfo) bool{validate.Group("admins")}, "ada"},
		"one of two groups":            {[]func(authenticationv1.UserInfo) bool{validate.Group("x", "system:authenticated")}, "ada bob"},
		"a service account":            {[]func(authenticationv1.UserInfo) bool{validate.ServiceAccount("db-system", "operator")}, "system:serviceaccount:db-system:operator"},
		"a namespace":                  {[]func(authenticationv1.UserInfo) bool{validate.Group("system:serviceaccounts:default")}, "system:serviceaccount:default:operator"},
		"a user or a service account":  {[]func(authenticationv1.UserInfo) bool{validate.User("bob"), validate.ServiceAccount("db-system", "operator")}, "bob system:serviceaccount:db-system:operator"},
		"a function of the caller":     {[]func(authenticationv1.UserInfo) bool{func(u authenticationv1.UserInfo) bool { return len(u.Username) == 3 }}, "ada bob"},
		"a group is not a user's name": {[]func(authenticationv1.UserInfo) bool{validate.Group("ada"), validate.User("admins")}, ""},
	} {
		path := spec.Child("maintenanceBy")
		h := newHandler(
			admission.Validate(func(ctx context.Context, db *Database) (field.ErrorList, error) {
				return validate.SetOnlyBy(ctx, path, db.Spec.MaintenanceBy, c.who...), nil
			}),
			admission.ValidateUpdate(func(ctx context.Context, db, old *Database) (field.ErrorList, error) {
				return validate.ChangedOnlyBy(ctx, path, db.Spec.MaintenanceBy, old.Spec.MaintenanceBy, c.who...), nil
			}))
		for change, objects := range map[string]struct{ obj, old *Database }{
			"create": {set, nil}, "set": {set, unset}, "change": {other, set}, "clear": {unset, set},
		} {
			var may []string
			for _, user := range all {
				switch got := ask(h, user, objects.obj, objects.old); got {
				case "allowed":
					may = append(may, user.Username)
				case fmt.Sprintf(`Database.db.example.com "orders" is invalid: spec.maintenanceBy: Forbidden: user %q may not change this field`, user.Username):
				default:
					t.Errorf("%s: %s %s: %s", name, user.Username, change, got)
				}
			}
			if got := strings.Join(may, " "); got != c.want {
				t.Errorf("%s: %s: %q may, want %q", name, change, got, c.want)
			}
		}
		for _, user := range all {
			for _, objects := range [][2]*Database{{unset, nil}, {unset, unset}, {set, set}} {
				if got := ask(h, user, objects[0], objects[1]); got != "allowed" {
					t.Errorf("%s: %s, who changes nothing: %s", name, user.Username, got)
				}
			}
		}
	}
}

// Without a request the functions trust no user.
func TestOnlyBy_WithoutARequest(t *testing.T) {
	everybody := func(authenticationv1.UserInfo) bool { return true }
	want := "a: Internal error: the user is unknown: expected the context of an admission function"
	for name, errs := range map[string]field.ErrorList{
		"ChangedOnlyBy": validate.ChangedOnlyBy(t.Context(), field.NewPath("a"), 2, 1, everybody),
		"SetOnlyBy":     validate.SetOnlyBy(t.Context(), field.NewPath("a"), 2, everybody),
	} {
		if got := fmt.Sprint(errs.ToAggregate()); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
}

// Items are found by their keys.
func TestEachItem(t *testing.T) {
	name := func(v Volume) string { return v.Name }
	old := []Volume{{"data", "fast"}, {"log", "slow"}, {"data", "twice"}}
	for _, c := range []struct {
		value          []Volume
		wants, removed []string
	}{
		{old[:2], nil, nil},
		{[]Volume{{"log", "slow"}, {"data", "fast"}}, nil, nil},
		{[]Volume{{"new", "any"}, {"log", "fast"}, {"data", "fast"}}, []string{`a[1]: {"name":"log","class":"fast"}`}, nil},
		{[]Volume{{"data", "slow"}, {"log", "fast"}}, []string{`a[0]: {"name":"data","class":"slow"}`, `a[1]: {"name":"log","class":"fast"}`}, nil},
		{[]Volume{{"log", "slow"}}, nil, []string{"a[data]"}},
		{nil, nil, []string{"a[data]", "a[log]"}},
	} {
		var changed, removed []string
		for _, e := range validate.EachItem(field.NewPath("a"), c.value, old, name, validate.Immutable) {
			changed = append(changed, strings.NewReplacer(" Invalid value:", "", ": field is immutable", "").Replace(e.Error()))
		}
		for _, e := range validate.NoRemoveItem(field.NewPath("a"), c.value, old, name) {
			removed = append(removed, e.Field)
		}
		if diff := cmp.Diff([][]string{c.wants, c.removed}, [][]string{changed, removed}); diff != "" {
			t.Errorf("%v (-want +got):\n%s", c.value, diff)
		}
	}
	if errs := validate.EachItem(field.NewPath("a"), old, nil, name, validate.Immutable); errs != nil {
		t.Errorf("a new list: %v", errs)
	}
}
