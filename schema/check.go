package schema

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	crdvalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// Fault is something for which the API server would not take a CustomResourceDefinition.
type Fault struct {
	// Definition is the name of the definition, and Version that of its version, if the
	// fault is in one.
	Definition string `json:"definition"`
	Version    string `json:"version,omitempty"`
	// Path is the field, as it is in the file. One that is missing has a path too.
	Path string `json:"path,omitempty"`
	// Message is what the server says about the field. Values of more than 100 bytes are
	// left out.
	Message string `json:"message"`
	// Rule is the number, from 1 to 4, of the rule of structural schemas that is broken:
	// each value has a type; what a composition such as anyOf mentions is specified
	// outside of it too; a composition sets no description, type, default,
	// additionalProperties and nullable; of metadata, only name and generateName are
	// restricted. It is 0 for other faults.
	// (https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#specifying-a-structural-schema)
	Rule int `json:"rule,omitempty"`
	// Line and Column say where in the file the field is, from 1. If it is missing, they
	// are those of what should have it.
	Line   int `json:"line"`
	Column int `json:"column"`
	// Advice says how to mend it, for the faults that are common.
	Advice string `json:"advice,omitempty"`
}

// String is the fault in one line, without the advice.
func (f Fault) String() string {
	s := fmt.Sprintf("%d:%d: %s: ", f.Line, f.Column, f.Definition)
	if f.Path != "" {
		s += f.Path + ": "
	}
	if s += f.Message; f.Rule != 0 {
		s += fmt.Sprintf(" (rule %d of structural schemas)", f.Rule)
	}
	return s
}

// Check reads the CustomResourceDefinitions of a file, as [ParseAll] does, and returns
// every fault for which the API server would not create one of them, with its place in the
// file: definition by definition, from top to bottom. It is for those who mend a
// definition; to use one, parse it: [Parse] takes only what has no faults.
//
// A schema that all versions share is checked once by the server, and has its faults here in
// each version, where they have to be mended. Fields that are unknown or there twice are
// faults too, as they are to kubectl. Like the server, Check looks no further in a schema
// than it makes sense: the rules of CEL, for example, are checked once the schema is
// structural.
//
// A definition with preserveUnknownFields, which [New] takes as one from earlier times,
// has at least that fault: it cannot be created any more.
//
// The error says what in the file cannot be read or is no definition. Faults of the
// others are returned even so.
//
// (apiextensions-apiserver/pkg/apis/apiextensions/validation/validation.go,
// ValidateCustomResourceDefinition, and, for the four rules,
// apiextensions-apiserver/pkg/apiserver/schema/validation.go, ValidateStructural)
func Check(data []byte) ([]Fault, error) {
	if len(data) > maxFile {
		return nil, fmt.Errorf("schema: the file has %d bytes: the limit is %d", len(data), maxFile)
	}
	var faults []Fault
	var errs []error
	for _, doc := range split(data) {
		found, err := doc.check()
		faults = append(faults, found...)
		if err != nil {
			errs = append(errs, fmt.Errorf("schema: document %d (line %d): %w", doc.number, doc.line, err))
		}
	}
	return faults, errors.Join(errs...)
}

// check returns the faults of the definitions in a document.
func (d document) check() (faults []Fault, err error) {
	text := d
	objects, err := text.objects()
	var twice []string
	if err != nil {
		lenient, lenientErr := yaml.YAMLToJSON(d.text)
		if lenientErr != nil || len(lenient) == 0 || lenient[0] != '{' {
			return nil, err
		}
		twice = yamlWarnings(err.Error())
		text.text = lenient
		if objects, err = text.objects(); err != nil {
			return nil, err
		}
	}
	at := d.positions(len(objects))
	var errs []error
	for i, object := range objects {
		c := &checker{at: at[i]}
		if err := c.object(object, twice); err != nil {
			errs = append(errs, err)
			continue
		}
		twice = nil
		slices.SortStableFunc(c.faults, func(a, b Fault) int {
			return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column), cmp.Compare(a.Path, b.Path))
		})
		faults = append(faults, c.faults...)
	}
	return faults, errors.Join(errs...)
}

// checker collects the faults of one definition.
type checker struct {
	at       *positions
	name     string
	versions []string
	faults   []Fault
}

// object checks the JSON of a definition; twice are messages of names that its YAML has
// twice.
func (c *checker) object(object []byte, twice []string) error {
	crd, strict, err := decodeDefinition(object)
	var mistyped kjson.FieldError
	switch {
	case crd == nil || err != nil && !errors.As(err, &mistyped) && !isTypeError(err):
		return err
	case err != nil:
		c.name = nameOf(object)
		c.add(fieldOf(err), err.Error(), 0)
		return nil
	}
	c.name = cmp.Or(crd.Name, nameOf(object))
	for _, v := range crd.Spec.Versions {
		c.versions = append(c.versions, v.Name)
	}
	for _, text := range twice {
		c.addTwice(text)
	}
	for _, err := range strict {
		c.add(fieldOf(err), err.Error(), 0)
	}
	apiextensionsv1.SetObjectDefaults_CustomResourceDefinition(crd)
	internal, err := prepare(crd)
	if err != nil {
		return err
	}
	for _, err := range crdvalidation.ValidateCustomResourceDefinition(context.Background(), internal) {
		message := body(err)
		for _, path := range c.paths(err.Field) {
			c.add(path, message, structuralRule(err))
		}
	}
	return nil
}

// add adds a fault of a field.
func (c *checker) add(path, message string, rule int) {
	at, _ := c.at.find(place(path))
	f := Fault{Definition: c.name, Version: c.version(path), Path: path, Message: message, Rule: rule, Line: at.line, Column: at.column}
	f.Advice = advise(path, message, rule)
	c.faults = append(c.faults, f)
}

