package merge

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/crdkit/crdkit/internal/listmapkeys"
	"github.com/crdkit/crdkit/test/expect"
	"github.com/crdkit/crdkit/test/tier"
)

// host is an element that is known by its host.
type host struct {
	host   string
	others map[string]any
	secret bool
}

func (h host) text(raw bool) map[string]any {
	o := map[string]any{"host": h.host}
	for name, v := range h.others {
		o[name] = v
	}
	if raw && h.secret {
		o["secret"] = "of " + h.host
	}
	return o
}

func hostsText(hosts []host, raw bool) []byte {
	list := []any{}
	for _, h := range hosts {
		list = append(list, h.text(raw))
	}
	text, err := json.Marshal(map[string]any{"hosts": list})
	if err != nil {
		panic(err)
	}
	return text
}

// hostRuns has random functions change random lists, and counts the secrets that belong
// to another host afterwards, and those that are gone though their host is not. The secret
// of a host that was removed may go to a new one if keys do not tell them apart.
func hostRuns(t *testing.T, runs int, converted bool, keys *listmapkeys.Tree, values []any) (mixed, lost, kept int) {
	t.Helper()
	r := rand.New(rand.NewPCG(1, 2))
	value := func() any { return values[r.IntN(len(values))] }
	names := []string{"a", "b", "z"}
	edit := func(h host) host {
		others := maps.Clone(h.others)
		switch name := names[r.IntN(len(names))]; r.IntN(4) {
		case 0:
			delete(others, name)
		default:
			others[name] = value()
		}
		return host{h.host, others, h.secret}
	}
	serial := 0
	draw := func() host {
		serial++
		h := host{fmt.Sprintf("h%02d", r.IntN(50)*100+serial%100), map[string]any{}, r.IntN(2) == 0}
		for range 3 {
			h = edit(h)
		}
		return h
	}
	for range runs {
		serial = r.IntN(100)
		var raw []host
		for range 1 + r.IntN(5) {
			raw = append(raw, draw())
		}
		before := slices.Clone(raw)
		if converted {
			r.Shuffle(len(before), func(i, j int) { before[i], before[j] = before[j], before[i] })
		}
		after := slices.Clone(before)
		for range 1 + r.IntN(3) {
			switch r.IntN(7) {
			case 0:
				slices.SortFunc(after, func(a, b host) int { return cmp.Compare(a.host, b.host) })
			case 1: // set a default on all
				name, v := names[r.IntN(len(names))], value()
				for i, h := range after {
					after[i].others = maps.Clone(h.others)
					after[i].others[name] = v
				}
			case 2:
				h := draw()
				h.secret = false
				after = slices.Insert(after, r.IntN(len(after)+1), h)
			case 3:
				if len(after) > 0 {
					i := r.IntN(len(after))
					after = slices.Delete(after, i, i+1)
				}
			case 4: // replace
				if len(after) > 0 {
					i := r.IntN(len(after))
					after[i] = draw()
					after[i].secret = false
				}
			case 5:
				if len(after) > 0 {
					i := r.IntN(len(after))
					after[i] = edit(after[i])
				}
			case 6:
				r.Shuffle(len(after), func(i, j int) { after[i], after[j] = after[j], after[i] })
			}
		}
		rawText := hostsText(raw, true)
		ops, _, err := Patch(rawText, hostsText(before, false), hostsText(after, false), keys, converted, true)
		expect.NoError(t, err)
		var got struct{ Hosts []map[string]any }
		expect.NoError(t, json.Unmarshal(apply(t, rawText, ops), &got))
		secrets := map[string]bool{}
		for _, h := range raw {
			secrets[h.host] = h.secret
		}
		for _, h := range got.Hosts {
			secret, ok := h["secret"]
			_, there := secrets[h["host"].(string)]
			from, _ := secret.(string)
			stays := slices.ContainsFunc(after, func(h host) bool { return "of "+h.host == from })
			switch {
			case ok && keys == nil && !there && !stays:
			case ok && secret != fmt.Sprint("of ", h["host"]):
				if mixed++; mixed < 4 {
					t.Logf("mixed:\nraw    %s\nbefore %s\nafter  %s\npatch  %s", rawText, hostsText(before, false), hostsText(after, false), ops)
				}
			case ok:
				kept++
			case secrets[h["host"].(string)]:
				lost++
			}
		}
	}
	return mixed, lost, kept
}

