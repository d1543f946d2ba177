// Package validate validates changes of fields in admission webhooks.
//
// Its functions compare a value with its old value, or several fields of an object, and return
// field errors, or nil. Call them in the functions that you register by
// [github.com/crdkit/crdkit/admission.Validate] and
// [github.com/crdkit/crdkit/admission.ValidateUpdate]:
//
//	func databaseUpdate(_ context.Context, db, old *v1.Database) (field.ErrorList, error) {
//		spec := field.NewPath("spec")
//		return slices.Concat(
//			validate.Immutable(spec.Child("engine"), db.Spec.Engine, old.Spec.Engine),
//			validate.ImmutableOnceSet(spec.Child("volumeName"), db.Spec.VolumeName, old.Spec.VolumeName),
//			validate.Transition(spec.Child("size"), db.Spec.Size, old.Spec.Size, sizes),
//		), nil
//	}
//
//	mux.Handle("/validate", admission.NewHandler(s, admission.ValidateUpdate(databaseUpdate)))
//
// If apimachinery has a similar function (pkg/api/validate, pkg/api/validation), the order of
// the arguments, the types of the errors and their messages are the same.
//
// # Equal and unset values
//
// Values are compared by [k8s.io/apimachinery/pkg/api/equality.Semantic]:
//
//   - nil equals an empty list or map, at any depth.
//   - Quantities of the same number are equal, such as 1 and 1000m.
//   - nil differs from a pointer to a zero value.
//   - Lists are equal only in the same order.
//   - Raw JSON is compared byte by byte.
//
// A comparison panics at an unexported field of a struct, as in Semantic, unless Semantic has
// a function for the type, such as [k8s.io/apimachinery/pkg/apis/meta/v1.Time]. [Transition]
// compares with ==.
//
// A value is unset if it equals the zero value of its type: "", 0, false, nil, an empty list or
// map, the quantity 0, or a struct with only such fields. If zero is a valid choice, use a pointer
// for the field, because a pointer to a zero value is set.
//
// # Rules in the schema
//
// Most of these rules can be in the schema, in x-kubernetes-validations of the object that has
// the fields:
//
//	Immutable         has(self.a) == has(oldSelf.a) && (!has(self.a) || self.a == oldSelf.a)
//	ImmutableOnceSet  !has(oldSelf.a) || has(self.a) && self.a == oldSelf.a
//	Transition        self.a == oldSelf.a || oldSelf.a == 'S' && self.a in ['M', 'L']
//	ExactlyOneOf      [has(self.a), has(self.b)].exists_one(set, set)
//	NoRemoveItem      oldSelf.a.all(old, self.a.exists(item, item.name == old.name))
//
// Prefer such rules, because they need no webhook, which may be down, and because the API server
// ratchets them (KEP-4008): a stored object that violates a rule without oldSelf may still change
// outside the object that has the rule. Rules with oldSelf are checked only on updates. A rule at
// the field itself is not checked when the field is added or removed, so self == oldSelf at a field
// protects only required fields.
//
// Use this package in these cases:
//
//   - Only some users may change a field. A schema cannot check users, but a
//     ValidatingAdmissionPolicy can, by request.userInfo.
//   - A list or map has no maxItems, so that a rule costs too much.
//   - One function serves all versions, by [github.com/crdkit/crdkit/admission.ConvertWith].
//   - Other Go code uses the same table of transitions.
//
// This package does not ratchet: until the violation is fixed, a stored object that violates
// [ExactlyOneOf] cannot be changed, not even to remove its finalizers. If such objects may exist,
// use the filters [github.com/crdkit/crdkit/admission.IfChanged] and
// [github.com/crdkit/crdkit/admission.UnlessDeleting].
//
// This package does not read from a cluster; see admission/reference for checks of other
// objects.
package validate
