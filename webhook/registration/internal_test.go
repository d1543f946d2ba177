package registration

import (
	"bytes"
	"encoding/json"
	"encoding/pem"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/cert"
)

func newCert(t testing.TB, host string) []byte {
	t.Helper()
	chain, _, err := cert.GenerateSelfSignedCertKey(host, []net.IP{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, ca := pem.Decode(chain)
	return ca
}

func TestABundleCarriesCertificatesWhateverElseIsInIt(t *testing.T) {
	a, b := newCert(t, "a"), newCert(t, "b")
	garbage := []byte("# somebody's\n")
	for name, c := range map[string]struct {
		bundle, pem []byte
		want        bool
	}{
		"the same":            {a, a, true},
		"another":             {b, a, false},
		"more":                {slices.Concat(b, garbage, a), a, true},
		"fewer":               {a, slices.Concat(a, b), false},
		"another order":       {slices.Concat(b, a), slices.Concat(a, b), true},
		"one twice":           {slices.Concat(a, a), slices.Concat(a, b), false},
		"none":                {nil, a, false},
		"garbage":             {garbage, a, false},
		"spoilt":              {bytes.Replace(a, []byte("\n"), []byte("\nX: y\n\n"), 1), a, false}, // PEM headers: no CertPool takes it
		"of another PEM type": {bytes.ReplaceAll(a, []byte("CERTIFICATE"), []byte("PUBLIC KEY")), a, false},
	} {
		certs, err := certificates(c.pem)
		if err != nil {
			t.Fatal(err)
		}
		if got := carries(c.bundle, certs); got != c.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}

// FuzzCarries has anybody write a bundle. Whatever it is, it carries what it is made of.
func FuzzCarries(f *testing.F) {
	a, b := newCert(f, "a"), newCert(f, "b")
	f.Add([]byte{}, []byte{})
	f.Add(b, []byte("garbage"))
	f.Add([]byte("-----BEGIN CERTIFICATE-----\n"), []byte("\n-----END CERTIFICATE-----\n"))
	certs, err := certificates(a)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, before, after []byte) {
		bundle := slices.Concat(before, []byte("\n"), a, after)
		if found, err := certificates(bundle); err == nil {
			if !carries(bundle, found) {
				t.Error("a bundle does not carry its own certificates")
			}
			if slices.Contains(found, certs[0]) != carries(bundle, certs) {
				t.Error("it is not carried, and is there")
			}
		}
		if foreign := slices.Concat(before, []byte("\n"), after); carries(foreign, certs) && !bytes.Contains(foreign, []byte("CERTIFICATE")) {
			t.Error("something carries what is not in it")
		}
	})
}

func TestTheLaterClaimHolds(t *testing.T) {
	early, late, same := claim{1, "b"}, claim{2, "a"}, claim{2, "b"}
	for name, c := range map[string]struct {
		a, b claim
		want bool
	}{
		"later":              {late, early, true},
		"earlier":            {early, late, false},
		"of one time":        {same, late, true},
		"the same":           {late, late, false},
		"against none":       {early, claim{}, true},
		"none against a one": {claim{}, early, false},
	} {
		if got := c.a.beats(c.b); got != c.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}

// FuzzClaim reads what anybody may have written into the annotation.
func FuzzClaim(f *testing.F) {
	for _, text := range []string{"", "x", claim{1700000000123456789, "abc"}.String(), "2026-11-21T18:00:00Z", "9999-11-21T18:00:00Z x", "2026-11-21T18:00:00Z  "} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		now := time.Unix(1700000000, 0)
		c := parseClaim(text, now)
		if c == (claim{}) {
			return
		}
		if c.time > now.Add(maxAhead).UnixNano() {
			t.Errorf("%q is a claim of the future: %s", text, c)
		}
		if later := (claim{1, "x"}).after(c); !later.beats(c) || parseClaim(later.String(), now.Add(time.Second)) != later {
			t.Errorf("%q: %s is not after it, or cannot be read", text, later)
		}
		if diff := cmp.Diff(c.String(), parseClaim(c.String(), now).String()); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	})
}