// hostValues are what the other members of a host may be.
var hostValues = map[string][]any{
	"no strings":   {0, 1, 7, true, nil, ""},
	"few strings":  {"x", "y", "z"},
	"some strings": {"x", "y", "z", "", 1},
	"many strings": func() (l []any) {
		for i := range 1000 {
			l = append(l, fmt.Sprint("v", i))
		}
		return l
	}(),
}

// A host never gets the secret of another.
// A function may do anything to a list of which one string is never edited: no unknown field
// moves from one host to another.
func TestPatch_SecretsStay(t *testing.T) {
	for name, values := range hostValues {
		for _, converted := range []bool{false, true} {
			mixed, lost, kept := hostRuns(t, tier.Pick(1000, 5000), converted, nil, values)
			t.Logf("%s, converted %v: %d secrets moved, %d are lost, %d stayed", name, converted, mixed, lost, kept)
			if mixed > 0 || kept == 0 || lost > kept/20 {
				t.Errorf("%s, converted %v: %d secrets moved, %d are lost, %d stayed", name, converted, mixed, lost, kept)
			}
		}
	}
}

// With a said key, nothing is lost either.
func TestPatch_SaidKey(t *testing.T) {
	keys := KeysOf("hosts", "host")
	for name, values := range hostValues {
		for _, converted := range []bool{false, true} {
			if mixed, lost, kept := hostRuns(t, tier.Pick(1000, 5000), converted, keys, values); mixed+lost > 0 || kept == 0 {
				t.Errorf("%s, converted %v: %d secrets moved, %d are lost, %d stayed", name, converted, mixed, lost, kept)
			}
		}
	}
}

