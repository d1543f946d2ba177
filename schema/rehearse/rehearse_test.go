package rehearse_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/utils/ptr"

	"github.com/crdkit/crdkit/schema"
	"github.com/crdkit/crdkit/schema/rehearse"
	"github.com/crdkit/crdkit/test/expect"
)

// definition returns a definition of Jobs. A version is such as "v1: a, b?" with the type string
// of each field of the spec, "v1*: …" for the one that is stored, "v1-: …" for one that is not
// served, and "v1*: {…}" for a whole schema of the spec. With two versions or more, a webhook converts.
func definition(t testing.TB, versions ...string) *schema.Definition {
	t.Helper()
	var all []string
	for _, version := range versions {
		name, spec, _ := strings.Cut(version, ": ")
		if !strings.HasPrefix(spec, "{") {
			var fields []string
			for name := range strings.SplitSeq(spec, ", ") {
				fields = append(fields, name+": {type: string}")
			}
			spec = "{type: object, properties: {" + strings.Join(fields, ", ") + "}}"
		}
		all = append(all, fmt.Sprintf(`{name: %s, served: %t, storage: %t, schema: {openAPIV3Schema: {type: object, properties: {spec: %s}}}}`,
			strings.TrimRight(name, "*-"), !strings.HasSuffix(name, "-"), strings.HasSuffix(name, "*"), spec))
	}
	conversion := ""
	if len(versions) > 1 {
		conversion = "conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {service: {namespace: ns, name: s, path: /convert}}}}, "
	}
	d, err := schema.Parse([]byte(`{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: jobs.example.com}, spec: {
		group: example.com, scope: Namespaced, names: {plural: jobs, kind: Job}, ` + conversion + `versions: [` + strings.Join(all, ",") + `]}}`))
	expect.NoError(t, err)
	return d
}

func job(name, version, spec string) string {
	return fmt.Sprintf(`{"apiVersion":"example.com/%s","kind":"Job","metadata":{"name":%q,"namespace":"default","uid":"u","generation":1,"creationTimestamp":"2026-01-01T00:00:00Z"},"spec":%s}`, version, name, spec)
}

func objects(texts ...string) iter.Seq2[rehearse.Object, error] {
	return func(yield func(rehearse.Object, error) bool) {
		for i, text := range texts {
			if !yield(rehearse.Object{Where: fmt.Sprintf("jobs.yaml:%d", i+1), Text: []byte(text)}, nil) {
				return
			}
		}
	}
}

// answer is a webhook that a function answers for.
func answer(text func(review []byte) string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		review, _ := io.ReadAll(r.Body)
		_, _ = io.WriteString(w, text(review))
	})
}

// webhook converts with a function that changes the spec. An error refuses the whole review.
func webhook(convert func(name, to string, spec map[string]any) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review struct {
			Kind       string `json:"kind"`
			APIVersion string `json:"apiVersion"`
			Request    struct {
				UID               string           `json:"uid"`
				DesiredAPIVersion string           `json:"desiredAPIVersion"`
				Objects           []map[string]any `json:"objects"`
			} `json:"request"`
		}
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		result := map[string]any{"status": "Success"}
		for _, object := range review.Request.Objects {
			_, to, _ := strings.Cut(review.Request.DesiredAPIVersion, "/")
			spec, _ := object["spec"].(map[string]any)
			name, _ := object["metadata"].(map[string]any)["name"].(string)
			if err := convert(name, to, spec); err != nil {
				result = map[string]any{"status": "Failure", "message": err.Error()}
			}
			object["apiVersion"] = review.Request.DesiredAPIVersion
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"kind": review.Kind, "apiVersion": review.APIVersion,
			"response": map[string]any{"uid": review.Request.UID, "convertedObjects": review.Request.Objects, "result": result}})
	})
}

// rename renames fields on the way to v2, and back.
func rename(v1, v2 string) func(name, to string, spec map[string]any) error {
	return func(_, to string, spec map[string]any) error {
		from, into := v1, v2
		if to == "v1" {
			from, into = v2, v1
		}
		if value, ok := spec[from]; ok {
			delete(spec, from)
			spec[into] = value
		}
		return nil
	}
}

