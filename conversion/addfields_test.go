package conversion_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"

	"github.com/crdkit/crdkit/conversion"
	"github.com/crdkit/crdkit/test/expect"
)

func fieldsRegistry(t testing.TB, moves ...conversion.Move) *conversion.Registry {
	t.Helper()
	reg := conversion.NewRegistry(runtime.NewScheme())
	expect.NoError(t, conversion.AddFields(reg, thingVersion("v1").WithKind("Thing"), "v2", moves...))
	return reg
}

func thingText(version, rest string) string {
	return `{"apiVersion":"example.com/` + version + `","kind":"Thing","metadata":{"name": "x"}` + rest + `}`
}

func TestAddFields_MovesBothWays(t *testing.T) {
	rename := conversion.Rename("spec.image", "spec.container.image")
	split := conversion.Split("spec.hostPort", ":", conversion.Part{Path: "spec.host"}, conversion.Part{Path: "spec.port", Integer: true})
	for name, c := range map[string]struct {
		moves      []conversion.Move
		spoke, hub string
	}{
		"rename":               {[]conversion.Move{rename}, `,"spec":{"a":1.0,"image":{"x" : [1]}}`, `,"spec":{"a":1.0,"container":{"image":{"x" : [1]}}}`},
		"rename, the only one": {[]conversion.Move{rename}, `,"spec":{"image":null}`, `,"spec":{"container":{"image":null}}`},
		"rename, a neighbour":  {[]conversion.Move{rename}, `,"spec":{"container":{"b":2},"image":"i"}`, `,"spec":{"container":{"b":2,"image":"i"}}`},
		"rename, absent":       {[]conversion.Move{rename}, `,"spec":{ "a" : {} }`, `,"spec":{"a":{}}`},
		"no spec":              {[]conversion.Move{rename, split}, ``, ``},
		"a null spec":          {[]conversion.Move{rename, split}, `,"spec":null`, `,"spec":null`},
		"fields change places": {[]conversion.Move{conversion.Rename("spec.a", "spec.b"), conversion.Rename("spec.b", "spec.a")}, `,"spec":{"a":1,"b":2}`, `,"spec":{"b":1,"a":2}`},
		"split":                {[]conversion.Move{split}, `,"spec":{"hostPort":"localhost:8080"}`, `,"spec":{"host":"localhost","port":8080}`},
		"split, IPv6":          {[]conversion.Move{split}, `,"spec":{"hostPort":"::1:-80"}`, `,"spec":{"host":"::1","port":-80}`},
		"split, empty host":    {[]conversion.Move{split}, `,"spec":{"hostPort":":0"}`, `,"spec":{"host":"","port":0}`},
		"split, brackets":      {[]conversion.Move{split}, `,"spec":{"hostPort":"[2001:db8::1]:80"}`, `,"spec":{"host":"[2001:db8::1]","port":80}`},
		"split, null":          {[]conversion.Move{split}, `,"spec":{"hostPort":null}`, `,"spec":{"host":null,"port":null}`},
	} {
		reg := fieldsRegistry(t, c.moves...)
		for _, way := range []struct{ from, want, to string }{{thingText("v1", c.spoke), thingText("v2", c.hub), "v2"}, {thingText("v2", c.hub), thingText("v1", c.spoke), "v1"}} {
			got, err := reg.Convert(t.Context(), []byte(way.from), thingVersion(way.to))
			if err != nil {
				t.Errorf("%s: %v", name, err)
			} else if diff := cmp.Diff(value(t, way.want), value(t, string(got))); diff != "" {
				t.Errorf("%s to %s (-want +got):\n%s", name, way.to, diff)
			}
		}
	}
}

// value decodes JSON, with numbers as text.
func value(t interface{ Fatal(...any) }, text string) any {
	d := json.NewDecoder(bytes.NewReader([]byte(text)))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatal(err, text)
	}
	return v
}

