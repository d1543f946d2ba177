// Package validate answers one question for admission: may this field become that?
//
// Its functions compare a value with what it was, or fields with one another, and
// return field errors, nil if all is well. They are called inside the functions that
// [github.com/crdkit/crdkit/admission.Validate] and
// [github.com/crdkit/crdkit/admission.ValidateUpdate] take:
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
// The order of arguments, the types of the errors and their words are those of
// apimachinery (pkg/api/validate, pkg/api/validation), where it has such a function.
//
// # Equal, and unset
//
// Two values are equal as [k8s.io/apimachinery/pkg/api/equality.Semantic] says: nil and
// an empty list or map are equal, at any depth; so are quantities of the same number,
// such as 1 and 1000m; nil and a pointer to zero are not; lists are equal in the same
// order only. [Transition] compares with ==.
//
// A value is unset if it is equal to the zero value of its type: "", 0, false, nil, an
// empty list or map, the quantity 0, and a struct with nothing but those. A pointer to
// any of them is set: where zero is a choice, the field must be a pointer.
//
// A comparison panics at an unexported field of a struct, as Semantic does, unless the
// type is one that it knows, such as [k8s.io/apimachinery/pkg/apis/meta/v1.Time]. Raw
// JSON is compared as text.
//
// # Instead of a webhook
//
// A schema can have most of these rules, in x-kubernetes-validations of the object that has
// the fields:
//
//	Immutable         has(self.a) == has(oldSelf.a) && (!has(self.a) || self.a == oldSelf.a)
//	ImmutableOnceSet  !has(oldSelf.a) || has(self.a) && self.a == oldSelf.a
//	Transition        self.a == oldSelf.a || oldSelf.a == 'S' && self.a in ['M', 'L']
//	ExactlyOneOf      [has(self.a), has(self.b)].exists_one(set, set)
//	NoRemoveItem      oldSelf.a.all(old, self.a.exists(item, item.name == old.name))
//
// Prefer those: they need no webhook that can be down, and the API server ratchets them
// (KEP-4008): a rule without oldSelf that a stored object breaks already does not refuse
// a change outside the object that has the rule. Rules with oldSelf are checked on
// updates only. A rule at the field itself is not called when the field
// is added or removed, so that self == oldSelf there protects only a required field.
//
// The functions here are for the rest: the users that may change a field, which a schema does not
// know (a ValidatingAdmissionPolicy does: request.userInfo); a list or map without
// maxItems, for which a rule costs too much; one function for all versions, with
// [github.com/crdkit/crdkit/admission.ConvertWith]; a table that other Go code uses too.
//
// The package does not ratchet: an object that broke [ExactlyOneOf] before the rule existed
// cannot be changed until it is fixed; not even its finalizers can be removed. Where such
// objects may exist, use the filters [github.com/crdkit/crdkit/admission.IfChanged] and
// [github.com/crdkit/crdkit/admission.UnlessDeleting]. It keeps no state, and does not look
// into a cluster (see admission/reference).
package validate