func release(hook http.Handler, definitions ...*schema.Definition) schema.Release {
	return schema.Release{Definitions: definitions, Handler: hook}
}

// lines returns the first line of each finding.
func lines(report *rehearse.Report) (lines []string) {
	for _, f := range report.Findings {
		line, _, _ := strings.Cut(f.String(), "\n")
		lines = append(lines, line)
	}
	return lines
}

func TestRun_ReportsEachStep(t *testing.T) {
	none := func(string, string, map[string]any) error { return nil }
	const narrow = `{type: object, required: [owner], properties: {a: {type: string}, owner: {type: string}%s}}`
	for name, test := range map[string]struct {
		old, new         []string
		oldHook, newHook func(name, to string, spec map[string]any) error
		objects          []string
		want             []string
	}{
		"no change": {
			old: []string{"v1*: a"}, new: []string{"v1*: a, b"},
			objects: []string{job("x", "v1", `{"a":"1"}`)},
		},
		"a field is removed": {
			old: []string{"v1*: a, b"}, new: []string{"v1*: a"},
			objects: []string{job("x", "v1", `{"a":"1","b":"2"}`), job("y", "v1", `{"a":"1"}`), job("z", "v1", `{"b":"1"}`)},
			want: []string{
				"Job.example.com v1: spec.b: removed after the upgrade (2 objects)",
				"Job.example.com v1: spec.b: removed after a rollback (2 objects)",
			},
		},
		"a default is new": {
			old: []string{"v1*: a"}, new: []string{"v1*: {type: object, properties: {a: {type: string}, b: {type: string, default: x}}}"},
			objects: []string{job("x", "v1", `{"a":"1"}`)},
			want:    []string{"Job.example.com v1: spec.b: added after the upgrade (1 object)"},
		},
		// The server forgives what does not change.
		"ratcheting forgives": {
			old: []string{"v1*: a"}, new: []string{"v1*: " + fmt.Sprintf(narrow, "")},
			objects: []string{job("x", "v1", `{"a":"1"}`)},
		},
		// A version that is not stored gives its defaults to the update alone: the spec changes.
		"a default ends ratcheting": {
			old: []string{"v1*: a"}, new: []string{"v1*: a", "v2: " + fmt.Sprintf(narrow, ", size: {type: string, default: m}")},
			newHook: none, objects: []string{job("x", "v1", `{"a":"1"}`)},
			want: []string{"Job.example.com v2: spec.owner: refused in an update without a change: Required value (1 object)"},
		},
		"another version lacks a field": {
			old: []string{"v1*: a, b"}, new: []string{"v1*: a, b", "v2: a"},
			newHook: none, objects: []string{job("x", "v1", `{"a":"1","b":"2"}`)},
			want: []string{"Job.example.com v2: spec.b: removed in an update without a change (1 object)"},
		},
		"the old release loses the field as well": {
			old: []string{"v1*: a, b, c", "v2: a, c"}, new: []string{"v1*: a, b, c", "v2: a"},
			oldHook: none, newHook: none, objects: []string{job("x", "v1", `{"a":"1","b":"2","c":"3"}`)},
			want: []string{
				"Job.example.com v2: spec.b: removed before the upgrade (1 object)",
				"Job.example.com v2: spec.c: removed after the upgrade (1 object)",
				"Job.example.com v2: spec.c: removed in an update without a change (1 object)",
			},
		},
		"the new storage version lacks a field": {
			old: []string{"v1*: a, b", "v2: a"}, new: []string{"v1: a, b", "v2*: a"},
			oldHook: none, newHook: none, objects: []string{job("x", "v1", `{"a":"1","b":"2"}`)},
			want: []string{
				"Job.example.com v1: spec.b: removed after the migration (1 object)",
				"Job.example.com v1: spec.b: removed after a rollback (1 object)",
			},
		},
		// No client reads v1 any longer, and none could read v2 before.
		"the version is no longer served, and lost a field": {
			old: []string{"v1*: a, b"}, new: []string{"v1-: a, b", "v2*: a"},
			newHook: none, objects: []string{job("x", "v1", `{"a":"1","b":"2"}`)},
			want: []string{
				"Job.example.com v1: spec.b: removed after the migration (1 object)",
				"Job.example.com v1: unreadable after a rollback: schema: the stored object has kind Job in example.com/v2, expected Job.example.com in one of the versions v1 (1 object)",
			},
		},
		"the old release does not know the storage version": {
			old: []string{"v1*: a"}, new: []string{"v1: a", "v2*: b"},
			newHook: rename("a", "b"), objects: []string{job("x", "v1", `{"a":"1"}`)},
			want: []string{"Job.example.com v1: unreadable after a rollback: schema: the stored object has kind Job in example.com/v2, expected Job.example.com in one of the versions v1 (1 object)"},
		},
		"the old conversion does not know a move": {
			old: []string{"v1*: a", "v2: a, b"}, new: []string{"v1: a", "v2*: b"},
			oldHook: none, newHook: rename("a", "b"), objects: []string{job("x", "v1", `{"a":"1"}`)},
			want: []string{
				"Job.example.com v2: spec.a: removed after the upgrade (1 object)",
				"Job.example.com v2: spec.b: added after the upgrade (1 object)",
				"Job.example.com v1: spec.a: removed after a rollback (1 object)",
				"Job.example.com v2: spec.a: removed after a rollback (1 object)",
				"Job.example.com v2: spec.b: added after a rollback (1 object)",
			},
		},
		"a conversion fails for some": {
			old: []string{"v1*: a"}, new: []string{"v1*: a", "v2: a"},
			newHook: func(name, to string, spec map[string]any) error {
				if spec["a"] == "" {
					return fmt.Errorf("Job default/%s: spec.a: Invalid value: %q: must not be empty", name, spec["a"])
				}
				return nil
			},
			objects: []string{job("x", "v1", `{"a":"1"}`), job("y", "v1", `{"a":""}`), job("z", "v1", `{"a":"2"}`), job("longer", "v1", `{"a":""}`)},
			want:    []string{`Job.example.com v2: unreadable after the upgrade: conversion webhook for example.com/v1, Kind=Job failed: Job: spec.a: Invalid value: …: must not be empty (2 objects)`},
		},
		"what was so before is not due to the upgrade": {
			old: []string{"v1*: a", "v2: a"}, new: []string{"v1*: a", "v2: a"},
			oldHook: func(string, string, map[string]any) error { return errors.New("always") },
			newHook: none,
			objects: []string{job("x", "v1", `{"a":"1"}`)},
			want:    []string{"Job.example.com v2: unreadable before the upgrade: conversion webhook for example.com/v1, Kind=Job failed: always (1 object)"},
		},
		"a version that is not stored": {
			old: []string{"v1*: a", "v2: b"}, new: []string{"v1*: a", "v2: b"},
			oldHook: rename("a", "b"), newHook: rename("a", "b"), objects: []string{job("x", "v2", `{"b":"1"}`)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			report, err := rehearse.Run(t.Context(), release(webhook(test.oldHook), definition(t, test.old...)),
				release(webhook(test.newHook), definition(t, test.new...)), objects(test.objects...))
			expect.NoError(t, err)
			if diff := cmp.Diff(test.want, lines(report)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			lost := slices.ContainsFunc(test.want, func(line string) bool {
				return !strings.Contains(line, ": added") && !strings.Contains(line, "before the upgrade")
			})
			if report.Lost() != lost || report.Objects != len(test.objects) {
				t.Errorf("lost: %t, objects: %d; want %t and %d", report.Lost(), report.Objects, lost, len(test.objects))
			}
			for _, f := range report.Findings {
				if f.Example.Where == "" || !json.Valid(f.Example.Stored) {
					t.Errorf("%s has no example", f)
				}
			}
		})
	}
}

// Run finds the object of a failed review.
func TestRun_ObjectOfAFailedReview(t *testing.T) {
	var texts []string
	for i := range 1200 {
		texts = append(texts, job(fmt.Sprintf("job-%04d", i), "v1", `{"a":"1"}`))
	}
	texts[700] = job("bad", "v1", `{"a":null}`)
	reviews := 0
	hook := webhook(func(_, _ string, spec map[string]any) error {
		if _, ok := spec["a"]; !ok {
			return errors.New("spec.a is required")
		}
		return nil
	})
	counting := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reviews++
		hook.ServeHTTP(w, r)
	})
	report, err := rehearse.Run(t.Context(), release(nil, definition(t, "v1*: a")), release(counting, definition(t, "v1*: a", "v2: a")), objects(texts...))
	expect.NoError(t, err)
	if len(report.Findings) != 1 || report.Findings[0].Objects != 1 || report.Findings[0].Example.Name != "default/bad" {
		t.Errorf("got %v, want the object default/bad alone", lines(report))
	}
	// Three batches, with one review to v2 and one back, and some more for the one that fails.
	if reviews > 30 {
		t.Errorf("the webhook got %d reviews for %d objects, want at most 30", reviews, len(texts))
	}
	want := []rehearse.Call{
		{Kind: "Job.example.com", Release: "new", From: "v1", To: "v2", Objects: 1199},
		{Kind: "Job.example.com", Release: "new", From: "v2", To: "v1", Objects: 1199},
	}
	if diff := cmp.Diff(want, report.Calls); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Run reports input that is not an object.