// A value that would not come back is an error that names the field.
func TestAddFields_ValueNotReversible(t *testing.T) {
	split := conversion.Split("spec.hostPort", ":", conversion.Part{Path: "spec.host"}, conversion.Part{Path: "spec.port", Integer: true})
	words := conversion.Split("spec.full", " ", conversion.Part{Path: "spec.first"}, conversion.Part{Path: "spec.last"})
	for _, c := range []struct {
		move           conversion.Move
		from, to, want string
	}{
		{split, thingText("v1", `,"spec":{"hostPort":"localhost"}`), "v2", `spec.hostPort: Invalid value: "localhost": must be <host>:<port, an integer>`},
		{split, thingText("v1", `,"spec":{"hostPort":"localhost:080"}`), "v2", `spec.hostPort: Invalid value: "localhost:080"`},
		{split, thingText("v1", `,"spec":{"hostPort":"2001:db8::1"}`), "v2", `spec.hostPort: Invalid value: "2001:db8::1": must be <host>:<port, an integer>, with brackets around an IPv6 address`},
		{split, thingText("v2", `,"spec":{"host":"2001:db8::1","port":80}`), "v1", `spec.host: Invalid value: "2001:db8::1": the joined value 2001:db8::1:80 would be split at another place`},
		{split, thingText("v2", `,"spec":{"host":null,"port":1}`), "v1", `spec.host: Invalid value: null: must be <host>`},
		{split, thingText("v2", `,"spec":{"host":null}`), "v1", `spec.port: Required value: needed with spec.host`},
		{split, thingText("v1", `,"spec":{"hostPort":8080}`), "v2", `spec.hostPort: Invalid value: 8080`},
		{split, thingText("v2", `,"spec":{"host":"a"}`), "v1", `spec.port: Required value: needed with spec.host`},
		{split, thingText("v2", `,"spec":{"port":1}`), "v1", `spec.host: Required value: needed with spec.port`},
		{split, thingText("v2", `,"spec":{"host":"a","port":1.5}`), "v1", `spec.port: Invalid value: 1.5: must be <port, an integer>`},
		{split, thingText("v2", `,"spec":{"host":["a"],"port":1}`), "v1", `spec.host: Invalid value: ["a"]: must be <host>`},
		{words, thingText("v2", `,"spec":{"first":"Jean Paul","last":"S"}`), "v1", `spec.first: Invalid value: "Jean Paul": the joined value Jean Paul S would be split at another place`},
		{conversion.Rename("spec.a", "spec.b"), thingText("v1", `,"spec":{"a":1,"b":2}`), "v2", `spec.b: the destination of a move is already set`},
		{conversion.Rename("spec.a", "spec.b.c"), thingText("v1", `,"spec":{"a":1,"b":2}`), "v2", `spec.b: the destination of a move is already set`},
		{conversion.Rename("spec.a", "spec.b"), thingText("v1", `,"spec":{"b":2}`), "v2", `spec.b: the destination of a move is already set`},
	} {
		_, err := fieldsRegistry(t, c.move).Convert(t.Context(), []byte(c.from), thingVersion(c.to))
		if err == nil || !strings.HasPrefix(err.Error(), "cannot convert Thing x from ") || !strings.Contains(err.Error(), ": "+c.want) {
			t.Errorf("%s: got %v, want %s", c.from, err, c.want)
		}
	}
}

// Moves that cannot be are refused.
func TestAddFields_ImpossibleMoves(t *testing.T) {
	err := conversion.AddFields(conversion.NewRegistry(runtime.NewScheme()), thingVersion("v1").WithKind("Thing"), "v2",
		conversion.Rename("spec.a", "spec.b"),
		conversion.Rename("spec.a.c", "spec.b"),
		conversion.Rename("metadata.name", ""),
		conversion.Split("spec.hp", "", conversion.Part{Path: "spec.h"}, conversion.Part{Path: "spec.p"}),
		conversion.Move{},
	)
	want := []string{
		"Split spec.hp: the separator is empty",
		"empty Move, expected the result of Rename or Split",
		`path "metadata.name": metadata, apiVersion and kind cannot be moved`,
		"paths spec.a and spec.a.c of the spoke overlap",
		`path "", expected names joined by dots`,
		"paths spec.b and spec.b of the hub overlap",
	}
	for i := range want {
		want[i] = "conversion: example.com/v1, Kind=Thing: " + want[i]
	}
	if err == nil {
		t.Fatal("they were accepted")
	}
	if diff := cmp.Diff(want, strings.Split(err.Error(), "\n")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := conversion.AddFields(conversion.NewRegistry(runtime.NewScheme()), schema.GroupVersionKind{Kind: "Thing"}, "v2"); err == nil || !strings.Contains(err.Error(), "has no moves") {
		t.Errorf("got %v", err)
	}
}

// Moves mix with typed functions.
func TestAddFields_WithTypedFunctions(t *testing.T) {
	reg := conversion.NewRegistry(thingScheme())
	expect.NoError(t, errors.Join(
		conversion.AddSpoke(reg, note[int8, int16](">2"), note[int16, int8](">1")),
		conversion.AddSpoke(reg, note[int32, int16](">2"), note[int16, int32](">3")),
		conversion.AddFields(reg, thingVersion("v0").WithKind("Thing"), "v2", conversion.Rename("old", "value")),
	))
	for _, c := range []struct{ from, to, want string }{
		{thingText("v0", `,"old":"x"`), "v1", thingText("v1", `,"value":"x>1"`)},
		{thingText("v1", `,"value":"x"`), "v0", thingText("v0", `,"old":"x>2"`)},
	} {
		if diff := cmp.Diff(c.want, convert(t, reg, c.from, thingVersion(c.to))); diff != "" {
			t.Errorf("to %s (-want +got):\n%s", c.to, diff)
		}
	}
}

// exactMoves are moves that lose nothing, on one object.
func exactMoves() []conversion.Move {
	return []conversion.Move{
		conversion.Rename("a", "x.y.a"),
		conversion.Rename("o.b", "b"),
		conversion.Split("hp", ":", conversion.Part{Path: "host"}, conversion.Part{Path: "x.port", Integer: true}),
		conversion.Split("pair", "/", conversion.Part{Path: "left"}, conversion.Part{Path: "right"}),
	}
}

// member is a member that an object may have: how often of ten times, and its value.
type member struct {
	name   string
	often  int
	values *rapid.Generator[string]
}

func oneOf(values ...string) *rapid.Generator[string] { return rapid.SampledFrom(values) }

// objectOf returns objects with some of the members, and at least one.
func objectOf(members ...member) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		var texts []string
		for _, m := range members {
			if rapid.IntRange(0, 9).Draw(t, m.name) < m.often {
				texts = append(texts, fmt.Sprintf("%q:%s", m.name, m.values.Draw(t, "value")))
			}
		}
		if texts == nil {
			return `{"only":1}`
		}
		return "{" + strings.Join(texts, ",") + "}"
	})
}

