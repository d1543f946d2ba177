package pizza

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/crdkit/crdkit/examples/pizza/api/v1alpha1"
	"github.com/crdkit/crdkit/test/expect"
	"github.com/crdkit/crdkit/webhook/authority"
)

// The API server is told what the handlers do.
func TestDeclare_Rules(t *testing.T) {
	d := declared(t, InCluster(), nil)
	rule := func(resource string, scope admissionregistrationv1.ScopeType, versions []string, operations ...admissionregistrationv1.OperationType) []admissionregistrationv1.RuleWithOperations {
		return []admissionregistrationv1.RuleWithOperations{{Operations: operations, Rule: admissionregistrationv1.Rule{
			APIGroups: []string{"restaurant.programming-kubernetes.info"}, APIVersions: versions, Resources: []string{resource}, Scope: &scope,
		}}}
	}
	const create, update, del = admissionregistrationv1.Create, admissionregistrationv1.Update, admissionregistrationv1.Delete
	pizzas := rule("pizzas", admissionregistrationv1.NamespacedScope, []string{"v1alpha1", "v1beta1"}, create, update)
	want := map[string][]admissionregistrationv1.RuleWithOperations{
		"default.pizzas.restaurant.programming-kubernetes.info":    pizzas,
		"validate.pizzas.restaurant.programming-kubernetes.info":   pizzas,
		"validate.toppings.restaurant.programming-kubernetes.info": rule("toppings", admissionregistrationv1.ClusterScope, []string{"v1alpha1"}, del),
	}
	got := map[string][]admissionregistrationv1.RuleWithOperations{}
	for _, w := range d.mutating.Webhooks {
		got[w.Name] = w.Rules
	}
	for _, w := range d.validating.Webhooks {
		got[w.Name] = w.Rules
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rules (-want +got):\n%s", diff)
	}
	if len(d.mutating.Webhooks) != 1 || len(d.validating.Webhooks) != 2 {
		t.Errorf("%d webhooks mutate and %d validate", len(d.mutating.Webhooks), len(d.validating.Webhooks))
	}
}

func TestDeclare_NoFreeToppingsWidensRules(t *testing.T) {
	e := InCluster()
	e.NoFreeToppings = true
	var got []admissionregistrationv1.OperationType
	for _, w := range declared(t, e, nil).validating.Webhooks {
		if w.Name == validateToppings {
			got = w.Rules[0].Operations
		}
	}
	if diff := cmp.Diff([]admissionregistrationv1.OperationType{"CREATE", "UPDATE", "DELETE"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for cost, want := range map[float64]string{0: `[spec.cost: Invalid value: 0: must not be zero]`, 0.5: "[]"} {
		errs, err := costsSomething(t.Context(), &v1alpha1.Topping{Spec: v1alpha1.ToppingSpec{Cost: cost}})
		if got := fmt.Sprint(errs); err != nil || got != want {
			t.Errorf("%v: got %s, %v, want %s", cost, got, err, want)
		}
	}
}

// The paths begin with the version of the reviews.
// The metrics count by path: so they tell for which version of the reviews the API server asks.
func TestDeclare_Paths(t *testing.T) {
	for first, versions := range map[string][]string{"/v1": {"v1", "v1beta1"}, "/v1beta1": {"v1beta1"}} {
		e := InCluster()
		e.ReviewVersions = versions
		d := declared(t, e, nil)
		conversion := d.definitions[0].Spec.Conversion.Webhook
		got := map[string][]string{*conversion.ClientConfig.Service.Path: conversion.ConversionReviewVersions}
		for _, w := range d.mutating.Webhooks {
			got[*w.ClientConfig.Service.Path] = w.AdmissionReviewVersions
		}
		for _, w := range d.validating.Webhooks {
			got[*w.ClientConfig.Service.Path] = w.AdmissionReviewVersions
		}
		want := map[string][]string{}
		for _, path := range []string{"/convert", "/default/pizzas", "/validate/pizzas", "/validate/toppings"} {
			want[first+path] = versions
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", versions, diff)
		}
	}
}

// An endpoint at fault is refused.
func TestEndpoint_AtFault(t *testing.T) {
	for want, change := range map[string]func(*Endpoint){
		"an endpoint needs the versions of the reviews": func(e *Endpoint) { e.ReviewVersions = nil },
		`URL "http://localhost"`:                        func(e *Endpoint) { e.URL = "http://localhost" },
	} {
		e := InCluster()
		change(&e)
		op, err := newOperator(&rest.Config{})
		expect.NoError(t, err)
		if _, err := op.declare(e); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: got %v, want %s", e, err, want)
		}
	}
}

// The operator may write CA bundles.
// The role in config/rbac is written by hand, so that kustomize has it too.
func TestRole_CABundles(t *testing.T) {
	text, err := deployment.ReadFile("config/rbac/role.yaml")
	expect.NoError(t, err)
	var role rbacv1.ClusterRole
	expect.NoError(t, yaml.UnmarshalStrict(text, &role))
	op, err := newOperator(&rest.Config{})
	expect.NoError(t, err)
	hooks, err := op.declare(InCluster())
	expect.NoError(t, err)
	var got []rbacv1.PolicyRule
	for _, rule := range role.Rules {
		if rule.APIGroups[0] != "restaurant.programming-kubernetes.info" {
			got = append(got, rule)
		}
	}
	if diff := cmp.Diff(hooks.PolicyRules(), got); diff != "" {
		t.Errorf("rules for the registration (-want +got):\n%s", diff)
	}

	text, err = deployment.ReadFile("config/deploy/rbac.yaml")
	expect.NoError(t, err)
	var inNamespace []rbacv1.PolicyRule
	for _, document := range strings.Split(string(text), "\n---\n") {
		var role rbacv1.Role
		expect.NoError(t, yaml.Unmarshal([]byte(document), &role))
		for _, rule := range role.Rules {
			if role.Kind == "Role" && rule.Resources[0] == "secrets" {
				inNamespace = append(inNamespace, rule)
			}
		}
	}
	if diff := cmp.Diff(authority.PolicyRules(Name+"-webhook"), inNamespace); diff != "" {
		t.Errorf("rules for the Secret (-want +got):\n%s", diff)
	}
}
