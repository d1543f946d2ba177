package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"

	"github.com/crdkit/crdkit/schema/breaking"
)

// finding is what a code review shows beside a line.
type finding struct {
	place
	warning  bool
	accepted *acceptance
	message  string
}

// reports are the output formats for code reviews.
var reports = []string{"github", "sarif"}

// report prints findings in one of these formats, with what could not be read.
func (c *command) report(findings []finding) error {
	for _, failure := range c.failures {
		findings = append(findings, finding{message: failure})
	}
	if c.output == "github" {
		for _, f := range findings {
			fmt.Fprintln(c.out, f.github())
		}
		return nil
	}
	results := []map[string]any{}
	suppresses := slices.ContainsFunc(findings, func(f finding) bool { return f.accepted != nil })
	for _, f := range findings {
		result := f.sarif()
		if suppresses {
			result["suppressions"] = f.suppressions()
		}
		results = append(results, result)
	}
	driver := map[string]any{"name": "crdcheck", "informationUri": "https://github.com/crdkit/crdkit"}
	return c.printJSON(map[string]any{
		"$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0",
		"runs": []any{map[string]any{"tool": map[string]any{"driver": driver}, "results": results}},
	})
}

func (f finding) level() string {
	switch {
	case f.accepted != nil:
		return "note"
	case f.warning:
		return "warning"
	}
	return "error"
}

// github is a workflow command of GitHub Actions.
func (f finding) github() string {
	data := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	property := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
	where := ""
	if f.File != "" {
		where = fmt.Sprintf(" file=%s,line=%d", property.Replace(f.File), max(f.Line, 1))
	}
	level := f.level()
	if level == "note" {
		level = "notice"
	}
	return fmt.Sprintf("::%s%s::%s", level, where, data.Replace(f.message))
}

// sarif is a result of SARIF 2.1.0, section 3.27.
func (f finding) sarif() map[string]any {
	result := map[string]any{"ruleId": "crdcheck", "level": f.level(), "message": map[string]any{"text": f.message}}
	if f.File != "" {
		result["locations"] = []any{f.place.sarif()}
	}
	return result
}

// suppressions are those of a result (3.35). If one result has any, all have the list (3.27.23).
func (f finding) suppressions() []any {
	if f.accepted == nil {
		return []any{}
	}
	return []any{map[string]any{"kind": "external", "status": "accepted", "justification": f.accepted.Reason, "location": f.accepted.sarif()}}
}

// sarif is a location of SARIF 2.1.0, section 3.28.
func (p place) sarif() map[string]any {
	return map[string]any{"physicalLocation": map[string]any{
		"artifactLocation": map[string]any{"uri": filepath.ToSlash(p.File)},
		"region":           map[string]any{"startLine": max(p.Line, 1)},
	}}
}

// step is a step of a path such as spec.toppings[0].name or metadata.labels[a.b/c].
var step = regexp.MustCompile(`\[([^]]*)\]|[^.\[]+`)

// lineOf returns the line of a field, or of the nearest one around it that is there.
func (o object) lineOf(path string) int {
	line, _ := o.positionOf(path)
	return line
}

// positionOf returns the line of lineOf, and the column.
func (o object) positionOf(path string) (line, column int) {
	node, offset := o.node, o.before
	if node == nil { // JSON, which is YAML
		var root yamlv3.Node
		if yamlv3.Unmarshal(o.text, &root) != nil || len(root.Content) == 0 {
			return o.Line, 1
		}
		node, offset = root.Content[0], o.Line-1
	}
	line, column = o.Line, node.Column
	for _, match := range step.FindAllStringSubmatch(path, -1) {
		name, found := cmp.Or(match[1], match[0]), false
		if node.Kind == yamlv3.AliasNode {
			node = node.Alias
		}
		if i, err := strconv.Atoi(name); node.Kind == yamlv3.SequenceNode && err == nil && i < len(node.Content) {
			node, line, column, found = node.Content[i], offset+node.Content[i].Line, node.Content[i].Column, true
		}
		for i := 0; node.Kind == yamlv3.MappingNode && !found && i+1 < len(node.Content); i += 2 {
			if node.Content[i].Value == name {
				node, line, column, found = node.Content[i+1], offset+node.Content[i].Line, node.Content[i].Column, true
			}
		}
		if !found {
			break
		}
	}
	return line, column
}

// lineOfChange returns the line of what has changed in a definition.
func (o object) lineOfChange(b breaking.Change) int {
	var versions []struct{ Name string }
	_ = json.Unmarshal(o.defined().Spec.Versions, &versions) // those of a definition that was compiled
	at := slices.IndexFunc(versions, func(v struct{ Name string }) bool { return v.Name == b.Version })
	if at < 0 {
		return o.lineOf(b.Path)
	}
	version := fmt.Sprintf("spec.versions[%d]", at)
	if rest, ok := strings.CutPrefix(b.Path, "spec.versions["+b.Version+"]"); ok {
		return o.lineOf(version + rest)
	}
	for _, list := range []string{"subresources", "additionalPrinterColumns", "selectableFields"} {
		if strings.HasPrefix(b.Path, list) {
			return o.lineOf(version + "." + b.Path)
		}
	}
	path := version + ".schema.openAPIV3Schema"
	for _, match := range step.FindAllStringSubmatch(b.Path, -1) {
		switch match[0] {
		case "[]":
			path += ".items"
		case "[*]":
			path += ".additionalProperties"
		default:
			path += ".properties[" + match[0] + "]"
		}
	}
	return o.lineOf(path)
}
