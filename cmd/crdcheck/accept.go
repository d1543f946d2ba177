package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	yamlv3 "go.yaml.in/yaml/v3"
)

// maxAccepted is the size of the largest file of --accept.
const maxAccepted = 1 << 20

// identity tells a finding of diff or rehearse from the others, in the words of their output.
type identity struct {
	Definition string `json:"definition"`     // its kind and group
	Step       string `json:"step,omitempty"` // of rehearse, as are Effect and Cause
	Effect     string `json:"effect,omitempty"`
	Version    string `json:"version,omitempty"`
	Path       string `json:"path,omitempty"`
	What       string `json:"what,omitempty"` // of diff
	Cause      string `json:"cause,omitempty"`
}

// String returns what diff prints before the reason.
func (i identity) String() string {
	where := i.Definition
	for _, more := range []string{i.Version, i.Path} {
		if more != "" {
			where += " " + more
		}
	}
	return where + ": " + i.What
}

// acceptance is the reason to accept a finding, and where it is written.
type acceptance struct {
	place
	Reason string `json:"reason"`
}

func (a acceptance) String() string { return fmt.Sprintf("%s (%s)", indent(a.Reason), a.place) }

// entry is an entry of a file of --accept.
type entry struct {
	acceptance
	identity
	matched  bool
	compared bool // the definition, so that the entry should have matched
}

// member is a field of an entry.
type member struct {
	name  string
	value *string
}

// members returns the fields of an entry, in the order in which they are printed.
func (e *entry) members() []member {
	return []member{
		{"definition", &e.Definition}, {"step", &e.Step}, {"effect", &e.Effect}, {"version", &e.Version},
		{"path", &e.Path}, {"what", &e.What}, {"cause", &e.Cause}, {"reason", &e.Reason},
	}
}

// accepted are the entries of the files of --accept.
type accepted struct {
	paths   []string
	entries []*entry
	of      map[identity]*entry
}

func (a *accepted) add(flags *pflag.FlagSet) {
	flags.StringArrayVar(&a.paths, "accept", nil, "A file with accepted findings, each with a reason. May be given more than once.")
}

// readAccepted reads the files.
func (c *command) readAccepted(a *accepted) {
	a.of = map[identity]*entry{}
	for _, path := range a.paths {
		text, err := readLimited(path, maxAccepted)
		if err != nil {
			c.fail(err)
			continue
		}
		entries, errs := parseAccepted(path, text)
		for _, e := range entries {
			if first := a.of[e.identity]; first != nil {
				errs = append(errs, fmt.Errorf("%s: the finding has an entry in %s", e.place, first.place))
				continue
			}
			a.of[e.identity] = e
			a.entries = append(a.entries, e)
		}
		for _, err := range errs {
			c.fail(err)
		}
	}
}

// readLimited reads a file of a limited size.
func readLimited(path string, limit int64) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	text, err := io.ReadAll(io.LimitReader(file, limit+1))
	if err == nil && int64(len(text)) > limit {
		err = fmt.Errorf("%s: the file has more than %d bytes", path, limit)
	}
	return text, err
}

// parseAccepted parses a list of entries. It returns those without an error.
func parseAccepted(name string, text []byte) (entries []*entry, errs []error) {
	var root, rest yamlv3.Node
	decoder := yamlv3.NewDecoder(bytes.NewReader(text))
	err := decoder.Decode(&root)
	if err == io.EOF {
		return nil, nil // as a file to which nothing has been appended yet
	}
	if err == nil {
		if err = decoder.Decode(&rest); err == nil {
			err = errors.New("more than one document: want one list")
		}
	}
	if err != io.EOF {
		return nil, []error{fmt.Errorf("%s: %w", name, err)}
	}
	list := root.Content[0]
	if list.Tag == "!!null" {
		return nil, nil
	}
	if list.Kind != yamlv3.SequenceNode {
		return nil, []error{fmt.Errorf("%s: not a list of entries: want what crdcheck diff -o accept prints", place{File: name, Line: list.Line})}
	}
	for i, item := range list.Content {
		e, err := parseEntry(name, item)
		if err != nil {
			at := place{File: name, Line: item.Line, Item: fmt.Sprintf("entry %d", i+1)}
			errs = append(errs, fmt.Errorf("%s: %w", at, err))
			continue
		}
		entries = append(entries, e)
	}
	return entries, errs
}

