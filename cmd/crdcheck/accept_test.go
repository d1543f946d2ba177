package main

import (
	"bufio"
	"bytes"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/crdkit/crdkit/test/expect"
)

// writeFile writes a file into a new folder, and returns its path.
func writeFile(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	expect.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// The entries of -o accept accept all changes, as soon as they have reasons.
func TestDiff_AcceptsWhatItPrints(t *testing.T) {
	t.Chdir("testdata")
	code, entries, stderr := run(t, "", "diff", "-o", "accept", "project/pizza.yaml", "new.yaml")
	if code != exitFindings || strings.Count(entries, "\n  reason: \"\" #") != 6 {
		t.Fatalf("%d\n%s%s", code, entries, stderr)
	}
	path := writeFile(t, "accepted.yaml", entries)
	if code, stdout, stderr := run(t, "", "diff", "--accept", path, "project/pizza.yaml", "new.yaml"); code != exitError || stdout != "" || strings.Count(stderr, ": reason: required: say why the finding is acceptable\n") != 6 {
		t.Errorf("without reasons: %d\n%s%s", code, stdout, stderr)
	}
	path = writeFile(t, "accepted.yaml", strings.ReplaceAll(entries, `reason: ""`, "reason: no one does"))
	code, stdout, stderr := run(t, "", "diff", "--accept", path, "project/pizza.yaml", "new.yaml")
	if code != exitOK || stderr != "" || strings.Count(stdout, "\n    Accepted: no one does ("+path+":") != 6 ||
		!strings.HasSuffix(stdout, "1 definition compared: 0 breaking changes, 6 accepted\n") {
		t.Errorf("with reasons: %d\n%s%s", code, stdout, stderr)
	}
	// Nothing is left to append.
	if code, stdout, stderr := run(t, "", "diff", "--accept", path, "-o", "accept", "project/pizza.yaml", "new.yaml"); code != exitOK || stdout+stderr != "" {
		t.Errorf("%d\n%s%s", code, stdout, stderr)
	}
}

// An entry accepts one change, not each change of the same field.
func TestDiff_AcceptsOneChange(t *testing.T) {
	text := content(t, "testdata/project/deep/others.yml")
	with := func(schema string) string {
		return writeFile(t, "crd.yaml", strings.Replace(text, "{type: object}", "{type: object, properties: {size: {type: integer, "+schema+"}}}", 1))
	}
	accept := writeFile(t, "accepted.yaml", "[{definition: Oven.restaurant.example.com, version: v1, path: size, what: maximum 9 is now 8, reason: 9 never worked}]")
	for _, test := range []struct {
		now  string
		code int
		want string
	}{
		{"maximum: 8", exitOK, "0 breaking changes, 1 accepted"},
		{"maximum: 7", exitFindings, "1 breaking change, 1 stale"},
		{"maximum: 8, minimum: 2", exitFindings, "1 breaking change, 1 accepted"},
	} {
		code, stdout, stderr := run(t, "", "diff", "--accept", accept, with("maximum: 9"), with(test.now))
		if code != test.code || !strings.HasSuffix(stdout, "1 definition compared: "+test.want+"\n") {
			t.Errorf("%s: %d, want %d and %s\n%s%s", test.now, code, test.code, test.want, stdout, stderr)
		}
	}
}

// A value that is removed later, or a composition that allows less, is another change.
func TestDiff_AcceptsNoLaterChange(t *testing.T) {
	text := content(t, "testdata/project/deep/others.yml")
	for _, test := range []struct{ old, accepted, now string }{
		{"type: string", "type: string, enum: [a, b]", "type: string, enum: [a]"},
		{"type: string, enum: [a, b, c]", "type: string, enum: [a, b]", "type: string, enum: [a]"},
		{"type: integer", "type: integer, anyOf: [{maximum: 5}]", "type: integer, anyOf: [{maximum: 4}]"},
		{"type: number", "type: integer", "type: integer, maximum: 5"},
	} {
		with := func(schema string) string {
			return writeFile(t, "crd.yaml", strings.Replace(text, "{type: object}", "{type: object, properties: {size: {"+schema+"}}}", 1))
		}
		_, entries, _ := run(t, "", "diff", "-o", "accept", with(test.old), with(test.accepted))
		path := writeFile(t, "accepted.yaml", strings.ReplaceAll(entries, `reason: ""`, "reason: no one does"))
		if code, stdout, stderr := run(t, "", "diff", "--accept", path, with(test.old), with(test.accepted)); code != exitOK || !strings.HasSuffix(stdout, ", 1 accepted\n") {
			t.Errorf("%s: %d\n%s%s", test.accepted, code, stdout, stderr)
		}
		if code, stdout, stderr := run(t, "", "diff", "--accept", path, with(test.old), with(test.now)); code != exitFindings {
			t.Errorf("%s after %s: %d\n%s%s", test.now, test.accepted, code, stdout, stderr)
		}
	}
}

// An entry of a definition that is not compared may be misspelled, or its definition may be gone.
func TestDiff_EntryOfAnotherDefinition(t *testing.T) {
	path := writeFile(t, "accepted.yaml", `- {definition: foo.e.com, what: the definition is removed, reason: no one does}
- {definition: foo.e.com, version: v1, what: a is now b, reason: no one does}
- {definition: bar.e.com, what: a is now b, reason: no one does}
- {definition: baz.e.com, step: upgrade, effect: removed, path: spec, reason: of rehearse}
`)
	const note = "Note: no definition is compared for 3 entries of --accept: bar.e.com, foo.e.com\n"
	same := []string{"diff", "--accept", path, "testdata/project", "testdata/project"}
	for _, output := range []string{"text", "json", "github", "accept"} {
		if code, stdout, stderr := run(t, "", append(same, "-o", output)...); code != exitOK || stderr != note || strings.Contains(stdout, "foo") {
			t.Errorf("%s: %d\n%s%s", output, code, stdout, stderr)
		}
	}
	code, stdout, stderr := run(t, "", append(same, "--fail-on-stale")...)
	if code != exitFindings || stderr != "" || !strings.Contains(stdout, path+":1: foo.e.com: the definition is removed\n    Stale: this definition is not compared. Correct or remove the entry.\n") ||
		!strings.HasSuffix(stdout, ": 0 breaking changes, 3 stale\n") {
		t.Errorf("%d\n%s%s", code, stdout, stderr)
	}
}

// What a schema has twice is one entry, and a second run appends only what is new.
func TestDiff_AppendsNoEntryTwice(t *testing.T) {
	const rules = "{type: object, x-kubernetes-validations: [{rule: size(self.metadata.name) > 1}, {rule: size(self.metadata.name) > 1}]}"
	old := "testdata/project/deep/others.yml"
	now := writeFile(t, "crd.yaml", strings.Replace(content(t, old), "{type: object}", rules, 1))
	path := filepath.Join(t.TempDir(), "accepted.yaml")
	for i := range 2 {
		written := ""
		if i > 0 {
			written = content(t, path)
		} else if err := os.WriteFile(path, nil, 0o600); err != nil { // as the shell does
			t.Fatal(err)
		}
		_, entries, stderr := run(t, "", "diff", "--accept", path, "-o", "accept", old, now)
		entries = written + strings.ReplaceAll(entries, `reason: ""`, "reason: no one does")
		expect.NoError(t, os.WriteFile(path, []byte(entries), 0o600))
		if strings.Count(entries, "definition: ") != 1 || stderr != "" {
			t.Errorf("got %s%s, want one entry", entries, stderr)
		}
	}
}

// A comparison that was not completed calls nothing stale.
func TestDiff_StaleNeedsTheComparison(t *testing.T) {
	t.Chdir("testdata")
	for _, args := range [][]string{
		{"--timeout", "1ns", "project/pizza.yaml", "new.yaml"},
		{"project/pizza.yaml", "nowhere.yaml"},
	} {
		code, stdout, stderr := run(t, "", append([]string{"diff", "--fail-on-stale", "--accept", "accepted.yaml"}, args...)...)
		if code == exitFindings || strings.Contains(strings.ToLower(stdout+stderr), "stale") {
			t.Errorf("%q: %d\n%s%s", args, code, stdout, stderr)
		}
	}
}

func TestRehearse_AcceptsLosses(t *testing.T) {
	server := httptest.NewServer(crontabs())
	defer server.Close()
	args := upgrade("--objects", samples, "--webhook", server.URL)
	code, entries, stderr := run(t, "", append(args, "-o", "accept")...)
	if code != exitFindings || strings.Count(entries, "- definition: CronTab.stable.example.com\n  step: upgrade\n  effect: unreadable\n") != 1 {
		t.Fatalf("%d\n%s%s", code, entries, stderr)
	}
	path := writeFile(t, "accepted.yaml", strings.ReplaceAll(entries, `reason: ""`, "reason: to be repaired by hand"))
	code, stdout, stderr := run(t, "", append(args, "--accept", path)...)
	if code != exitOK || stderr != "" || !strings.Contains(stdout, "\n    accepted: to be repaired by hand ("+path+":1)\n") ||
		!strings.HasSuffix(stdout, "3 objects rehearsed: 4 findings, 0 of them lost, 1 accepted\n") {
		t.Errorf("%d\n%s%s", code, stdout, stderr)
	}
	code, stdout, _ = run(t, "", append(args, "--accept", path, "-o", "json")...)
	if code != exitOK || strings.Count(stdout, `"reason": "to be repaired by hand"`) != 1 || strings.Count(stdout, `"findings"`) != 1 {
		t.Errorf("%d\n%s", code, stdout)
	}
}

func TestAccept_NamesBadInput(t *testing.T) {
	const good = "{definition: A.b, what: c, reason: d}"
	for name, test := range map[string]struct{ text, want string }{
		"empty":             {"", ""},
		"a comment":         {"# none yet\n", ""},
		"null":              {"---\n", ""},
		"good":              {"- " + good + "\n- {definition: A.b, step: upgrade, effect: removed, path: spec.c, reason: d}\n", ""},
		"not YAML":          {"a: b: c", "file: yaml: mapping values are not allowed in this context"},
		"two documents":     {"- " + good + "\n---\n- " + good, "file: more than one document: want one list"},
		"a mapping":         {"\n" + good, "file:2: not a list of entries: want what crdcheck diff -o accept prints"},
		"a string":          {"- " + good + "\n- A.b", "file:2: entry 2: not a mapping: want definition, what and reason"},
		"an alias":          {"- &a " + good + "\n- *a", "file:2: entry 2: not a mapping: want definition, what and reason"},
		"an unknown field":  {"- {definition: A.b, what: c, rason: d}", "file:1: entry 1: rason: unknown field: want definition, version, path, what and reason, or of rehearse definition, step, effect, version, path, cause and reason"},
		"a merge":           {"- &a " + good + "\n- {<<: *a}", "file:2: entry 2: <<: unknown field"},
		"a field twice":     {"- {definition: A.b, what: c, what: c, reason: d}", "file:1: entry 1: what: the field is there twice"},
		"a list":            {"- {definition: A.b, what: [c], reason: d}", "file:1: entry 1: what: not a string"},
		"no definition":     {"- {what: c, reason: d}", "file:1: entry 1: definition: required: want a kind and its group, such as Pizza.example.com"},
		"no what":           {"- {definition: A.b, reason: d}", "file:1: entry 1: what: required: want the change"},
		"no effect":         {"- {definition: A.b, step: upgrade, reason: d}", "file:1: entry 1: what: required: want the change"},
		"of both":           {"- {definition: A.b, step: upgrade, what: c, reason: d}", "file:1: entry 1: fields of crdcheck diff (what) and of crdcheck rehearse"},
		"no reason":         {"- {definition: A.b, what: c, reason: ~}", "file:1: entry 1: reason: required: say why the finding is acceptable"},
		"a reason of space": {"- {definition: A.b, what: c, reason: ' '}", "file:1: entry 1: reason: required"},
	} {
		t.Run(name, func(t *testing.T) {
			_, errs := parseAccepted("file", []byte(test.text))
			got := ""
			for _, err := range errs {
				got += err.Error() + "\n"
			}
			if (got == "") != (test.want == "") || !strings.HasPrefix(got, test.want) {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

func TestAccept_NamesBadFiles(t *testing.T) {
	entry := "- {definition: A.b, what: c, reason: d}\n"
	one, large := writeFile(t, "one.yaml", entry), writeFile(t, "large.yaml", strings.Repeat("#", maxAccepted+1))
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"--accept", "nowhere.yaml"}, "error: open nowhere.yaml: "},
		{[]string{"--accept", "testdata"}, "error: read testdata: is a directory\n"},
		{[]string{"--accept", large}, "error: " + large + ": the file has more than 1048576 bytes\n"},
		{[]string{"--accept", one, "--accept", one}, "error: " + one + ":1: the finding has an entry in " + one + ":1\n"},
	} {
		code, stdout, stderr := run(t, "", append([]string{"diff", "testdata/project", "testdata/project"}, test.args...)...)
		if code != exitError || stdout != "" || !strings.HasPrefix(stderr, test.want) {
			t.Errorf("%q: %d\n%s%s, want %s", test.args, code, stdout, stderr, test.want)
		}
	}
}

// Any file is parsed to its end, and each error has its place.
func FuzzParseAccepted(f *testing.F) {
	for _, seed := range []string{"- {definition: A.b, what: c, reason: d}", "- &a {definition: A.b, step: c, effect: d, reason: |\n  e\n}\n- *a", "{}", "- - -", "--- null\n---\n"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		entries, errs := parseAccepted("file", text)
		for _, e := range entries {
			if e.Definition == "" || strings.TrimSpace(e.Reason) == "" || e.Line < 1 || e.Line > bytes.Count(text, []byte("\n"))+1 {
				t.Errorf("%q: %+v", text, e)
			}
		}
		for _, err := range errs {
			if !strings.HasPrefix(err.Error(), "file:") {
				t.Errorf("%q: %s", text, err)
			}
		}
	})
}

// An entry is parsed as it was printed, whatever is in a schema.
func FuzzPrintEntries(f *testing.F) {
	f.Add("A.b", "spec", "there is a new rule: self.a\n  || # \"b\": c")
	f.Add("true", "- a", "\u2028\x00\ufeff 'x'\r\n")
	f.Fuzz(func(t *testing.T, definition, path, what string) {
		if definition == "" || what == "" || !utf8.ValidString(definition+" "+path+" "+what) {
			return // each is a string of JSON, which is UTF-8
		}
		want := identity{Definition: definition, Path: path, What: what}
		var out bytes.Buffer
		c := &command{out: bufio.NewWriter(&out)}
		expect.NoError(t, c.printEntries([]identity{{Definition: "A.b", What: want.What + "x"}, want, want}))
		c.out.Flush()
		entries, errs := parseAccepted("file", bytes.ReplaceAll(out.Bytes(), []byte(`  reason: "" #`), []byte("  reason: x #")))
		if len(errs) > 0 || len(entries) != 2 {
			t.Fatalf("%v\n%s", errs, out.String())
		}
		if diff := cmp.Diff(want, entries[1].identity, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("(-want +got):\n%s\n%s", diff, out.String())
		}
	})
}