// addTwice adds a fault of a name that YAML has twice: line 3: key "scope" already set in
// map.
func (c *checker) addTwice(text string) {
	line, message, _ := strings.Cut(strings.TrimPrefix(text, "line "), ": ")
	n, err := strconv.Atoi(line)
	if err != nil {
		n, message = 1, text
	}
	c.faults = append(c.faults, Fault{
		Definition: c.name, Message: message, Line: c.at.above + n, Column: 1,
		Advice: "Remove one of both.",
	})
}

// version returns the name of the version that a path is in.
func (c *checker) version(path string) string {
	if rest, ok := strings.CutPrefix(path, "spec.versions["); ok {
		number, _, _ := strings.Cut(rest, "]")
		if i, err := strconv.Atoi(number); err == nil && i < len(c.versions) {
			return c.versions[i]
		}
	}
	return ""
}

// place is the path of what a message is about, where that is never in a file.
func place(path string) string {
	if strings.HasPrefix(path, "status.storedVersions") {
		return "spec.versions"
	}
	return path
}

// paths returns where in the file a field of the server's internal type is. What is the
// same in all versions has been moved out of them there, as in v1beta1, and some names
// differ (apiextensions-apiserver/pkg/apis/apiextensions/v1/conversion.go).
func (c *checker) paths(path string) []string {
	if path == "<nil>" {
		return []string{""}
	}
	if _, found := c.at.find(path); found {
		return []string{path}
	}
	path = strings.Replace(path, "].JSONPath", "].jsonPath", 1)
	for _, moved := range [...][2]string{
		{"spec.conversion.webhookClientConfig", "spec.conversion.webhook.clientConfig"},
		{"spec.conversion.conversionReviewVersions", "spec.conversion.webhook.conversionReviewVersions"},
	} {
		if rest, ok := within(path, moved[0]); ok {
			if _, old := c.at.find(moved[0]); !old {
				return []string{moved[1] + rest}
			}
		}
	}
	for _, moved := range [...][2]string{
		{"spec.validation", "schema"},
		{"spec.subresources", "subresources"},
		{"spec.additionalPrinterColumns", "additionalPrinterColumns"},
		{"spec.selectableFields", "selectableFields"},
	} {
		rest, ok := within(path, moved[0])
		if !ok {
			continue
		}
		if _, old := c.at.find(moved[0]); old || len(c.versions) == 0 {
			break
		}
		var paths []string
		for i := range c.versions {
			paths = append(paths, fmt.Sprintf("spec.versions[%d].%s%s", i, moved[1], rest))
		}
		return paths
	}
	if path == "spec.version" && len(c.versions) > 0 {
		return []string{"spec.versions[0].name"}
	}
	return []string{path}
}

// within returns the rest of a path that is in, or at, another one.
func within(path, parent string) (rest string, ok bool) {
	rest, ok = strings.CutPrefix(path, parent)
	return rest, ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// body is the error without its path, and without long values.
func body(err *field.Error) string {
	text := err.ErrorBody()
	head, rest, ok := strings.Cut(text, ": ")
	if !ok || len(text)-len(err.Detail) <= 100 {
		return text
	}
	switch err.Type {
	case field.ErrorTypeInvalid, field.ErrorTypeTypeInvalid, field.ErrorTypeNotSupported, field.ErrorTypeDuplicate:
		if err.Detail != "" && strings.HasSuffix(rest, err.Detail) {
			return head + ": " + err.Detail
		}
	}
	return text
}

// nameOf is the name in the JSON of an object.
func nameOf(object []byte) string {
	var o struct {
		Metadata struct {
			Name string `json:"name"`
		} `json:"metadata"`
	}
	_ = kjson.UnmarshalCaseSensitivePreserveInts(object, &o) // it may have been decoded up to there
	return o.Metadata.Name
}

// A field is the quoted text in unknown field "spec.scopes", and what comes before the type
// in cannot unmarshal string into Go struct field
// CustomResourceDefinitionVersion.spec.versions.served of type bool.
var quoted, typed = regexp.MustCompile(`^[^"]* field "(.*)"$`), regexp.MustCompile(`Go struct field [^ .]*\.([^ ]*) of type`)

// fieldOf returns the path of an error of decoding.
func fieldOf(err error) string {
	for _, re := range []*regexp.Regexp{quoted, typed} {
		if m := re.FindStringSubmatch(err.Error()); m != nil {
			return m[1]
		}
	}
	return ""
}

// isTypeError says whether JSON could not be decoded because a value has another type than
// its field.
func isTypeError(err error) bool {
	var wrong *json.UnmarshalTypeError
	return errors.As(err, &wrong) || typed.MatchString(err.Error())
}

// structuralRule returns the number of the rule of structural schemas that an error is
// about, or 0. They are told from each other by the words of
// apiextensions-apiserver/pkg/apiserver/schema/validation.go and complete.go.
func structuralRule(err *field.Error) int {
	switch {
	case err.Type == field.ErrorTypeRequired && strings.HasPrefix(err.Detail, "must not be empty ") && strings.HasSuffix(err.Field, "type"),
		err.Type == field.ErrorTypeRequired && err.Detail == "must be specified" && strings.HasSuffix(err.Field, "items"):
		return 1
	case err.Type == field.ErrorTypeRequired && strings.HasPrefix(err.Detail, "because it is defined in "):
		return 2
	case err.Type == field.ErrorTypeForbidden && strings.HasSuffix(err.Detail, " to be structural"):
		return 3
	case err.Type == field.ErrorTypeForbidden && (err.Detail == "must not be specified in a nested context" || strings.HasPrefix(err.Detail, "must not specify anything other than name and generateName")):
		return 4
	}
	return 0
}
