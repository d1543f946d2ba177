// Package migrate moves stored objects to a new storage version, and takes an old version
// out of a CustomResourceDefinition. It is what lies between "v1 is the storage version
// now" and "v1alpha1 is gone".
//
// The API server writes an object in the version that has "storage: true" at that moment,
// and never touches it again until a client writes it. So after a change of the storage
// version most objects are still stored in the old one; status.storedVersions lists all
// that may occur, and none of these can be taken out of spec.versions.
//
//	report, err := migrate.Run(ctx, config, "pizzas.restaurant.example.com")
//	err = migrate.Remove(ctx, config, "pizzas.restaurant.example.com", "v1alpha1")
//
// [Run] writes each object again as it is, and then takes the old versions out of
// status.storedVersions. [Remove] takes one out of spec.versions, if it is no longer
// needed. In between, clients move to the new version, and the old one gets "served: false".
//
// # What a rewrite does
//
// It is an empty patch, with the object's UID and resourceVersion as preconditions. The
// API server reads the object, converts it, finds nothing changed, but other bytes to
// store, and stores them. Nothing but the resourceVersion is another one after that: no
// generation, so that no controller rolls anything out, and no managedFields. Watchers
// see a modified object.
//
// Where the definition has a status subresource, that is what is patched: the admission
// webhooks of the resource itself are not called then, which could refuse the old object,
// or change it. (One that is registered for the subresource is; what it changes in the status
// is not noticed.) Where it has none, each patch is tried with dryRun first, and what
// admission would change or refuse is reported and left as it is.
//
// Up to v1.36 the API server drops managedFields at any write for which it cannot convert the
// object to a version that they name. So a patch is tried with dryRun too where they name
// another version than the one that is written, and an object that would lose them is
// reported and left as it is. If it happens to the patch all the same, because the webhook
// does not answer just then, they are put back at once; a kill in that very moment loses them
// for the objects in hand.
//
// # Safe to repeat, and to interrupt
//
// Objects that were written since the migration began are stored in the new version already:
// their resourceVersion is higher (KEP-5504: they are numbers, and those of one etcd can be
// compared). So an object that another client writes meanwhile needs no rewrite. The number
// of the beginning is kept in an annotation of the definition, [CheckpointAnnotation], until
// all is done: a run after a kill goes through the list again, but writes only what is
// left. Several may run at the same time.
//
// The definition must not change in the meantime. If its generation has, objects may have
// been stored in yet another version, and Run begins again. The API server's own migrator
// goes by the same rules (kubernetes/pkg/controller/storageversionmigrator).
//
// # What it does not do
//
// It does not choose the storage version, and does not change what is served. It moves
// custom resources only. It does not prove the conversion: as after any other write, what
// conversion drops, or the schema of the storage version prunes, is gone; so let package
// roundtrip look at it before. It cannot see in which version an object is stored, since the
// API server does not tell. It moves no owner of fields to another version: see
// [ForgetOwners].
package migrate
