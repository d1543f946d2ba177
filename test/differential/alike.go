package differential

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// likewise takes a text of the server for the text offline that says the same, where there
// is one, and reports whether there was any.
func (c *Comparison) likewise(alike func(server, offline string) bool) (changed bool) {
	pair := func(server, offline []string) []string {
		server, free := slices.Clone(server), slices.Clone(offline)
		var rest []int // of the server's, what is not said offline to the letter
		for i, text := range server {
			if at := slices.Index(free, text); at >= 0 {
				free = slices.Delete(free, at, at+1)
			} else {
				rest = append(rest, i)
			}
		}
		for _, i := range rest {
			if at := slices.IndexFunc(free, func(other string) bool { return alike(server[i], other) }); at >= 0 {
				server[i], changed = free[at], true
				free = slices.Delete(free, at, at+1)
			}
		}
		return server
	}
	server, offline := c.timeless(c.Server), c.timeless(c.Offline)
	c.Server, c.Offline = server, offline
	c.Server.Causes = pair(server.Causes, offline.Causes)
	c.Server.Warnings = pair(server.Warnings, offline.Warnings)
	if texts := pair([]string{server.Message}, []string{offline.Message}); changed {
		c.Server.Message = texts[0]
	}
	return changed
}

// sameRequired reports whether both say that a field is required: the apiVersion or kind of an
// embedded object, or the namespace or name of a service, where the server before 1.34 adds
// what 1.34 does not.
func sameRequired(server, offline string) bool {
	m := required.FindStringSubmatch(server)
	return m != nil && m[1] == offline
}

var required = regexp.MustCompile(`^(.*(?:\.(?:apiVersion|kind): (?:FieldValueRequired: )?Required value|\.service\.(namespace|name): (?:FieldValueRequired: )?Required value))` +
	`: (?:must not be empty|service (?:namespace|name) is required)$`)

// oldRule is what a server before 1.35 says of a rule that fails: the type of the value,
// and then what the rule says, if that is said.
var oldRule = regexp.MustCompile(`(?s)^(.*?(?:Invalid|Duplicate) value): "(object|array|string|integer|number|boolean|)"(: .*)?$`)

// sameRule reports whether both say the same of a rule that fails, where the server before 1.35
// says the type of the value, and 1.35 the value of a scalar and nothing of an object or a
// list.
func sameRule(server, offline string) bool {
	m := oldRule.FindStringSubmatch(server)
	if m == nil {
		return false
	}
	value, ok := strings.CutPrefix(offline, m[1])
	if !ok {
		return false
	}
	if value, ok = strings.CutSuffix(value, m[3]); !ok {
		return false
	}
	if kind := m[2]; kind == "object" || kind == "array" {
		return value == ""
	}
	value, ok = strings.CutPrefix(value, ": ")
	return ok && isA(m[2], value)
}

// isA reports whether a value in an error is of a type of a schema: "" is any.
func isA(kind, value string) bool {
	switch kind {
	case "boolean":
		return value == "true" || value == "false"
	case "integer", "number":
		_, err := strconv.ParseFloat(value, 64)
		return err == nil
	case "string":
		_, err := strconv.Unquote(value)
		return err == nil
	}
	return json.Valid([]byte(value)) || isA("string", value)
}

// goSyntax begins an object or a list as Go has it, with %#v.
var goSyntax = regexp.MustCompile(`^(?:\[\]|map\[string\])*(?:interface \{\}|string|[a-z0-9]+\.[A-Za-z]+)[{(]`)

// sameValue reports whether both say the same of a value, where 1.34 has it as JSON, and the
// server before 1.34 as Go has it.
func sameValue(server, offline string) bool {
	const value = " value: "
	at := strings.Index(offline, value)
	if at < 0 || !strings.HasPrefix(server, offline[:at+len(value)]) {
		return false
	}
	server, offline = server[at+len(value):], offline[at+len(value):]
	decoder := json.NewDecoder(strings.NewReader(offline))
	decoder.UseNumber()
	var of any
	if decoder.Decode(&of) != nil {
		return false
	}
	server, ok := strings.CutSuffix(server, offline[decoder.InputOffset():])
	if !ok {
		return false
	}
	switch of := of.(type) {
	case nil:
		return server == `"null"` || goSyntax.MatchString(server) && strings.HasSuffix(server, "(nil)")
	case map[string]any:
		return goSyntax.MatchString(server) && !strings.HasSuffix(server, "(nil)")
	case []any:
		return goSyntax.MatchString(server) && (len(of) == 0 || !strings.HasSuffix(server, "(nil)"))
	case json.Number:
		n, err := strconv.ParseUint(of.String(), 10, 64)
		return err == nil && server == fmt.Sprintf("%#x", n)
	case string:
		t, err := time.Parse(time.RFC3339, of)
		return err == nil && server == t.String()
	}
	return false
}

// wrongType is that something is of the wrong type.
var wrongType = regexp.MustCompile(`^(.*)Invalid value: "(\w*)": (.*) in body must be of type ([\w-]+): "(\w*)"$`)

// sameType reports whether both say that something is of the wrong type, where the server before
// 1.36 says the type, and package schema the format.
func sameType(server, offline string) bool {
	s, o := wrongType.FindStringSubmatch(server), wrongType.FindStringSubmatch(offline)
	if s == nil || o == nil || s[1] != o[1] || s[3] != o[3] || s[2] != s[5] || o[2] != o[5] {
		return false
	}
	switch s[4] {
	case "integer":
		return o[4] == "int32" || o[4] == "int64"
	case "number":
		return o[4] == "float" || o[4] == "double"
	case "string":
		return nameFormat.MatchString(o[4])
	}
	return false
}