// parseEntry parses an entry. Its errors begin with the field.
func parseEntry(name string, item *yamlv3.Node) (*entry, error) {
	e := &entry{acceptance: acceptance{place: place{File: name, Line: item.Line}}}
	members := e.members()
	if item.Kind != yamlv3.MappingNode {
		return nil, errors.New("not a mapping: want definition, what and reason")
	}
	found := map[string]bool{}
	for i := 0; i+1 < len(item.Content); i += 2 {
		key, value := item.Content[i].Value, item.Content[i+1]
		at := slices.IndexFunc(members, func(m member) bool { return m.name == key })
		switch {
		case at < 0:
			return nil, fmt.Errorf("%s: unknown field: want definition, version, path, what and reason, or of rehearse definition, step, effect, version, path, cause and reason", key)
		case found[key]:
			return nil, fmt.Errorf("%s: the field is there twice", key)
		case value.Kind != yamlv3.ScalarNode:
			return nil, fmt.Errorf("%s: not a string", key)
		case value.Tag != "!!null":
			*members[at].value = value.Value
		}
		found[key] = true
	}
	switch {
	case e.Definition == "":
		return nil, missing("definition", "want a kind and its group, such as Pizza.example.com")
	case e.What == "" && (e.Step == "" || e.Effect == ""):
		return nil, missing("what", "want the change as crdcheck diff prints it, or step and effect of crdcheck rehearse")
	case e.What != "" && e.Step+e.Effect+e.Cause != "":
		return nil, errors.New("fields of crdcheck diff (what) and of crdcheck rehearse (step, effect, cause): want two entries")
	case strings.TrimSpace(e.Reason) == "":
		return nil, missing("reason", "say why the finding is acceptable")
	}
	e.Reason = strings.TrimSpace(e.Reason)
	return e, nil
}

// missing is the error of an entry without a field.
func missing(field, want string) error { return fmt.Errorf("%s: required: %s", field, want) }

// accept returns the reason to accept a finding, or nil.
func (a *accepted) accept(id identity) *acceptance {
	e := a.of[id]
	if e == nil {
		return nil
	}
	e.matched = true
	return &e.acceptance
}

// stale returns the entries of diff that accept nothing: those of definitions that are compared, and the
// others. Those may be misspelled or out of date, or concern a definition that is compared in another run.
func (a *accepted) stale(compared ...definitions) (stale, others []*entry) {
	names := map[string]bool{}
	for _, all := range compared {
		for kind := range all.byKind {
			names[kind.String()] = true
		}
	}
	stale = []*entry{}
	for _, e := range a.entries {
		switch e.compared = names[e.Definition]; {
		case e.What == "" || e.matched:
		case e.compared:
			stale = append(stale, e)
		default:
			others = append(others, e)
		}
	}
	return stale, others
}

// noteOthers prints how many entries are of definitions that are not compared, and of which.
func (c *command) noteOthers(others []*entry) {
	if len(others) == 0 {
		return
	}
	entries, names := "1 entry", map[string]bool{}
	if len(others) > 1 {
		entries = fmt.Sprintf("%d entries", len(others))
	}
	for _, e := range others {
		names[e.Definition] = true
	}
	c.say("Note: no definition is compared for %s of --accept: %s", entries, strings.Join(slices.Sorted(maps.Keys(names)), ", "))
}

// text is a stale entry for a person to read.
func (e *entry) text() string {
	if !e.compared {
		return e.identity.String() + "\nStale: this definition is not compared. Correct or remove the entry."
	}
	return e.identity.String() + "\nStale: the compared definitions do not have this change. Remove the entry."
}

// printEntries prints entries for findings, whose reasons are for the user to write. Findings with the same
// fields, such as a rule that is there twice, have one entry.
func (c *command) printEntries(findings []identity) error {
	list := yamlv3.Node{Kind: yamlv3.SequenceNode}
	for i, id := range findings {
		if slices.Contains(findings[:i], id) {
			continue
		}
		item := &yamlv3.Node{Kind: yamlv3.MappingNode}
		for _, m := range (&entry{identity: id}).members() {
			value := &yamlv3.Node{Kind: yamlv3.ScalarNode, Tag: "!!str", Value: *m.value}
			switch {
			case m.name == "reason":
				value.LineComment = "say why this is acceptable"
			case *m.value == "":
				continue
			case strings.ContainsAny(*m.value, "\n\r\t"):
				value.Style = yamlv3.DoubleQuotedStyle // on one line
			}
			item.Content = append(item.Content, &yamlv3.Node{Kind: yamlv3.ScalarNode, Value: m.name}, value)
		}
		list.Content = append(list.Content, item)
	}
	if len(findings) == 0 {
		return nil // so that what is appended to a file stays a list
	}
	text, err := yamlv3.Marshal(&list)
	if err != nil {
		return err
	}
	_, err = c.out.Write(text)
	return err
}