// Each object that converts to the other version comes back as it was, except for empty
// objects. There are none here.
func TestAddFields_RoundTrip(t *testing.T) {
	any := oneOf(`1`, `1.0`, `9007199254740993`, `null`, `true`, `""`, `"x"`, `[]`, `{"deep":[{"a":1}]}`)
	rare := member{"unknown", 3, any}
	for version, objects := range map[string]*rapid.Generator[string]{
		"v1": objectOf(
			member{"a", 6, any},
			member{"o", 6, rapid.OneOf(any, objectOf(member{"b", 7, any}, rare))},
			member{"hp", 6, oneOf(`"h:1"`, `"::1:-2"`, `"::1:2"`, `"[::1]:2"`, `":0"`, `"h:01"`, `"h"`, `null`)},
			member{"pair", 6, oneOf(`"l/r"`, `"/"`, `"a/b/c"`)},
			rare, member{"b", 1, any}, member{"x", 1, any}),
		"v2": objectOf(
			member{"x", 6, objectOf(member{"y", 6, rapid.OneOf(any, objectOf(member{"a", 7, any}, rare))}, rare)},
			member{"b", 6, any},
			member{"left", 5, oneOf(`"l"`, `""`, `null`)}, member{"right", 5, oneOf(`"r"`, `"r/s"`, `null`)},
			rare, member{"a", 1, any}),
	} {
		other := map[string]string{"v1": "v2", "v2": "v1"}[version]
		t.Run("from "+version, func(t *testing.T) {
			reg := fieldsRegistry(t, exactMoves()...)
			tried, converted := 0, 0
			rapid.Check(t, func(t *rapid.T) {
				body := objects.Draw(t, "object")
				from := thingText(version, ","+body[1:len(body)-1])
				tried++
				to, err := reg.Convert(t.Context(), []byte(from), thingVersion(other))
				if err != nil {
					return // refused, and nothing lost
				}
				back, err := reg.Convert(t.Context(), to, thingVersion(version))
				if err != nil {
					t.Fatalf("%s cannot be brought back: %v", to, err)
				}
				converted++
				if diff := cmp.Diff(value(t, from), value(t, string(back))); diff != "" {
					t.Fatalf("by way of %s (-want +got):\n%s", to, diff)
				}
			})
			if converted*10 < tried {
				t.Errorf("only %d of %d objects were converted at all", converted, tried)
			}
		})
	}
}

// FuzzFields checks that no object makes the moves panic, and that what converts is
// JSON.
func FuzzFields(f *testing.F) {
	for _, rest := range []string{`,"a":1,"o":{"b":2},"hp":"h:1"`, `,"pair":"l/r"`, `,"x":{"y":null}`, `,"a":1,"a":{"b":[}`} {
		f.Add([]byte(thingText("v1", rest)), true)
		f.Add([]byte(thingText("v2", rest)), false)
	}
	reg := fieldsRegistry(f, exactMoves()...)
	f.Fuzz(func(t *testing.T, object []byte, toHub bool) {
		to := "v1"
		if toHub {
			to = "v2"
		}
		if out, err := reg.Convert(t.Context(), object, thingVersion(to)); err == nil && !json.Valid(out) {
			t.Errorf("%q became %q", object, out)
		}
	})
}

// A move may nest a value deeper than the API server reads. The answer is then a failure.
func TestRename_DeepNesting(t *testing.T) {
	h := conversion.NewHandler(fieldsRegistry(t, conversion.Rename("spec.a", "spec.b.c.d.e")))
	success := map[bool]int{}
	for levels := 9_985; levels <= 9_995; levels++ {
		thing := thingText("v1", `,"spec":{"a":`+strings.Repeat("[", levels)+strings.Repeat("]", levels)+`}`)
		w := post(t.Context(), h, `{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","request":{"uid":"u","desiredAPIVersion":"`+
			thingVersion("v2").String()+`","objects":[`+thing+`]}}`)
		if !json.Valid(w.Body.Bytes()) {
			t.Errorf("%d levels: the API server cannot read the answer", levels)
		}
		success[strings.Contains(w.Body.String(), `"Success"`)]++
	}
	if success[true] == 0 || success[false] == 0 {
		t.Errorf("the limit is elsewhere: %v", success)
	}
}