func TestRun_InputIsNoObject(t *testing.T) {
	d := definition(t, "v1*: a")
	texts := []string{
		`{"apiVersion":"example.com/v1"}`, job("", "v1", `{}`), job("x", "v9", `{}`),
		strings.Replace(job("x", "v1", `{}`), "Job", "Cook", 1), `{"spec":`, "a: @", "",
		job("x", "v1", `{"a":"1","a":"2"}`), "kind: Job\napiVersion: example.com/v1\nspec:\n  a: b\n  a: b\n",
	}
	broken := func(yield func(rehearse.Object, error) bool) {
		for o := range objects(texts...) {
			if !yield(o, nil) {
				return
			}
		}
		_ = yield(rehearse.Object{Where: "jobs.yaml:98", Text: []byte(job("y", "v1", `{}`))}, errors.New("a key is there twice")) &&
			yield(rehearse.Object{Where: "jobs.yaml:99"}, errors.New("the document is not closed"))
	}
	report, err := rehearse.Run(t.Context(), release(nil, d), release(nil, d), broken)
	expect.NoError(t, err)
	var got []string
	for _, f := range report.Findings {
		if f.Step != rehearse.Input || strings.Contains(f.Cause, "nomatches") {
			t.Errorf("got %s", f)
		}
		got = append(got, strings.TrimSpace(f.Example.Where+" "+f.Example.Name)+" "+f.Example.Error)
	}
	slices.Sort(got)
	want := []string{
		"jobs.yaml:1 the object has no kind",
		"jobs.yaml:2 metadata.name is required: want an object as a server has stored it",
		"jobs.yaml:3 default/x version v9 is neither served nor stored by the old definition: want one of v1",
		`jobs.yaml:4 default/x no matches for kind "Cook" in version "example.com/v1" among the old definitions`,
		"jobs.yaml:5 yaml: line 1: did not find expected node content",
		"jobs.yaml:6 yaml: found character that cannot start any token",
		"jobs.yaml:7 the value is not an object",
		`jobs.yaml:8 default/x duplicate field "spec.a"`,
		"jobs.yaml:9 yaml: unmarshal errors:\n  line 5: key \"a\" already set in map",
		"jobs.yaml:98 default/y a key is there twice",
		"jobs.yaml:99 the document is not closed",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if report.Lost() || report.Objects != 0 {
		t.Errorf("lost: %t, objects: %d; input that cannot be rehearsed is neither", report.Lost(), report.Objects)
	}
}

// anything is the schema of an object that may be embedded, with an apiVersion of its own.
const anything = "{type: object, x-kubernetes-preserve-unknown-fields: true}"

// Run says what the old webhook is needed for.
func TestRun_OldWebhookIsNeeded(t *testing.T) {
	const a, b = "{type: object, properties: {a: {type: string}, any: " + anything + "}}", "{type: object, properties: {b: {type: string}, any: " + anything + "}}"
	old, now := definition(t, "v1*: "+a, "v2: "+b), definition(t, "v1: "+a, "v2*: "+b)
	report, err := rehearse.Run(t.Context(), release(nil, old), release(webhook(rename("a", "b")), now),
		objects(job("x", "v1", `{"a":"1","any":{"apiVersion":"example.com/v2"}}`), job("y", "v2", `{"b":"1"}`)))
	expect.NoError(t, err)
	want := []string{"Job.example.com v2: invalid: the object has version v2, and the old definition stores v1: get it as jobs.v1.example.com, or give the old release its webhook (1 object)"}
	if diff := cmp.Diff(want, lines(report)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	const unchecked = "Job.example.com as %s by the old release: the webhook that converts it is not given"
	if diff := cmp.Diff([]string{fmt.Sprintf(unchecked, "v1"), fmt.Sprintf(unchecked, "v2")}, report.Unchecked); diff != "" {
		t.Errorf("unchecked (-want +got):\n%s", diff)
	}
}

// Run ends where a webhook is unreachable.
func TestRun_WebhookIsUnreachable(t *testing.T) {
	ctx, end := context.WithCancelCause(t.Context())
	unreachable := errors.New("webhook unreachable: gone")
	gone := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { end(unreachable) })
	old, now := definition(t, "v1*: a"), definition(t, "v1*: a", "v2: a")
	report, err := rehearse.Run(ctx, release(nil, old), release(gone, now), objects(job("x", "v1", `{}`)))
	if report.Objects != 0 || len(report.Calls) != 0 {
		t.Errorf("the report has %d objects and the calls %v, want none", report.Objects, report.Calls)
	}
	want := "rehearse: Job.example.com default/x (jobs.yaml:1): conversion from v1 to v2 by the new release: webhook unreachable: gone"
	if !errors.Is(err, unreachable) || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestRun_RefusesWrongReleases(t *testing.T) {
	one, two := definition(t, "v1*: a"), definition(t, "v1*: a", "v2: a")
	for want, run := range map[string]func() error{
		"rehearse: the old release: Job.example.com is defined twice": func() error {
			_, err := rehearse.Run(t.Context(), release(nil, one, one), release(nil, one), objects())
			return err
		},
		"rehearse: the new release: no Definitions, expected those of schema.ParseAll": func() error {
			_, err := rehearse.Run(t.Context(), release(nil, one), release(nil), objects())
			return err
		},
		"rehearse: Job.example.com of the new release is converted by a webhook: want Release.Handler": func() error {
			_, err := rehearse.Run(t.Context(), release(nil, one), release(nil, two), objects())
			return err
		},
		"rehearse: spec.conversion.strategy is None in all definitions of the new release, which has a webhook: want Webhook, as the cluster has it": func() error {
			crd := two.CustomResourceDefinition()
			crd.Spec.Conversion = nil
			none, err := schema.New(crd)
			if err != nil {
				return err
			}
			_, err = rehearse.Run(t.Context(), release(nil, one), release(webhook(nil), none), objects())
			return err
		},
		`rehearse: redacted path "spec..a": expected a field name without ], * and quotes`: func() error {
			_, err := rehearse.Run(t.Context(), release(nil, one), release(nil, one), objects(), rehearse.Redact("spec..a"))
			return err
		},
	} {
		if err := run(); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// The answers are what the API server does not take either.
func TestRun_ChecksAnswers(t *testing.T) {
	old, now := definition(t, "v1*: a"), definition(t, "v1*: a", "v2: a")
	const head = `{"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1"`
	for want, hook := range map[string]http.Handler{
		"expected webhook response": answer(func([]byte) string { return `{}` }),
		"no response provided":      answer(func([]byte) string { return head + `}` }),
		"expected response.uid=":    answer(func([]byte) string { return head + `,"response":{"uid":"u"}}` }),
		"unexpected end":            answer(func([]byte) string { return "" }),
		"returned 0 objects": answer(func(review []byte) string {
			return strings.Replace(string(review), `"request":{`, `"response":{"result":{"status":"Success"},`, 1)
		}),
		"was 'Pending', not 'Success'": answer(func(review []byte) string {
			return strings.Replace(string(review), `"request":{`, `"response":{"result":{"status":"Pending"},`, 1)
		}),
		"EOF":                        http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("x") }),
		"status Not Found: 404 page": http.NotFoundHandler(),
	} {
		report, err := rehearse.Run(t.Context(), release(nil, old), release(hook, now), objects(job("x", "v1", `{}`)))
		expect.NoError(t, err)
		if len(report.Findings) != 1 || report.Findings[0].Effect != rehearse.Unreadable || !strings.Contains(report.Findings[0].Example.Error, want) {
			t.Errorf("got %v, want one with %s", report.Findings, want)
		}
	}
}

// The webhook is called where the definition says.
func TestRun_CallsThePathOfTheDefinition(t *testing.T) {
	url := func(text string) *apiextensionsv1.WebhookClientConfig {
		return &apiextensionsv1.WebhookClientConfig{URL: &text}
	}
	service := func(path *string) *apiextensionsv1.WebhookClientConfig {
		return &apiextensionsv1.WebhookClientConfig{Service: &apiextensionsv1.ServiceReference{Namespace: "ns", Name: "s", Path: path}}
	}
	for name, test := range map[string]struct {
		config *apiextensionsv1.WebhookClientConfig
		want   string
	}{
		"the path of a service":    {service(ptr.To("/a/b")), "/a/b"},
		"a service without a path": {service(nil), "/"},
		"the path of a URL":        {url("https://example.com:8443/a%20b"), "/a b"},
		"a URL without a path":     {url("https://example.com"), "/"},
	} {
		t.Run(name, func(t *testing.T) {
			crd := definition(t, "v1*: a", "v2: a").CustomResourceDefinition()
			crd.Spec.Conversion.Webhook.ClientConfig = test.config
			now, err := schema.New(crd)
			expect.NoError(t, err)
			var got string
			hook := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r.URL.Path })
			if _, err := rehearse.Run(t.Context(), release(nil, definition(t, "v1*: a")), release(hook, now), objects(job("x", "v1", `{}`))); err != nil || got != test.want {
				t.Errorf("the webhook is called at %q, %v; want %q", got, err, test.want)
			}
		})
	}
}

