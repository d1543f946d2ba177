package registration

import (
	"encoding/base64"
	"encoding/json"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"
)

// Guard adds a ValidatingAdmissionPolicy and its binding to the manifests, both with the name of the declaration and the
// suffix "-guard". They limit what the operator's service account, in [Webhooks.Namespace], can do with the rights of
// [Webhooks.PolicyRules] and authority.PolicyRules. Without a guard, a user who has its token can add a webhook for
// Secrets and ClusterRoleBindings to the operator's configurations, and so take over the cluster.
//
// The guard allows the service account only the following:
//
//   - In the webhook configurations and CRDs of the declaration, it may change clientConfig.caBundle. It may neither
//     create nor delete these objects, nor create other webhook configurations.
//   - In the Secret of package webhook/authority, it may change the keys of that package. It may create the Secret with
//     the type kubernetes.io/tls, these keys and no labels, annotations, owners or finalizers, and not delete it.
//   - It may create no other Secret in the namespace, whatever its roles say, because some programs act on Secrets
//     that they find: the token controller writes the token of another service account into one, and Helm applies the
//     manifest in one as an administrator. Let another service account create Secrets.
//
// Metadata may not change, except for managedFields, generation and resourceVersion. managedFields may be nested six levels
// deep, one more than the fields of these objects: if they are nested thousands of levels deep, the object and each list that
// includes it cannot be decoded.
//
// webhook/replica has a Secret with the name of the declaration and the suffix "-webhook". If secret is empty, as with
// certificates of another program, the guard does not apply to Secrets.
//
// The guard needs an API server of Kubernetes 1.33, and denies requests by the name of the user, whatever their verb and
// groups. The operator must not have permissions to become another user, by impersonation, tokens, Pods of other service
// accounts or RBAC objects, or to write policies and bindings, which are exempt from policies
// (apiserver/pkg/admission/plugin/policy/generic/plugin.go). Nor does the guard protect the certificates in the CA bundle
// and the Secret, or managedFields, by which the next server-side apply decides which fields it removes. The page
// docs/security-model.md describes what an attacker can still do.
//
// If another program's mutating webhook or policy changes other fields of these objects in the same request, such as
// labels, the guard denies the request. It also denies the writes of package conversion/migrate to a CRD: migrate with
// another service account.
//
// [Webhooks.Inject] reads both objects once a minute. If they are missing, differ from the declaration, or limit another
// service account than its own, it logs this once, and [Webhooks.Differences] returns it, but [Webhooks.Ready] does not
// fail.
func Guard(serviceAccount, secret string) Option {
	return func(s *settings) {
		names := []string{serviceAccount}
		if secret != "" {
			names = append(names, secret)
		}
		for _, n := range names {
			if errs := validation.IsDNS1123Subdomain(n); len(errs) > 0 {
				s.errorf("Guard: name %q, expected that of a service account or Secret: %s", n, strings.Join(errs, "; "))
			}
		}
		if s.guard != nil {
			s.errorf("Guard is given twice")
		}
		s.guard = &guard{serviceAccount, secret}
	}
}

// guard is what [Guard] is given.
type guard struct{ serviceAccount, secret string }

