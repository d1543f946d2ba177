package rawjson

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// valid reports whether text is one JSON value, with white space around it.
func valid(text []byte) bool {
	i, err := skipValue(text, skipSpace(text, 0), maxDepth)
	return err == nil && skipSpace(text, i) == len(text)
}

// Skip accepts what encoding/json accepts.
func TestSkip_LikeEncodingJSON(t *testing.T) {
	var cases []string
	for _, value := range []string{
		``, `null`, `true`, `false`, `nul`, `nulls`, `True`, `t`, `f`, `x`, `"`, `""`, `"a`, `"\"`, `"\\"`, `"\u12"`, `"\u12g4"`, `"\u12aF"`, `"\x"`,
		"\"\x1f\"", "\"12345678\x1f\"", "\"\x7f\"", "\"\xff\xfe\"", `"1234567"`, `"12345678"`, `"123456789\n"`, `"ü€🍕"`,
		`0`, `-0`, `00`, `01`, `-`, `1.`, `.1`, `1.5`, `1e`, `1e+`, `1e5`, `1E-05`, `+1`, `1.5e300`, `--1`, `9007199254740993`,
		`{}`, `{ }`, `{"a":1}`, `{"a":1,}`, `{,}`, `{"a"}`, `{"a":}`, `{a:1}`, `{"a":1 "b":2}`, `{"a":1,"a":2}`, `{"a":[}`, `{"a":1]`,
		`[]`, `[ ]`, `[1]`, `[1,]`, `[,1]`, `[1 2]`, `[[[]]]`, `[[[]]`, `[}`, `[{]}`, `[{}]`, `[{"a":[{"b":{}}]},[]]`,
	} {
		cases = append(cases, value, " \n"+value+"\t\r", "["+value+"]", `{"k" : `+value+" }", value+" 1")
	}
	for _, depth := range []int{63, 64, 65, 127, 128, 129, 1000, 10_000} {
		deep := strings.Repeat(`[{"a":`, depth/2) + "1" + strings.Repeat("}]", depth/2)
		cases = append(cases, deep, deep[1:], deep[:len(deep)-1], deep+"]", strings.Replace(deep, "}", "]", 1))
	}
	for _, text := range cases {
		if got, want := valid([]byte(text)), json.Valid([]byte(text)); got != want {
			t.Errorf("%.100q: got %v, encoding/json says %v", text, got, want)
		}
	}
	if deep := strings.Repeat("[", 10_001) + strings.Repeat("]", 10_001); valid([]byte(deep)) {
		t.Error("a value nested 10,001 deep is accepted")
	}
}

// FuzzSkip compares with encoding/json.
func FuzzSkip(f *testing.F) {
	for _, s := range []string{`{"a":[1,-2.5e3,"x\u00e9\n",null,true,{"":{}}]}`, `"12345678\"`, `[[[[]]]]`, `{"a":1,"b"`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if got, want := valid(text), json.Valid(text); got != want {
			t.Errorf("%q: got %v, encoding/json says %v", text, got, want)
		}
	})
}

// FuzzString compares with encoding/json.
func FuzzString(f *testing.F) {
	for _, s := range []string{`"plain and long enough for eight"`, `"\"\\\/\b\f\n\r\t"`, `"\u00e9\ud83c\udf55\ud83c"`, "\"\xff \xc3\xa9\"", `"12345678\`, `"x`, "\"\n\"", `7`, `"1234567"8901234`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		c := NewCursor(text)
		got, ok := c.AppendString([]byte("before "))
		err := c.End()
		var want string
		isString := json.Unmarshal(text, &want) == nil && bytes.ContainsRune(text, '"')
		if (err == nil) != json.Valid(text) || err == nil && ok != isString {
			t.Fatalf("%q: got %q, %v, %v; encoding/json says %q, %v", text, got, ok, err, want, isString)
		}
		if ok && err == nil && string(got) != "before "+want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	})
}

func BenchmarkSkip(b *testing.B) {
	text := []byte(`{"apiVersion":"restaurant.programming-kubernetes.info/v1alpha1","kind":"Pizza","metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{\"apiVersion\":\"restaurant.programming-kubernetes.info/v1alpha1\",\"kind\":\"Pizza\",\"metadata\":{\"annotations\":{},\"name\":\"margherita-0001\",\"namespace\":\"default\"},\"spec\":{\"toppings\":[\"mozzarella\",\"tomato\",\"mozzarella\"]}}\n"},"creationTimestamp":"2026-11-21T03:15:10Z","generation":1,"managedFields":[{"apiVersion":"restaurant.programming-kubernetes.info/v1beta1","fieldsType":"FieldsV1","fieldsV1":{"f:status":{".":{},"f:cost":{}}},"manager":"pizza-operator","operation":"Update","subresource":"status","time":"2026-11-21T03:15:10Z"},{"apiVersion":"restaurant.programming-kubernetes.info/v1alpha1","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:annotations":{".":{},"f:kubectl.kubernetes.io/last-applied-configuration":{}}},"f:spec":{".":{},"f:toppings":{}}},"manager":"kubectl-client-side-apply","operation":"Update","time":"2026-11-21T03:15:10Z"}],"name":"margherita-0001","namespace":"default","resourceVersion":"12345","uid":"a5b60485-5593-4916-99a6-ff50d11f8d7c"},"spec":{"toppings":["mozzarella","tomato","mozzarella"]},"status":{"cost":2.7}}`)
	b.Run("skip", func(b *testing.B) {
		b.SetBytes(int64(len(text)))
		for b.Loop() {
			if !valid(text) {
				b.Fatal("not valid")
			}
		}
	})
	b.Run("encoding/json.Valid", func(b *testing.B) {
		b.SetBytes(int64(len(text)))
		for b.Loop() {
			if !json.Valid(text) {
				b.Fatal("not valid")
			}
		}
	})
}
