package schema

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	crdvalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"
)

// Problem is an error or a warning of the API server about a CustomResourceDefinition (CRD).
type Problem struct {
	// Definition is the name of the CRD. It is empty for a schema without a CRD.
	Definition string `json:"definition"`
	// Version is the name of the version with the problem. It is empty if the problem does not
	// concern a version.
	Version string `json:"version,omitempty"`
	// Warning reports whether the server accepts the CRD in spite of this problem, and returns a
	// warning.
	Warning bool `json:"warning,omitempty"`
	// Path is the path of the field in the file. A missing field has a path too.
	Path string `json:"path,omitempty"`
	// Message is the error of the server or its decoder about the field. Values of more than 100
	// bytes are left out.
	Message string `json:"message"`
	// Line and Column are the position of the field in the file, starting at 1. For a missing
	// field, they are the position of the field that should contain it.
	Line   int `json:"line"`
	Column int `json:"column"`
	// Advice explains how to fix the problem. It is empty if the problem is rare, or if Message
	// already explains the fix.
	Advice string `json:"advice,omitempty"`
}

// String returns the problem in one line, without the advice. Line breaks in the message are
// preserved.
func (f Problem) String() string {
	s := fmt.Sprintf("%d:%d: ", f.Line, f.Column)
	if f.Warning {
		s += "warning: "
	}
	if f.Definition != "" {
		s += f.Definition + ": "
	}
	if f.Path != "" {
		s += f.Path + ": "
	}
	return s + f.Message
}

// Check returns the problems of the CustomResourceDefinitions in a file, which it reads like
// [ParseAll]. A problem is a warning, or an error for which the API server would not create the
// CRD. Each problem has its position in the file, whose order they follow.
//
// Check returns an error for each part of the file that cannot be read or is not a CRD, together
// with the problems of the other parts. A file without a CRD is an error, so that a check of the
// wrong file does not pass.
//
// Check behaves like a server of Kubernetes 1.37, which is the first that counts the cost of the
// global function matches(self, pattern) in a rule.
//
// Like the server, Check works in steps, so a problem can hide others until you fix it. If a value
// has another type than its field, Check only reports wrong types and unknown fields. If a schema
// is not structural, Check does not check its defaults and CEL rules. Unknown fields below items
// and additionalProperties are not reported, as on the server.
//
// If all versions share a schema, its problems are reported for each version, because each version
// has to be fixed. CRDs with preserveUnknownFields and CRDs of v1beta1 are problems, because no
// server creates them any more, although [Parse] accepts them.
//
// (apiextensions-apiserver/pkg/apis/apiextensions/validation/validation.go,
// ValidateCustomResourceDefinition; for warnings
// apiextensions-apiserver/pkg/registry/customresourcedefinition/strategy.go, WarningsOnCreate)
func Check(data []byte) ([]Problem, error) {
	var problems []Problem
	definitions := 0
	err := eachObject(data, func(o *object) error {
		definitions++
		found, err := o.check()
		problems = append(problems, found...)
		return err
	})
	if definitions == 0 && err == nil {
		err = errors.New("schema: no CustomResourceDefinition found")
	}
	return problems, err
}

// check returns the problems of a definition, in the order of the file.
func (o *object) check() ([]Problem, error) {
	version, err := definitionVersion(o.json)
	if err != nil {
		return nil, err
	}
	c := &checker{object: o, name: nameOf(o.json)}
	err = c.definition(version)
	slices.SortStableFunc(c.problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column), cmp.Compare(a.Path, b.Path))
	})
	return c.problems, err
}

// checker collects the problems of one definition.
type checker struct {
	*object
	name     string
	versions []string // their names
	problems []Problem
}

