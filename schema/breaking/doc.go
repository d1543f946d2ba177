// Package breaking finds the changes of CustomResourceDefinitions (CRDs) between two releases that break
// stored objects or clients.
//
//	before, err := schema.ParseAll(oldYAML)
//	after, err := schema.ParseAll(newYAML)
//	changes, err := breaking.Changes(ctx, schema.Release{Definitions: before}, schema.Release{Definitions: after})
//	for _, c := range changes {
//		fmt.Println(c)
//	}
//
// Call [Changes] in a test or in CI, before you release a new version of your operator. The
// result has three kinds of changes: the server refuses objects that it accepted ([Refused]),
// data is lost or changed ([Altered]), or something else that clients rely on is missing, such as a
// version or the whole CRD ([Clients]).
//
// Most changes of a schema have a [Proof]: an example object that breaks when package schema
// processes it with both CRDs, as the API server would.
//
// # Limitations
//
// A change that may be harmless, because no example was found, is reported as unproven. Treat it as
// breaking until you have reviewed it; objects from a cluster, passed as samples, can prove more
// changes. An empty result does not prove that the update is safe: whether a pattern, a length or
// an enum allows less is decided, but undecidable for CEL rules in general.
//
// The package does not check whether the API server accepts the update of the CRD itself, except
// for changes that it never accepts. [schema.Check] returns the problems of a single CRD.
//
// Conversion webhooks are not called. Without a webhook, a new storage version that lacks fields of
// another version is reported for that version; if the storage version stays the same, its losses
// are reported only once, for itself.
package breaking
