// Package soak runs two replicas of the pizza operator behind one address for a while, under
// the faults of a production cluster at a much higher rate:
//
//   - Certificates and CAs rotate every few seconds.
//   - Replicas are killed and restarted.
//   - The Secret with the CA is deleted and corrupted.
//   - CA bundles are overwritten.
//   - Releases of the operator with different rules are installed one after the other. Each
//     installation applies the manifests first, and then updates one replica after the other.
//
// At the same time, clients create, update, read, list and watch pizzas in both versions, and
// check the results. Every read needs the conversion, and every write needs admission with
// failurePolicy Fail. Therefore, any gap causes a failed request.
//
// A failed request counts unless no replica could have prevented it (see ledger.go). There are two
// such cases. Either the replica that received the request was killed at that moment, or the request met a
// CA bundle that had just been overwritten and was repaired in time.
package soak