func TestWhatAManagerHasAppliedIsTakenOut(t *testing.T) {
	u := &unstructured.Unstructured{}
	if err := json.Unmarshal([]byte(`{"apiVersion":"admissionregistration.k8s.io/v1","kind":"MutatingWebhookConfiguration",
		"metadata":{"name":"p","uid":"u","annotations":{"ours":"1","theirs":"2"},"managedFields":[
			{"manager":"q","operation":"Apply","fieldsV1":{"f:webhooks":{"k:{\"name\":\"theirs\"}":{".":{}}}}},
			{"manager":"p","operation":"Update","fieldsV1":{"f:webhooks":{"k:{\"name\":\"updated\"}":{".":{}}}}},
			{"manager":"p","operation":"Apply","fieldsV1":{"f:metadata":{"f:annotations":{"f:ours":{}}},"f:webhooks":{
				"k:{\"name\":\"ours\"}":{".":{},"f:name":{},"f:clientConfig":{"f:caBundle":{},"f:gone":{}},"f:objectSelector":{},"f:rules":{}},
				"k:{\"name\":\"gone\"}":{".":{},"f:name":{}}}}}]},
		"webhooks":[{"name":"theirs"},{"name":"ours","clientConfig":{"caBundle":"x","url":"theirs"},"objectSelector":{},"rules":[{"scope":"*"}],"matchPolicy":"theirs"}]}`), &u.Object); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
		"metadata": map[string]any{"name": "p", "annotations": map[string]any{"ours": "1"}},
		"webhooks": []any{map[string]any{
			"name": "ours", "clientConfig": map[string]any{"caBundle": "x"},
			"objectSelector": map[string]any{}, "rules": []any{map[string]any{"scope": "*"}},
		}},
	}
	if diff := cmp.Diff(want, owned(u, "p").Object); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := owned(u, "r"); got != nil {
		t.Errorf("who has applied nothing owns %v", got)
	}
}

// FuzzOwned reads the managed fields of an object, which other managers write. What is taken
// out is a part of the object, and taking it out again changes nothing.
func FuzzOwned(f *testing.F) {
	f.Add([]byte(`{"f:webhooks":{"k:{\"name\":\"a\"}":{}}}`))
	f.Add([]byte(`{"f:webhooks":{"k:{":{},".":{}},"f:metadata":{}}`))
	f.Add([]byte(`{"f:webhooks":[],"f:kind":{"f:x":{}}}`))
	f.Fuzz(func(t *testing.T, fields []byte) {
		if !json.Valid(fields) {
			return // the API server keeps no such
		}
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration", "webhooks": []any{
			map[string]any{"name": "a", "clientConfig": map[string]any{"url": "u"}},
			map[string]any{"name": "b", "rules": []any{"x"}},
		}}}
		u.SetName("p")
		managed := []metav1.ManagedFieldsEntry{{Manager: "p", Operation: metav1.ManagedFieldsOperationApply, FieldsV1: metav1.NewFieldsV1(string(fields))}}
		u.SetManagedFields(managed)
		part := owned(u, "p")
		if part == nil {
			return
		}
		u.SetManagedFields(nil)
		part.SetManagedFields(nil)
		if at := difference(part.Object, u.Object, ""); at != "" {
			t.Errorf("%s makes another %s", fields, at)
		}
		part.SetManagedFields(managed)
		again := owned(part, "p")
		part.SetManagedFields(nil)
		if again != nil {
			again.SetManagedFields(nil)
			if diff := cmp.Diff(part.Object, again.Object); diff != "" {
				t.Errorf("%s (-once +again):\n%s", fields, diff)
			}
		}
	})
}

func TestADifferenceIsFoundWhereItIs(t *testing.T) {
	want := map[string]any{"webhooks": []any{
		map[string]any{
			"name":              "a",
			"timeoutSeconds":    int64(10),
			"clientConfig":      map[string]any{"url": "https://a"},
			"namespaceSelector": map[string]any{},
			"rules":             []any{map[string]any{"operations": []any{"CREATE"}}},
		},
	}}
	const good = `{"name":"a","timeoutSeconds":10,"clientConfig":{"url":"https://a"},"namespaceSelector":{},"rules":[{"operations":["CREATE"]}]}`
	for name, c := range map[string]struct{ old, new, want string }{
		"none":                          {"", "", ""},
		"more of others":                {`"timeoutSeconds"`, `"other":1,"timeoutSeconds"`, ""},
		"a bundle of others":            {`{"url"`, `{"caBundle":"x","url"`, ""},
		"another value":                 {"10", "11", ".webhooks[a].timeoutSeconds"},
		"another name":                  {`"name":"a"`, `"name":"b"`, ".webhooks[a]"},
		"no name":                       {`"name":"a",`, ``, ".webhooks[a]"},
		"a service too":                 {`{"url"`, `{"service":{},"url"`, ".webhooks[a].clientConfig.service"},
		"no client config":              {`{"url":"https://a"}`, `null`, ".webhooks[a].clientConfig"},
		"more in a selector":            {`"namespaceSelector":{}`, `"namespaceSelector":{"matchLabels":{"a":"b"}}`, ".webhooks[a].namespaceSelector"},
		"more rules":                    {`"rules":[`, `"rules":[{},`, ".webhooks[a].rules"},
		"more in a rule":                {`{"operations"`, `{"x":1,"operations"`, ".webhooks[a].rules"},
		"something else than an object": {good, `[]`, ".webhooks[a]"},
	} {
		var got any
		if err := json.Unmarshal([]byte(`{"webhooks":[`+strings.Replace(good, c.old, c.new, 1)+`]}`), &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, difference(want, got, "")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if got := difference(want, map[string]any{"webhooks": nil}, ""); got != ".webhooks" {
		t.Errorf("without webhooks, the difference is at %q", got)
	}
}
