// Package rehearse replays the stored objects of a cluster through an upgrade of an operator.
//
//	before := schema.Release{Definitions: deployed}
//	after := schema.Release{Definitions: next, Handler: conversion.NewHandler(reg)}
//	report, err := rehearse.Run(ctx, before, after, func(yield func(rehearse.Object, error) bool) {
//		for _, text := range stored {
//			if !yield(rehearse.Object{Text: text}, nil) {
//				return
//			}
//		}
//	})
//	if err != nil || report.Lost() {
//		…
//	}
//
// Tests of conversions generate objects that the CustomResourceDefinition (CRD) accepts. A cluster
// also has objects that only an earlier CRD accepted, or that ratcheting preserved. If one of them
// cannot be converted to a version, every list and watch in this version fails.
//
// [Run] takes two releases of your operator and stored objects. It calls the Handler of a release, in this process, as
// the conversion webhook of the CRDs that have the strategy Webhook. The new release must have a Handler for them; an
// old release without one reads objects of such a CRD only in their stored version: see [Report.Unchecked]. The log of
// the Handler is discarded, because the report has the errors. Run replays each object in these steps:
//
//  1. The old release reads the object in each served version.
//  2. The new release reads the object in each served version ([Upgrade]).
//  3. A client of each version writes the object back without a change ([Update]). As in the server,
//     errors in unchanged fields are ignored where ratcheting applies.
//  4. The new release reads the object after it was written in the storage version
//     ([Migration]), also in the version in which it was stored before, even if the new release
//     does not serve that version.
//  5. The old release reads that object, and a client writes it back without a change ([Rollback]).
//
// Run compares each read with the previous read in the same version. The report has one [Finding] for
// each cause, with the number of objects and the smallest object. Added fields are findings, but not
// losses.
//
// Package schema processes the objects as the API server does. Like a list request, Run sends up to
// 500 objects of one version in one ConversionReview. If a review fails, Run sends smaller reviews to
// find the objects that cause the failure, so the result for an object must depend on that object
// alone.
//
// Run reads one object after another, and holds at most 1,000 objects of each kind and about 1,000
// findings. [Redact] keeps the values of fields out of the report.
//
// # Limitations
//
// Run ignores the manifests of a release, so it calls no admission webhooks and no policies: give the objects to
// equivalence.Stored to compare how those of two releases decide. Run does not check whether the server accepts the
// new CRD, or which versions are no longer served; use package schema/breaking for that. It ignores managedFields,
// and compares list elements by their position, even in lists that merge by keys. The rollback begins after a write
// in the storage version. If a webhook answers with an HTTP error, the message differs from the server's.
package rehearse