// Which element is which, where none of the named keys tells.
func TestPatch_ElementsAreToldApart(t *testing.T) {
	for _, c := range []struct{ name, key, raw, before, after, want string }{
		{"sorted, and a default set on all", "",
			`[{"host":"b","secret":"b"},{"host":"a"}]`, `[{"host":"b"},{"host":"a"}]`, `[{"host":"a","tls":true},{"host":"b","tls":true}]`,
			`[{"host":"a","tls":true},{"host":"b","secret":"b","tls":true}]`},
		{"as much in common with two others", "",
			`[{"host":"b","secret":"b","z":"z"},{"a":"x","host":"a","secret":"a"},{"a":"y","host":"c","z":"x"}]`, `[{"a":"x","host":"a"},{"a":"y","host":"c","z":"x"},{"host":"b","z":"z"}]`, `[{"a":"z","host":"a","z":1},{"a":"x","host":"d"},{"a":"z","host":"b","z":1}]`,
			`[{"a":"z","host":"a","z":1},{"a":"x","host":"d"},{"a":"z","host":"b","z":1}]`},
		{"sorted by a nested name", "",
			`[{"ref":{"name":"b"},"x":"of b"},{"ref":{"name":"a"},"x":"of a"}]`, `[{"ref":{"name":"b"}},{"ref":{"name":"a"}}]`,
			`[{"ref":{"name":"a"},"optional":true},{"ref":{"name":"b"},"optional":true}]`,
			`[{"ref":{"name":"a"},"optional":true,"x":"of a"},{"ref":{"name":"b"},"optional":true,"x":"of b"}]`},
		{"metrics of two types, sorted", "",
			`[{"type":"Resource","resource":{"name":"memory","target":{"value":1}},"x":1},{"type":"Resource","resource":{"name":"cpu","target":{"value":1}},"x":2}]`,
			`[{"type":"Resource","resource":{"name":"memory","target":{"value":1}}},{"type":"Resource","resource":{"name":"cpu","target":{"value":1}}}]`,
			`[{"type":"Resource","resource":{"name":"cpu","target":{"value":5}}},{"type":"Resource","resource":{"name":"memory","target":{"value":5}}}]`,
			`[{"type":"Resource","resource":{"name":"cpu","target":{"value":5}},"x":2},{"type":"Resource","resource":{"name":"memory","target":{"value":5}},"x":1}]`},
		{"names put into lower case, and sorted", "",
			`[{"host":"B.example","x":"of b"},{"host":"A.example","x":"of a"}]`, `[{"host":"B.example"},{"host":"A.example"}]`, `[{"host":"a.example"},{"host":"b.example"}]`,
			`[{"host":"a.example"},{"host":"b.example"}]`},
		{"a part of a declared key that has no default set", "containerPort protocol",
			`[{"containerPort":80,"protocol":"","x":1},{"containerPort":80,"protocol":"UDP","x":2}]`, `[{"containerPort":80,"protocol":""},{"containerPort":80,"protocol":"UDP"}]`,
			`[{"containerPort":80,"protocol":"UDP"},{"containerPort":80,"protocol":"TCP"}]`,
			`[{"containerPort":80,"protocol":"UDP","x":2},{"containerPort":80,"protocol":"TCP"}]`},
		{"a default set in a list in an element", "",
			`[{"http":{"paths":[{"backend":{"name":"a"},"x":1}],"x":2}}]`, `[{"http":{"paths":[{"backend":{"name":"a"}}]}}]`, `[{"http":{"paths":[{"backend":{"name":"a"},"pathType":"Prefix"}]}}]`,
			`[{"http":{"paths":[{"backend":{"name":"a"},"pathType":"Prefix","x":1}],"x":2}}]`},
		{"the only one put into lower case", "",
			`[{"host":"A.example","x":1}]`, `[{"host":"A.example"}]`, `[{"host":"a.example"}]`,
			`[{"host":"a.example"}]`},
		{"one put into lower case, beside what stayed", "",
			`[{"host":"A.example","port":80,"x":1}]`, `[{"host":"A.example","port":80}]`, `[{"host":"a.example","port":80}]`,
			`[{"host":"a.example","port":80,"x":1}]`},
		{"declared keys that are alike", "name",
			`[{"name":"ab","x":1},{"name":"b","x":2}]`, `[{"name":"ab"},{"name":"b"}]`, `[{"name":"b"},{"name":"A-B"}]`,
			`[{"name":"b","x":2},{"name":"A-B"}]`},
		{"a declared key in upper case", "name",
			`[{"name":"http_proxy","value":"v","x":1}]`, `[{"name":"http_proxy","value":"v"}]`, `[{"name":"HTTP_PROXY","value":"v"}]`,
			`[{"name":"HTTP_PROXY","value":"v"}]`},
		{"a declared key added", "name",
			`[{"value":"v","x":1}]`, `[{"value":"v"}]`, `[{"name":"a","value":"v"}]`,
			`[{"name":"a","value":"v"}]`},
		{"a list put before others, and one of them edited", "",
			`[[{"n":1,"x":1},{"n":2,"x":2}],[{"n":3,"x":3}]]`, `[[{"n":1},{"n":2}],[{"n":3}]]`, `[[{"n":9}],[{"n":1},{"n":2,"on":true}],[{"n":3}]]`,
			`[[{"n":9}],[{"n":1,"x":1},{"n":2,"on":true,"x":2}],[{"n":3,"x":3}]]`},
		{"two that may both be the one", "",
			`[{"mode":"x","u":1},{"mode":"x","u":2}]`, `[{"mode":"x"},{"mode":"x"}]`, `[{"mode":"x","n":1}]`,
			`[{"mode":"x","n":1}]`},
		{"the only one replaced", "",
			`[{"host":"b","secret":"b"}]`, `[{"host":"b"}]`, `[{"host":"new"}]`,
			`[{"host":"new"}]`},
		{"replaced by one that is like it", "",
			`[{"host":"b","mode":"x","secret":"b"}]`, `[{"host":"b","mode":"x"}]`, `[{"host":"new","mode":"x"}]`,
			`[{"host":"new","mode":"x","secret":"b"}]`},
		{"unless the key is declared", "host",
			`[{"host":"b","mode":"x","secret":"b"}]`, `[{"host":"b","mode":"x"}]`, `[{"host":"new","mode":"x"}]`,
			`[{"host":"new","mode":"x"}]`},
		{"which nobody can tell from an edit", "",
			`[{"host":"b","mode":"x","secret":"b"}]`, `[{"host":"b","mode":"x"}]`, `[{"host":"b","mode":"y"}]`,
			`[{"host":"b","mode":"y","secret":"b"}]`},
		{"names are numbered anew", "",
			`[{"host":"c","slot":"1","secret":"c"},{"host":"b","slot":"2","secret":"b"},{"host":"a","slot":"3"}]`,
			`[{"host":"c","slot":"1"},{"host":"b","slot":"2"},{"host":"a","slot":"3"}]`, `[{"host":"b","slot":"1"},{"host":"a","slot":"2"},{"host":"new","slot":"3"}]`,
			`[{"host":"b","slot":"1"},{"host":"a","slot":"2"},{"host":"new","slot":"3"}]`},
		{"a name that two share is no key, and the namespace tells", "",
			`[{"namespace":"prod","name":"db","token":1},{"namespace":"dev","name":"db","token":2}]`, `[{"namespace":"prod","name":"db"},{"namespace":"dev","name":"db"}]`, `[{"namespace":"dev","name":"db","ready":true},{"namespace":"prod","name":"db","ready":true}]`,
			`[{"namespace":"dev","name":"db","ready":true,"token":2},{"namespace":"prod","name":"db","ready":true,"token":1}]`},
		{"a key of two, neither of which is enough", "namespace name",
			`[{"namespace":"p","name":"a","token":1},{"namespace":"p","name":"b"},{"namespace":"d","name":"a","token":2}]`, `[{"namespace":"p","name":"a"},{"namespace":"p","name":"b"},{"namespace":"d","name":"a"}]`,
			`[{"namespace":"d","name":"a","x":1},{"namespace":"p","name":"a","x":1}]`,
			`[{"namespace":"d","name":"a","token":2,"x":1},{"namespace":"p","name":"a","token":1,"x":1}]`},
		{"but tells apart who is no other", "",
			`[{"port":80,"n":1,"secret":"80"},{"port":81,"n":1}]`, `[{"port":80,"n":1},{"port":81,"n":1}]`, `[{"port":443,"n":1},{"port":443,"n":1}]`,
			`[{"port":443,"n":1},{"port":443,"n":1}]`},
		{"one without a host does not get that of another", "",
			`[{"n":1,"secret":"none"},{"host":"a","n":1,"secret":"a"}]`, `[{"n":1},{"host":"a","n":1}]`, `[{"host":"a","n":2},{"n":2}]`,
			`[{"host":"a","n":2,"secret":"a"},{"n":2}]`},
		{"a string that only one has may be set on another", "",
			`[{"n":1,"u":1},{"n":2,"mode":"x","u":2}]`, `[{"n":1},{"n":2,"mode":"x"}]`, `[{"n":1,"mode":"y"},{"n":2,"mode":"x"}]`,
			`[{"n":1,"mode":"y","u":1},{"n":2,"mode":"x","u":2}]`},
		{"a said key that two share tells the others apart", "host",
			`[{"host":"a","n":1,"u":1},{"host":"a","n":2,"u":2},{"host":"b","n":3,"u":3}]`, `[{"host":"a","n":1},{"host":"a","n":2},{"host":"b","n":3}]`, `[{"host":"b","n":4},{"host":"a","n":5},{"host":"a","n":2}]`,
			`[{"host":"b","n":4,"u":3},{"host":"a","n":5,"u":1},{"host":"a","n":2,"u":2}]`},
		{"a said key that is a number or absent", "slot",
			`[{"slot":1,"u":1},{"u":0},{"slot":2,"u":2}]`, `[{"slot":1},{},{"slot":2}]`, `[{"slot":2,"n":1},{"slot":1,"n":1},{"n":1}]`,
			`[{"slot":2,"n":1,"u":2},{"slot":1,"n":1,"u":1},{"n":1}]`},
		{"a said key goes before a named one", "host",
			`[{"name":"x","host":"a","u":1},{"name":"y","host":"b","u":2}]`, `[{"name":"x","host":"a"},{"name":"y","host":"b"}]`, `[{"name":"x","host":"b"},{"name":"z","host":"a"}]`,
			`[{"name":"x","host":"b","u":2},{"name":"z","host":"a","u":1}]`},
	} {
		t.Run(c.name, func(t *testing.T) {
			keys := KeysOf("spec.hosts", strings.Fields(c.key)...)
			object := func(list string) []byte { return []byte(`{"spec":{"hosts":` + list + `}}`) }
			for _, converted := range []bool{false, true} {
				ops, _, err := Patch(object(c.raw), object(c.before), object(c.after), keys, converted, true)
				expect.NoError(t, err)
				if diff := gocmp.Diff(decode(t, object(c.want)), decode(t, apply(t, object(c.raw), ops))); diff != "" {
					t.Errorf("converted %t: %s (-want +got):\n%s", converted, ops, diff)
				}
			}
		})
	}
}