// policyText and bindingText are the specs of both objects, in which names in capitals are replaced. In CEL, an object is
// a map of the fields that are set, so that the fields of later releases are compared too. The name of a deleted object is
// not in the request if it is one of a collection.
const policyText = `
failurePolicy: Fail
matchConstraints:
  matchPolicy: Equivalent
  namespaceSelector: {}
  objectSelector: {}
  resourceRules:
  - apiGroups: [admissionregistration.k8s.io]
    apiVersions: [v1]
    operations: [CREATE, UPDATE, DELETE]
    resources: [mutatingwebhookconfigurations, validatingwebhookconfigurations]
    scope: "*"
  - apiGroups: [apiextensions.k8s.io]
    apiVersions: [v1]
    operations: [CREATE, UPDATE, DELETE]
    resources: [customresourcedefinitions, customresourcedefinitions/status]
    scope: "*"
  - apiGroups: [""]
    apiVersions: [v1]
    operations: [CREATE, UPDATE, DELETE]
    resources: [secrets]
    scope: "*"
matchConditions:
- name: operator
  expression: has(request.userInfo.username) && request.userInfo.username == USER
- name: guarded
  expression: |-
    [(request.operation == "DELETE" ? oldObject : object).metadata.name].exists(name,
      request.resource.resource == "secrets" ? request.namespace == NAMESPACE && (name == SECRET || request.operation == "CREATE") :
      request.resource.resource == "customresourcedefinitions" ? name in DEFINITIONS :
      name == NAME || request.operation == "CREATE")
variables:
- name: newSecret
  expression: request.operation == "CREATE" && request.resource.resource == "secrets"
- name: objects
  expression: "[object, oldObject].filter(o, o != null)"
- name: metadata
  expression: variables.objects.map(o, o.metadata.transformMap(k, v, !(k in ["generation", "managedFields", "resourceVersion"]), v))
- name: data
  expression: |-
    variables.objects.map(o, o.?data.orValue({}).transformMap(k, v,
      !(k in ["ca.crt", "next.crt", "next.key", "previous.crt", "tls.crt", "tls.key"]), v))
- name: rest
  expression: |-
    variables.objects.map(o, o.transformMap(k, v, !(k in ["data", "metadata"]),
      k == "webhooks" ? dyn(v.map(w, w.transformMap(k, v, k != "clientConfig" ? v :
        dyn(v.transformMap(k, v, k != "caBundle", v))))) :
      k == "spec" ? dyn(v.transformMap(k, v, k != "conversion" ? v :
        dyn(v.transformMap(k, v, k != "webhook" ? v :
          dyn(v.transformMap(k, v, k != "clientConfig" ? v :
            dyn(v.transformMap(k, v, k != "caBundle", v)))))))) :
      v))
validations:
- message: the operator may neither create nor delete this object
  reason: Forbidden
  expression: request.operation == "UPDATE" || variables.newSecret
- message: the operator may change only the caBundle of its webhooks, and the keys of package authority in its Secret
  reason: Forbidden
  expression: |-
    request.operation != "UPDATE" || [variables.metadata, variables.data, variables.rest].all(both, both[0] == both[1])
- message: the operator may create no Secret but its own, of type kubernetes.io/tls and with the keys of package authority only
  reason: Forbidden
  expression: |-
    !variables.newSecret || object.metadata.name == SECRET && variables.rest[0].type == "kubernetes.io/tls" && variables.data[0] == {} &&
      variables.rest[0].all(k, k in ["apiVersion", "kind", "type"]) &&
      variables.metadata[0].all(k, k in ["creationTimestamp", "name", "namespace", "uid"])
- message: the operator may not nest managedFields deeper than the fields of these objects
  reason: Forbidden
  expression: |-
    object == null || dyn(object.metadata).?managedFields.orValue([]).all(m, m.?fieldsV1.orValue({}).all(k, v,
      v.all(k, v, v.all(k, v, v.all(k, v, v.all(k, v, v.all(k, v, v == {})))))))
`

const bindingText = `
policyName: POLICY
validationActions: [Deny]
`

// guardObjects returns the policy and its binding.
func (s *settings) guardObjects() (objects []*object) {
	if s.guard == nil {
		return nil
	}
	definitions := []any{}
	for _, d := range s.definitions {
		definitions = append(definitions, d.Metadata.Name)
	}
	g, name := s.guard, s.name+"-guard"
	user := "system:serviceaccount:" + s.ownNamespace + ":" + g.serviceAccount
	values := strings.NewReplacer(
		"USER", jsonOf(user), "NAMESPACE", jsonOf(s.ownNamespace),
		"SECRET", jsonOf(g.secret), "DEFINITIONS", jsonOf(definitions), "NAME", jsonOf(s.name), "POLICY", jsonOf(name))
	for i, text := range []string{policyText, bindingText} {
		o := &object{kind: "ValidatingAdmissionPolicy" + []string{"", "Binding"}[i], name: name, guard: true, limits: []string{user, ""}[i]}
		plural := []string{"validatingadmissionpolicies", "validatingadmissionpolicybindings"}[i]
		o.resource = schema.GroupVersion{Group: admissionregistration, Version: "v1"}.WithResource(plural)
		var spec map[string]any
		if err := yaml.Unmarshal([]byte(values.Replace(text)), &spec); err != nil {
			s.errorf("%s: %w", o, err)
		}
		if constraints, ok := spec["matchConstraints"].(map[string]any); ok && g.secret == "" {
			constraints["resourceRules"] = constraints["resourceRules"].([]any)[:2]
		}
		o.declared = map[string]any{
			"apiVersion": o.resource.GroupVersion().String(), "kind": o.kind, "metadata": map[string]any{"name": name}, "spec": spec,
		}
		objects = append(objects, o)
	}
	return objects
}

// subjectOf returns the subject of the token that a client sends. That of a service account, such as a Pod has, is the name of
// the user (kubernetes/pkg/serviceaccount/claims.go).
func subjectOf(config *rest.Config) string {
	var claims struct{ Sub string }
	if parts := strings.Split(config.BearerToken, "."); len(parts) == 3 {
		payload, _ := base64.RawURLEncoding.DecodeString(parts[1])
		_ = json.Unmarshal(payload, &claims) // other tokens have no claims
	}
	return claims.Sub
}
