// Package migrate moves stored objects to a new storage version, and removes an old version
// from a CustomResourceDefinition (CRD).
//
// The API server stores an object in the version that has "storage: true" at the time of the write,
// so after a change of the storage version, objects remain stored in the old version until a client
// writes them. status.storedVersions lists all versions in which objects may be stored, which
// cannot be removed from spec.versions.
//
//	report, err := migrate.Run(ctx, config, "pizzas.restaurant.example.com")
//	err = migrate.Remove(ctx, config, "pizzas.restaurant.example.com", "v1alpha1")
//
// [Run] rewrites each object, and then removes the old versions from status.storedVersions.
// [Remove] removes a version from spec.versions if it is no longer needed. Between the two
// calls, move your clients to the new version, and set "served: false" for the old version.
//
// Inside an operator, a [Controller] does the work of Run whenever the storage version has changed.
//
// # How objects are rewritten
//
// Run sends an empty patch for each object, with the object's UID and resourceVersion as
// preconditions. The API server reads and converts the object, and stores it because the bytes to
// store differ, although the fields do not. Watchers get a MODIFIED event, but only the
// resourceVersion changes, not the generation or managedFields, so controllers roll out nothing.
//
// If the CRD has a status subresource, Run patches the status, so that admission webhooks of the
// resource itself, which could refuse or change the old object, are not called. Webhooks for the
// status subresource are called, and Run does not notice if they change the status. Without a
// status subresource, Run first sends each patch with dryRun. An object that admission would change
// or refuse is reported, and left unchanged.
//
// Up to v1.36, the API server drops managedFields if it cannot convert the object to one of the
// versions in them. Run therefore also sends the patch with dryRun first if an object's
// managedFields contain a version other than the storage version, and reports an object that would
// lose them, and leaves it unchanged. If the conversion webhook fails between the two patches, Run
// restores the managedFields at once; they are lost only if Run is killed at this moment.
//
// # Interrupted runs
//
// An object that is written after the migration starts is stored in the new version, and has a
// higher resourceVersion than the start (KEP-5504 makes resourceVersions comparable), so Run does
// not rewrite it. Until all objects are migrated, the resourceVersion of the start is in an
// annotation of the CRD, migrate.crdkit.github.io/checkpoint. If Run is interrupted, call it again:
// it lists all objects, but rewrites only the remaining ones. Several calls may run at the same
// time. Remove the annotation if you copy the keys of one etcd to another, where resourceVersions
// start again.
//
// If the generation of the CRD changes, Run starts again, because objects may have been stored in
// yet another version. The storage version migrator of Kubernetes follows the same rules
// (kubernetes/pkg/controller/storageversionmigrator).
//
// # Limitations
//
//   - The package does not choose the storage version, or change which versions are served.
//   - It migrates custom resources only.
//   - It does not check the conversion: as in any other write, fields are lost if the conversion
//     drops them, or if the schema of the storage version prunes them. Test the conversion with
//     package roundtrip first.
//   - It cannot detect in which version an object is stored, because the API server does not
//     expose that.
//   - It does not change the versions in managedFields: see [PruneManagedFields].
package migrate
