// Package breaking answers one question: what would a new definition break that works with
// the old one?
//
//	before, err := schema.Parse(oldYAML)
//	after, err := schema.Parse(newYAML)
//	for _, c := range breaking.Changes(ctx, before, after) {
//		fmt.Println(c)
//	}
//
// A test, or CI, reports before a release what its users would find: which objects are
// refused that were accepted ([Refused]), which data is lost or changed ([Altered]), and
// what else is gone that clients rely on ([Clients]). Most changes of a schema come with a
// [Proof]: an object that shows it. Package schema does to that object what the API server
// would do with each definition.
//
// # What it does not do
//
// It does not show that nothing breaks: whether a pattern or a CEL rule allows less than
// another one cannot be decided in general. A change of which no object was found is reported
// all the same, as unproven: treat it as breaking until a person has looked at it. Objects from
// a cluster help to find proofs.
//
// It does not check whether the API server accepts the update of the definition itself, beyond
// the changes that it never accepts. [schema.Check] lists the problems of one definition.
//
// An object is judged in its own version alone: data that the new storage version loses is
// reported for that version, and not for the others that are converted to it. Objects that are
// stored already are judged like new ones, although the server tolerates more in them: see
// [Changes].
package breaking
