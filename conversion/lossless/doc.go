// Package lossless has the options of conversion.Lossless, which stores in an annotation the fields that
// a spoke cannot express:
//
//	err := conversion.Lossless(reg, spoke, lossless.ListMapKeys(crdYAML))
//
// It also restores these fields in conversion methods of controller-runtime, for operators that no longer
// use package conversion of crdkit. Call [Restore] at the end of ConvertTo. In this example, conversion is
// controller-runtime's package:
//
//	func (b *Backup) ConvertTo(dst conversion.Hub) error {
//		hub := dst.(*v1.Backup)
//		b.ObjectMeta.DeepCopyInto(&hub.ObjectMeta)
//		hub.Spec.Bucket, hub.Spec.Path, _ = strings.Cut(b.Spec.Target, "/")
//		return lossless.Restore(b, dst)
//	}
//
// Keep the call until no stored object, manifest or client has the annotation. The rules are those of
// conversion.Lossless: for example, a user's edit of the spoke always wins, and a field whose list element
// cannot be identified is lost. A user who can write the spoke can set hub-only fields through the annotation,
// including status, and the API server does not validate them: see [VerifyRestored].
//
// [Restore] does not write the annotation. ConvertFrom must itself preserve the fields that the
// spoke cannot express, for example with MarshalData of cluster-api's package util/conversion and the
// option [HubCopy] of Restore. If it does not, the next client that reads the spoke and writes it back
// loses those fields.
//
// The page "Leaving crdkit" (docs/leaving.md in the repository) describes the whole way back.
package lossless
