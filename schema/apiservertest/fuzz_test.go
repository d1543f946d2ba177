package apiservertest

import "testing"

func FuzzManifests(f *testing.F) {
	for _, seed := range []string{"", "{}", "---\n---\n", "a: &a [*a]", "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n---\n[]", `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a"}} {"a":1}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		o, err := newOptions([]Option{Manifests(data)})
		for _, u := range o.objects {
			if err == nil && (u.GetKind() == "" || u.GetAPIVersion() == "" || u.GetName() == "") {
				t.Errorf("accepted %v", u.Object)
			}
		}
		o, err = newOptions([]Option{Stored(data)})
		if err == nil && (len(o.stored) != 1 || o.stored[0].GetName() == "") {
			t.Errorf("stored %v", o.stored)
		}
	})
}