// The webhooks of the manifests may be all that a release has a handler for.
func TestRun_HandlerOfAdmissionAlone(t *testing.T) {
	crd := definition(t, "v1*: a", "v2: a").CustomResourceDefinition()
	crd.Spec.Conversion = nil
	d, err := schema.New(crd)
	expect.NoError(t, err)
	r := release(http.NotFoundHandler(), d)
	r.Manifests = map[string][]byte{"webhooks.yaml": nil}
	report, err := rehearse.Run(t.Context(), r, r, objects(job("x", "v1", `{"a":"1"}`)))
	if err != nil || len(report.Findings) > 0 || len(report.Calls) > 0 {
		t.Errorf("got %v, %v", report, err)
	}
}

func TestRun_RemovedDefinitionTakesItsObjects(t *testing.T) {
	crd := definition(t, "v1*: a").CustomResourceDefinition()
	crd.Name, crd.Spec.Names = "tasks.example.com", apiextensionsv1.CustomResourceDefinitionNames{Plural: "tasks", Kind: "Task"}
	other, err := schema.New(crd)
	expect.NoError(t, err)
	report, err := rehearse.Run(t.Context(), release(nil, definition(t, "v1*: a")), release(nil, other), objects(job("x", "v1", `{}`)))
	if err != nil || !report.Lost() || len(report.Findings) != 1 {
		t.Errorf("got %v, %v", lines(report), err)
	}
}

