package rawjson_test

import (
	"testing"

	"github.com/crdkit/crdkit/internal/rawjson"
)

// A guess is right, or the cursor stays.
func TestGuess(t *testing.T) {
	for text, want := range map[string]string{
		`{"a":1,"b":2}`:   "ab",
		`{"a":1,"c":3}`:   "a",
		`{"b":1}`:         "",
		`{"a":1}`:         "a",
		`{}`:              "",
		`{"a":1 ,"b":2}`:  "a",
		`{"a":1, "b":2}`:  "a",
		`{"a": 1}`:        "",
		`{"a" :1}`:        "",
		`{,"a":1}`:        "",
		`{"a":1"b":2}`:    "a",
		`{"a":`:           "",
		`{"a`:             "",
		`{`:               "",
		`{"a":1,"b":`:     "a",
		`{"\u0061":1}`:    "",
		`[{"a":1}]`:       "",
		`{"a":1,,"b":2}`:  "a",
		`{"a":1,"ab":2}`:  "a",
		`{"a":{},"b":[]}`: "ab",
	} {
		c, got := rawjson.NewCursor([]byte(text)), ""
		c.Enter('{')
		for _, name := range []string{"a", "b"} {
			before := c.Offset()
			if !c.Guess([]byte(`"` + name + `":`)) {
				if c.Offset() != before {
					t.Errorf("%s: after a wrong guess the cursor is at %q", text, c.Rest())
				}
				break
			}
			got += name
			value := c.Value()
			if member := `"` + name + `":` + string(value); string(c.Member()) != member {
				t.Errorf("%s: got member %s, want %s", text, c.Member(), member)
			}
		}
		if got != want {
			t.Errorf("%s: guessed %q, want %q", text, got, want)
		}
	}
}

func TestNext_AfterWrongGuess(t *testing.T) {
	c := rawjson.NewCursor([]byte(`{"a":1, "b":2,"c":3}`))
	c.Enter('{')
	var names string
	for {
		if c.Guess([]byte(`"a":`)) {
			names += "A"
		} else if c.Next('{') {
			names += string(c.Name())
		} else {
			break
		}
		c.Value()
	}
	if err := c.End(); err != nil || names != "Abc" {
		t.Errorf("got %q, %v", names, err)
	}
}
