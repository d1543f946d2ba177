// Package breaking finds the changes of a CustomResourceDefinition (CRD) that break stored
// objects or clients.
//
//	before, err := schema.Parse(oldYAML)
//	after, err := schema.Parse(newYAML)
//	changes, err := breaking.Changes(ctx, before, after)
//	for _, c := range changes {
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
// An empty result does not prove that the change is safe. Whether a pattern, a length or an enum allows
// less is decided, but in general it is undecidable whether a CEL rule allows less than another one.
// If no object was found that shows a change, the change is still reported, as unproven. Treat it as
// breaking until you have reviewed it. Pass objects from a cluster as samples to find more proofs.
//
// The package does not check whether the API server accepts the update of the CRD itself, except
// for changes that it never accepts. [schema.Check] returns the problems of a single CRD.
//
// Conversion webhooks are not called. Without a webhook, what another storage version makes of the
// objects of the other versions is reported; what the same storage version loses is reported only
// for that version.
package breaking
