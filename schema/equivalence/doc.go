// Package equivalence tests whether two releases of an API decide alike, for example whether CEL rules or admission policies
// can replace a validating webhook.
//
//	before := schema.Release{Definitions: crds, Manifests: webhooks, Handler: handler}
//	after := schema.Release{Definitions: crds, Manifests: policies}
//	equivalence.Test(t, before, after)
//
// [Test] starts an API server in this process for each release (package apiservertest), and sends the same requests to both.
// It fails with the smallest request that one release allows and the other denies, or after which they return different
// objects. It also fails if a rule, a validation or a webhook never denied or never allowed a request, because then the
// requests prove nothing about it.
//
// # Limitations
//
// A test finds differences; it does not prove that there are none. Generated objects have labels and annotations, but no
// other metadata, and requests do not patch or apply. Validations are counted per policy, webhooks per entry of their
// configuration, and rules as if no webhook or policy had changed an object that is denied. Objects of built-in kinds are
// only made of samples, because no schema of theirs is at hand, and the server does not validate them: see package
// apiservertest.
package equivalence