// definition checks a definition; version is its apiVersion.
func (c *checker) definition(version string) error {
	if version != apiextensionsv1.SchemeGroupVersion.String() {
		c.add("apiVersion", fmt.Sprintf("no matches for kind %q in version %q", "CustomResourceDefinition", version))
		return nil
	}
	crd, strict, err := decodeDefinition(version, c.json)
	var wrong map[string]string
	if err != nil {
		var rest []byte
		if wrong, rest = findMistyped(c.json); len(wrong) == 0 {
			return err
		}
		crd, strict, err = decodeDefinition(version, rest)
	}
	for _, v := range crd.Spec.Versions {
		c.versions = append(c.versions, v.Name)
	}
	for _, err := range c.duplicates {
		d := err.(lineError)
		c.problems = append(c.problems, Problem{Definition: c.name, Message: d.message, Line: d.line, Column: 1})
	}
	for _, err := range strict {
		c.add(fieldOf(err), err.Error())
	}
	for path, message := range wrong {
		c.add(path, message)
	}
	if len(wrong) > 0 || err != nil {
		return err
	}
	apiextensionsv1.SetObjectDefaults_CustomResourceDefinition(crd)
	internal, err := prepareDefinition(crd)
	if err != nil {
		return err
	}
	eachWarning(internal, func(path, message string) {
		for _, path := range c.paths(path) {
			c.add(path, message).Warning = true
		}
	})
	errs, err := validateDefinition(internal, crdvalidation.ValidateCustomResourceDefinition)
	if err != nil {
		c.add("", err.Error())
	}
	for _, err := range errs {
		for _, path := range c.paths(err.Field) {
			c.add(path, body(err))
		}
	}
	return nil
}

// add adds a problem of a field, and returns it for what else is to be set. The next call
// makes it invalid.
func (c *checker) add(path, message string) *Problem {
	inFile := path
	if strings.HasPrefix(path, "status.storedVersions") {
		inFile = "spec.versions" // a file has no status
	}
	at, _ := c.find(inFile)
	c.problems = append(c.problems, Problem{
		Definition: c.name, Version: c.version(path), Path: path, Message: message,
		Line: at.line, Column: at.column, Advice: advise(path, message),
	})
	return &c.problems[len(c.problems)-1]
}

// version returns the name of the version that a path is in.
func (c *checker) version(path string) string {
	if rest, ok := strings.CutPrefix(path, "spec.versions["); ok {
		number, _, _ := strings.Cut(rest, "]")
		if i, err := strconv.Atoi(number); err == nil && i >= 0 && i < len(c.versions) {
			return c.versions[i]
		}
	}
	return ""
}

// paths returns where in the file a field of the server's internal type is. Some names differ
// there, and what is the same in all versions is outside of them, as it was in v1beta1: then each
// version has a path (apiextensions-apiserver/pkg/apis/apiextensions/v1/conversion.go).
func (c *checker) paths(path string) []string {
	if path == "<nil>" {
		return []string{""}
	}
	if _, found := c.find(path); found {
		return []string{path}
	}
	path = strings.Replace(path, "].JSONPath", "].jsonPath", 1)
	for _, moved := range [...][2]string{
		{"spec.conversion.webhookClientConfig", "spec.conversion.webhook.clientConfig"},
		{"spec.conversion.conversionReviewVersions", "spec.conversion.webhook.conversionReviewVersions"},
		{"spec.version", "spec.versions[0].name"},
		{"spec.validation", "spec.versions[%d].schema"},
		{"spec.subresources", "spec.versions[%d].subresources"},
		{"spec.additionalPrinterColumns", "spec.versions[%d].additionalPrinterColumns"},
		{"spec.selectableFields", "spec.versions[%d].selectableFields"},
	} {
		rest, ok := within(path, moved[0])
		switch {
		case !ok:
		case !strings.Contains(moved[1], "%d"):
			return []string{moved[1] + rest}
		case len(c.versions) > 0:
			paths := make([]string, len(c.versions))
			for i := range paths {
				paths[i] = fmt.Sprintf(moved[1], i) + rest
			}
			return paths
		}
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

// nameOf is the name in the JSON of an object. Other metadata may be invalid.
func nameOf(object []byte) string {
	var o struct {
		Metadata struct {
			Name string `json:"name"`
		} `json:"metadata"`
	}
	_ = kjson.UnmarshalCaseSensitivePreserveInts(object, &o) // after an error, the name may be there
	return o.Metadata.Name
}

// fieldOf returns the path of an error such as unknown field "spec.scopes".
func fieldOf(err error) string {
	var of kjson.FieldError
	if errors.As(err, &of) {
		return of.FieldPath()
	}
	return ""
}