// A list may have as many strings that could be its key as it likes.
func TestPatch_ManyPossibleKeysEndSoon(t *testing.T) {
	const n = 20_000
	var members []string
	for i := range n {
		members = append(members, fmt.Sprintf(`"s%d":"v"`, i))
	}
	rich := "{" + strings.Join(members, ",") + "}"
	other := strings.ReplaceAll(rich, `"v"`, `"w"`)
	edited := strings.ReplaceAll(rich, `"v"`, `"x"`)
	object := func(elements ...string) []byte {
		return []byte(`{"l":[` + strings.Join(elements, ",") + `]}`)
	}
	empty := slices.Repeat([]string{"{}"}, n)
	numbers := strings.ReplaceAll(strings.Join(members, ","), `"v"`, "1")
	large := func(edited string) string { return `{"a":` + edited + "," + numbers + "}" }
	var small []string // and no more than are compared with each other
	for i := range 4095 {
		small = append(small, fmt.Sprintf(`{"zz":%d}`, i))
	}
	for name, in := range map[string][2][]byte{
		"two rich ones, edited": {object(rich, other), object(edited, other, "{}")},
		"among many empty ones": {object(append([]string{rich, other}, empty...)...), object(append([]string{edited, "1", other}, empty...)...)},
		"many new ones":         {object(rich, other), object(append([]string{edited, "1"}, empty...)...)},
		"one large one is left": {object(append([]string{large("0")}, small...)...), object(large("1"))},
	} {
		start := time.Now()
		if got, _, err := Patch(in[0], in[0], in[1], nil, false, true); err != nil || got == nil {
			t.Errorf("%s: %.100s, %v", name, got, err)
		}
		if took := time.Since(start); took > 2*time.Minute {
			t.Errorf("%s: took %v", name, took)
		} else {
			t.Logf("%s: took %v", name, took)
		}
	}
}

