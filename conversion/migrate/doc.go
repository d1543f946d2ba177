// Package migrate moves stored objects to a new storage version, and removes an old version
// from a CustomResourceDefinition (CRD).
//
// The API server stores an object in the version that has "storage: true" at the time of the
// write. After a change of the storage version, most objects are still stored in the old
// version, until a client writes them. status.storedVersions lists all versions in which
// objects may be stored. These versions cannot be removed from spec.versions.
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
// preconditions. The API server reads and converts the object. The fields are unchanged, but
// the bytes to store differ, so the API server stores the object. Only the resourceVersion
// changes. The generation and managedFields do not, and controllers roll out nothing.
// Watchers get a MODIFIED event.
//
// If the CRD has a status subresource, Run patches the status. Admission webhooks of the
// resource itself, which could refuse or change the old object, are not called then. Webhooks
// for the status subresource are called, and Run does not notice if they change the status.
// If the CRD has no status subresource, Run first sends each patch with dryRun. If admission
// would change or refuse the object, Run reports the object and leaves it unchanged.
//
// Up to v1.36, the API server drops managedFields if it cannot convert the object to one of the
// versions in them. If an object's managedFields contain a version other than the storage
// version, Run also sends the patch with dryRun first. If the object would lose its
// managedFields, Run reports it and leaves it unchanged. If the conversion webhook fails just
// after that, Run restores the managedFields at once. The objects that are being patched lose
// their managedFields only if Run is killed at this moment.
//
// # Interrupted runs
//
// An object that is written after the migration starts is stored in the new version. Its
// resourceVersion is higher than at the start (KEP-5504 makes resourceVersions comparable). Run
// does not rewrite such objects. It stores the resourceVersion of the start in an annotation of
// the CRD, [CheckpointAnnotation], until all objects are migrated. If Run is interrupted, call
// it again: it lists all objects, but rewrites only the remaining ones. Several runs may run at
// the same time.
//
// If the generation of the CRD changes, objects may have been stored in yet another version,
// and Run starts again. The storage version migrator of Kubernetes follows the same rules
// (kubernetes/pkg/controller/storageversionmigrator).
//
// # Limitations
//
//   - The package does not choose the storage version, or change which versions are served.
//   - It migrates custom resources only.
//   - It does not check the conversion. As in any other write, fields are lost if the
//     conversion drops them, or if the schema of the storage version prunes them. First, test
//     the conversion with package roundtrip.
//   - It cannot detect in which version an object is stored, because the API server does not
//     expose that.
//   - It does not change the versions in managedFields: see [ForgetOwners].
package migrate
