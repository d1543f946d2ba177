package crontab_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/crdkit/crdkit/conversion"
	"github.com/crdkit/crdkit/schema"
	"github.com/crdkit/crdkit/schema/rehearse"
)

// The first release accepted any hostPort. One sample has none that the second could convert.
func TestUpgrade_FindsTheTypo(t *testing.T) {
	release := func(file string) schema.Release {
		d, err := schema.Parse(read(t, file))
		if err != nil {
			t.Fatal(err)
		}
		return schema.Release{Definitions: []*schema.Definition{d}}
	}
	samples := func(yield func(rehearse.Object, error) bool) {
		for text := range bytes.SplitSeq(read(t, "config/samples/v1beta1.yaml"), []byte("\n---\n")) {
			if !yield(rehearse.Object{Text: text}, nil) {
				return
			}
		}
	}
	before, after := release("config/first-release/stable.example.com_crontabs.yaml"), release("config/crd/stable.example.com_crontabs.yaml")
	after.Handler = conversion.NewHandler(registry(t))
	report, err := rehearse.Run(t.Context(), before, after, samples)
	if err != nil {
		t.Fatal(err)
	}
	var lost []string
	for _, f := range report.Findings {
		if f.Lost() {
			_, fault, _ := strings.Cut(f.Example.Error, "stable.example.com/v1: ")
			lost = append(lost, f.Example.Name+" "+string(f.Effect)+" "+f.Version+": "+fault)
		}
	}
	want := []string{`default/typo unreadable v1: spec.hostPort: Invalid value: "localhost:http": must be <host>:<port, an integer>`}
	if diff := cmp.Diff(want, lost); diff != "" {
		t.Errorf("lost (-want +got):\n%s", diff)
	}
}
