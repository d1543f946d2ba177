// Package soak runs two replicas of the pizza operator behind one address for a
// while, with everything going on that happens in production, and a lot more of it:
// certificates and CAs rotate every few seconds, replicas are killed and restarted,
// the Secret with the CA is deleted and corrupted, CA bundles are overwritten, and
// releases with other rules follow each other, as they are deployed: first the manifests,
// then one replica after the other. All the time clients create, update, read, list and watch pizzas in both versions, and
// compare what they get. Every read needs the conversion, and every write admission,
// with failurePolicy Fail: any gap is a failed request.
//
// A failed request counts unless no replica could have prevented it (see ledger.go):
// it was in flight on a replica at the moment when that was killed, or it met a CA
// bundle which had just been overwritten, and which was repaired in time.
package soak
