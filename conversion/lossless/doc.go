// Package lossless reads the annotation of conversion.Lossless without a registry, for operators that
// no longer serve conversions with package conversion.
//
// [Restore] is the last statement of a ConvertTo method, as controller-runtime calls it:
//
//	func (b *Backup) ConvertTo(dst conversion.Hub) error {
//		hub := dst.(*v1.Backup)
//		b.ObjectMeta.DeepCopyInto(&hub.ObjectMeta)
//		hub.Spec.Bucket, hub.Spec.Path, _ = strings.Cut(b.Spec.Target, "/")
//		return lossless.Restore(b, dst)
//	}
//
// As long as stored objects, manifests or clients still have the annotation, Restore puts the hidden
// fields into the hub, and removes the annotation. Without an annotation, it does nothing. The rules are
// those of conversion.Lossless: a user's edit of the spoke always wins, and a field whose list element
// cannot be identified is left out.
//
// Nothing in this package writes the annotation. ConvertFrom must itself preserve the fields that the
// spoke cannot express, for example with MarshalData of cluster-api's package util/conversion. Otherwise
// the next client that reads the spoke and writes it back removes them.
//
// docs/leaving.md describes the whole way back to controller-runtime.
package lossless
