// Package breaking finds the changes of a CustomResourceDefinition (CRD) that break stored
// objects or clients.
//
//	before, err := schema.Parse(oldYAML)
//	after, err := schema.Parse(newYAML)
//	for _, c := range breaking.Changes(ctx, before, after) {
//		fmt.Println(c)
//	}
//
// Call [Changes] in a test or in CI, before you release a new version of your operator. The
// result has three kinds of changes: the server refuses objects that it accepted ([Refused]),
// data is lost or changed ([Altered]), or something else that clients rely on is missing
// ([Clients]).
//
// Most changes of a schema have a [Proof]: an object that shows the change. Package schema
// processes that object with both CRDs, as the API server would.
//
// # Limitations
//
// An empty result does not prove that the change is safe: in general, it is undecidable whether a
// pattern or a CEL rule allows less than another one. If no object was found that shows a change,
// the change is still reported, as unproven. Treat it as breaking until you have reviewed it.
// Pass objects from a cluster as samples to find more proofs.
//
// The package does not check whether the API server accepts the update of the CRD itself, except
// for changes that it never accepts. [schema.Check] returns the problems of a single CRD.
//
// An object is only checked in its own version. Data that the new storage version loses is
// reported for the storage version, but not for other versions, although their objects are
// converted to the storage version. Stored objects are checked like new objects, although the
// server tolerates more in stored objects: see [Changes].
package breaking