// Each object of 1,100 has a cause of its own.
func TestRun_BoundsFindings(t *testing.T) {
	hook := webhook(func(name, _ string, _ map[string]any) error { return fmt.Errorf("about %s", name) })
	var texts []string
	for i := range 1100 {
		texts = append(texts, job(fmt.Sprintf("job-x%dx", i), "v1", `{}`))
	}
	report, err := rehearse.Run(t.Context(), release(nil, definition(t, "v1*: a")), release(hook, definition(t, "v1*: a", "v2: a")), objects(texts...))
	expect.NoError(t, err)
	total := 0
	for _, f := range report.Findings {
		total += f.Objects
	}
	if len(report.Findings) > 1001 || total != 1100 {
		t.Errorf("got %d findings with %d objects, want at most 1001 with 1100", len(report.Findings), total)
	}
}

// Which causes are counted together does not depend on the order in which the last objects of the kinds are replayed.
func TestRun_BoundsFindingsAlike(t *testing.T) {
	var olds, news []*schema.Definition
	var texts []string
	fields := make([]string, 400)
	for i := range fields {
		fields[i] = fmt.Sprintf(`"f%d":"x"`, i)
	}
	for _, letter := range "abcdefgh" {
		kind := "Job" + string(letter)
		of := func(spec string) *schema.Definition {
			crd := definition(t, "v1*: "+spec).CustomResourceDefinition()
			crd.Name, crd.Spec.Names = strings.ToLower(kind)+"s.example.com", apiextensionsv1.CustomResourceDefinitionNames{Plural: strings.ToLower(kind) + "s", Kind: kind}
			d, err := schema.New(crd)
			expect.NoError(t, err)
			return d
		}
		olds, news = append(olds, of(anything)), append(news, of("{type: object}"))
		texts = append(texts, strings.Replace(job("x", "v1", "{"+strings.Join(fields, ",")+"}"), `"Job"`, `"`+kind+`"`, 1))
	}
	var first []string
	for range 4 {
		report, err := rehearse.Run(t.Context(), release(nil, olds...), release(nil, news...), objects(texts...))
		expect.NoError(t, err)
		if first == nil {
			first = lines(report)
		}
		if diff := cmp.Diff(first, lines(report)); diff != "" {
			t.Fatalf("(-first +now):\n%s", diff)
		}
	}
}

