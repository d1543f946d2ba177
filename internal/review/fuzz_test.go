package review_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/crdkit/crdkit/internal/review"
)

// said is what a review says.
type said struct {
	APIVersion, Kind, UID string
	Request               string   // its text
	Desired               string   // the text of a member
	Objects               []string // the texts of the elements of another
}

// FuzzReadersAgree checks that a review which is answered, and which encoding/json can
// read, says the same to both. Names are those of encoding/json's maps, which know upper
// from lower case as the API server does; of members that are there twice, the last one
// counts there.
func FuzzReadersAgree(f *testing.F) {
	for _, body := range []string{
		question,
		` {"request" : {"objects":[ 1 , {"a":[]} ],"desired":"v1","uid":"u"} , "apiVersion":"test.k8s.io/v1beta1","kind":"TestReview"} `,
		`{"kind":"TestReview","apiVersion":"test.k8s.io/v1","request":{"uid":"u","desired":null,"objects":[{},"x",1.0],"more":{}},"more":[]}`,
		`{"\u006bind":"Test\u0052eview","apiVersion":"test.k8s.io\/v1","request":{"u\u0069d":"\u00fc\ud83c\udf55","objects":null}}`,
		`{"kind":"","kind":"TestReview","apiVersion":"test.k8s.io/v1","request":null,"request":{"uid":"","uid":"u","UID":"x"}}`,
		`{"Kind":"x","kind":"TestReview","apiVersion":"test.k8s.io/v1","request":{"uid":"\ud800","objects":[],"objects":null}}`,
		`{"kind":"TestReview","apiVersion":"test.k8s.io/v1","request":{"uid":"u","desired":1,"objects":[1]},"request":{"uid":"v"}}`,
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if !utf8.Valid(body) {
			return // encoding/json replaces what is wrong; here it passes
		}
		agree(t, body)
	})
}

// TestReaders_MembersInEveryOrder is for what a fuzzer hardly comes upon:
// members that are there several times, in any order.
func TestReaders_MembersInEveryOrder(t *testing.T) {
	both := 0
	for members := range sequences(3, `"uid":"u"`, `"uid":"v"`, `"uid":""`, `"uid":null`, `"uid":7`, `"desired":"v1"`, `"desired":null`,
		`"objects":[1]`, `"objects":[2,3]`, `"objects":[]`, `"objects":null`, `"x":{"uid":"z"}`) {
		both += agree(t, fmt.Appendf(nil, `{"kind":"TestReview","apiVersion":"test.k8s.io/v1","request":{%s}}`, members))
	}
	for members := range sequences(4, `"kind":"TestReview"`, `"kind":""`, `"kind":3`, `"apiVersion":"test.k8s.io/v1"`, `"apiVersion":"test.k8s.io/v1beta1"`,
		`"apiVersion":null`, `"request":{"uid":"u"}`, `"request":{"uid":"v","objects":[1]}`, `"request":null`) {
		both += agree(t, fmt.Appendf(nil, `{%s}`, members))
	}
	if both < 900 {
		t.Errorf("only %d reviews were read by both", both)
	}
}

// sequences yields all sequences of up to n members, with commas.
func sequences(n int, members ...string) iter.Seq[string] {
	return func(yield func(string) bool) {
		all := []string{""}
		for begin := 0; n > 0; n-- {
			end := len(all)
			for _, sequence := range all[begin:end] {
				for _, member := range members {
					all = append(all, strings.TrimPrefix(sequence+","+member, ","))
				}
			}
			begin = end
		}
		for _, sequence := range all {
			if !yield(sequence) {
				return
			}
		}
	}
}

// agree compares what the readers make of a body, and returns 1 if both could read it.
func agree(t *testing.T, body []byte) int {
	t.Helper()
	got, ok := answered(body)
	if !ok {
		return 0
	}
	want, ok := decoded(body)
	if !ok {
		return 0
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%q (-encoding/json +review):\n%s", body, diff)
	}
	return 1
}

// answered returns what the handler reads of a review; ok is false if it refuses it.
func answered(body []byte) (got said, ok bool) {
	p := reading(func(_ context.Context, req *review.Request, m members) ([]byte, error) {
		got = said{req.APIVersion, "TestReview", string(req.UID), string(req.Raw), m.desired, m.objects}
		return []byte("{}"), nil
	})
	w := post(p.HandlerIn(1<<30), string(body))
	return got, w.Code == 200
}

// decoded returns what encoding/json reads of a review; ok is false if it cannot.
func decoded(body []byte) (want said, ok bool) {
	var asked, request map[string]json.RawMessage
	if json.Unmarshal(body, &asked) != nil || json.Unmarshal(asked["request"], &request) != nil {
		return said{}, false
	}
	want.Request, want.Desired = string(asked["request"]), string(request["desired"])
	var elements []json.RawMessage
	for _, member := range []struct {
		text json.RawMessage
		into any
	}{
		{asked["apiVersion"], &want.APIVersion},
		{asked["kind"], &want.Kind},
		{request["uid"], &want.UID},
	} {
		if json.Unmarshal(member.text, member.into) != nil {
			return said{}, false
		}
	}
	if text, ok := request["objects"]; ok && json.Unmarshal(text, &elements) != nil {
		return said{}, false
	}
	for _, element := range elements {
		want.Objects = append(want.Objects, string(element))
	}
	return want, true
}