// A key that an element lacks has the default of the schema.
func TestPatch_DefaultOfKey(t *testing.T) {
	keys := listmapkeys.OfSchema(map[string]any{"properties": map[string]any{"ports": map[string]any{
		"x-kubernetes-list-map-keys": []any{"port", "protocol"},
		"items":                      map[string]any{"properties": map[string]any{"protocol": map[string]any{"default": "TCP"}}},
	}}})
	for _, c := range []struct{ name, raw, before, after, want string }{
		{"it is set", `[{"port":80,"x":1},{"port":80,"protocol":"UDP","x":2}]`, `[{"port":80},{"port":80,"protocol":"UDP"}]`,
			`[{"port":80,"protocol":"UDP"},{"port":80,"protocol":"TCP"}]`,
			`[{"port":80,"protocol":"UDP","x":2},{"port":80,"protocol":"TCP","x":1}]`},
		{"it is left out", `[{"port":80,"protocol":"TCP","x":1}]`, `[{"port":80,"protocol":"TCP"}]`, `[{"port":80,"n":1}]`, `[{"port":80,"n":1,"x":1}]`},
		{"another is set", `[{"port":80,"x":1}]`, `[{"port":80}]`, `[{"port":80,"protocol":"UDP"}]`, `[{"port":80,"protocol":"UDP"}]`},
	} {
		object := func(list string) []byte { return []byte(`{"ports":` + list + `}`) }
		_, merged, err := Patch(object(c.raw), object(c.before), object(c.after), keys, false, true)
		expect.NoError(t, err)
		if diff := gocmp.Diff(decode(t, object(c.want)), decode(t, merged)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}