func TestRedact_KeepsValuesOut(t *testing.T) {
	old := definition(t, "v1*: {type: object, x-kubernetes-preserve-unknown-fields: true}")
	now := definition(t, "v1*: {type: object, properties: {pin: {type: integer}, keys: {type: object}}}", "v2: a")
	const secret = "hush \"ü"
	object := strings.Replace(job("x", "v1", `{"password":"hush \"\u00fc","users":[{"token":"t0ken"}],"pin":4711,"keys":{"k3y":{"of":"l0ck"}},"open":"yes"}`),
		`"uid":`, `"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{\"spec\":{\"password\":\"hush \\\"\\u00fc\"}}","pins":"x4711x"},"uid":`, 1)
	hook := webhook(func(_, _ string, spec map[string]any) error {
		return fmt.Errorf("spec.password: Invalid value: %q (%v): %q", secret, secret, fmt.Sprint(spec))
	})
	report, err := rehearse.Run(t.Context(), release(nil, old), release(hook, now), objects(object),
		rehearse.Redact("spec.password", "spec.users[*].token", "spec.pin", "spec.keys"))
	expect.NoError(t, err)
	text, err := json.Marshal(report)
	expect.NoError(t, err)
	all := string(text)
	for _, f := range report.Findings {
		all += f.String()
	}
	for _, hidden := range []string{"hush", "t0ken", "4711", "l0ck", "k3y"} {
		if strings.Contains(all, hidden) {
			t.Errorf("the report has %q:\n%s", hidden, all)
		}
	}
	twice := strings.Replace(object, `{"k3y":`, `{"k3y":1,"k3y":`, 1)
	report, err = rehearse.Run(t.Context(), release(nil, old), release(hook, now), objects(twice), rehearse.Redact("spec.keys"))
	if want := `duplicate field "spec.keys.REDACTED"`; err != nil || len(report.Findings) != 1 || report.Findings[0].Cause != "duplicate field …" || strings.Contains(fmt.Sprint(report.Findings), "k3y") {
		t.Errorf("got %v, %v, want %s", report.Findings, err, want)
	}
	if !strings.Contains(all, `"open":"yes"`) || !strings.Contains(all, "spec.password") {
		t.Errorf("the report lacks what is not secret:\n%s", all)
	}
}
