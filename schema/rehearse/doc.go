// Package rehearse answers one question: what does an upgrade do to the objects that a cluster
// has stored?
//
//	old := rehearse.Release{Definitions: before}
//	new := rehearse.Release{Definitions: after, Webhook: rehearse.Handler(conversion.NewHandler(reg))}
//	report, err := rehearse.Run(ctx, old, new, objects)
//	if err != nil || report.Lost() {
//		…
//	}
//
// Tests of conversions make objects that today's definition accepts. A cluster has others: what an
// earlier definition accepted, and what ratcheting let stay. One object that cannot be
// converted makes every list and watch of its kind fail.
//
// [Run] takes the definitions of both releases, their conversion webhooks, and stored objects, and
// replays each object through the upgrade:
//
//  1. The old release reads it, in each served version.
//  2. The new one reads it, in each served version ([Upgrade]).
//  3. A client of each version writes what it has read, without a change ([Update]). Errors that
//     the server forgives in such an update are forgiven.
//  4. The new one reads what the storage version has written ([Migration]): also in the version in
//     which the object was stored, if that is no longer served.
//  5. The old one reads that, and a client writes it without a change ([Rollback]).
//
// Each read is compared with the one before: what a client sees in one version must stay. The
// report has one [Finding] for each cause, with the number of objects and the smallest one.
// Fields that are added count as found, but not as lost.
//
// Package schema does with each object what the API server would do. Objects of one version go to
// a webhook together, up to 500 in a review, as in a list of the API server. If a review fails,
// smaller ones find the objects that it fails for. So a webhook must give the same
// answer each time, and each object its own.
//
// Objects are read one after another. Memory holds 500 of each kind, and a report of at most
// some 1,000 findings. With [Redact], the values of fields do not get into the report.
//
// # What it does not do
//
// It calls no admission webhooks and no policies. It does not check whether the server
// accepts the new definition, or which versions are no longer served: package breaking does. It leaves out
// managedFields, and lists that merge by keys are compared by position. The rollback
// begins after a write in the storage version. The error of a webhook that answers with an HTTP
// error has other words on a server.
package rehearse
