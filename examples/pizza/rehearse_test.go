package pizza

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/crdkit/crdkit/conversion"
	"github.com/crdkit/crdkit/schema"
	"github.com/crdkit/crdkit/schema/rehearse"
)

// The release before had v1alpha1 alone, and did not bound toppings. The pizza with 101 toppings stays
// readable, and an update that does not change its toppings is accepted.
func TestUpgrade_KeepsStoredPizzas(t *testing.T) {
	text, err := os.ReadFile("config/releases/v0.0.2/restaurant.programming-kubernetes.info_pizzas.yaml")
	if err != nil {
		t.Fatal(err)
	}
	old, err1 := schema.ParseAll(text)
	upgraded, err2 := schema.ParseAll(bytes.Join(declared(t, InCluster(), nil).texts, []byte("---\n")))
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	many := strings.Repeat("salami, ", 100) + "salami"
	stored := func(yield func(rehearse.Object, error) bool) {
		for name, toppings := range map[string]string{"margherita": "[tomato, mozzarella]", "plain": "[]", "mixed": "[ham, olives, ham]", "huge": "[" + many + "]"} {
			text := fmt.Sprintf("{apiVersion: restaurant.programming-kubernetes.info/v1alpha1, kind: Pizza, metadata: {name: %s}, spec: {toppings: %s}}", name, toppings)
			if !yield(rehearse.Object{Text: []byte(text)}, nil) {
				return
			}
		}
	}
	report, err := rehearse.Run(t.Context(), schema.Release{Definitions: old},
		schema.Release{Definitions: upgraded, Handler: conversion.NewHandler(registry(t))}, stored)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range report.Findings {
		line, _, _ := strings.Cut(f.String(), ": conversion webhook for") // whose words are not the matter here
		line, _, _ = strings.Cut(line, "\n")
		got = append(got, f.Example.Name+": "+line)
	}
	const kind = "Pizza.restaurant.programming-kubernetes.info v1alpha1"
	want := []string{
		// Portions are counted, so equal toppings stand together afterwards.
		"default/mixed: " + kind + ": spec.toppings[]: changed after the migration (1 object)",
		// This release stores another version at once, so there is no way back.
		"default/plain: " + kind + ": unreadable after a rollback: schema: the stored object has kind Pizza in restaurant.programming-kubernetes.info/v1beta1, " +
			"expected Pizza.restaurant.programming-kubernetes.info in one of the versions v1alpha1 (4 objects)",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
