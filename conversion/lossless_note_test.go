package conversion_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/validation"

	"github.com/crdkit/crdkit/conversion/lossless"
	"github.com/crdkit/crdkit/internal/merge"
	"github.com/crdkit/crdkit/test/expect"
)

// random returns n characters that take about three quarters of their size when compressed.
func random(n int) string {
	text := make([]byte, n)
	for i, r := 0, rand.New(rand.NewPCG(1, 2)); i < n; i++ {
		text[i] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz+/"[r.IntN(64)]
	}
	return string(text)
}

// currency returns the metadata of a hub that has a hidden text, and the hub.
func currency(t *testing.T, annotations map[string]string, text string) string {
	return menuOf("v2", textOf(t, map[string]any{"name": "m", "annotations": annotations}), textOf(t, map[string]any{"currency": text}))
}

// Each size is stored in the most readable form that the API server accepts.
func TestLossless_FormsOfTheAnnotation(t *testing.T) {
	reg := menuRegistry(t)
	for name, c := range map[string]struct {
		others, hidden string
		readable       bool
	}{
		"many escapes of HTML":      {"", strings.Repeat("<&>\u2028", 22_000/6), true},
		"what most objects have":    {"", "CHF", true},
		"the largest that is plain": {"", random(128<<10 - 60), true},
		"one that is larger":        {"", random(128 << 10), false},
		"two hundred thousand":      {"", random(200_000), false},
		"a million that repeat":     {"", strings.Repeat("once more ", 100_000), false},
		"other annotations":         {random(150_000), strings.Repeat("x", 120_000), false},
	} {
		hub := currency(t, map[string]string{"o": c.others}, c.hidden)
		spoke := convert(t, reg, hub, oldMenu1.GroupVersion())
		annotations := into[oldMenu](t, spoke).Annotations
		if err := validation.ValidateAnnotationsSize(annotations); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got := strings.Contains(annotations[lossless.Annotation], `"lost":[`); got != c.readable {
			t.Errorf("%s: readable is %t: %.200s", name, got, annotations[lossless.Annotation])
		}
		if diff := cmp.Diff(into[any](t, hub), into[any](t, convert(t, reg, spoke, menus))); diff != "" {
			t.Errorf("%s (-want +got):\n%.1000s", name, diff)
		}
		if convert(t, reg, hub, oldMenu1.GroupVersion()) != spoke {
			t.Errorf("%s: converted twice, it differs", name)
		}
	}
}

// Annotations that releases have written stay readable.
func TestLossless_ReadsBothForms(t *testing.T) {
	for _, text := range []string{
		`{"spoke":"v1","hub":"v2","of":"x","lost":[{"path":["spec","currency"],"value":"C\u003c"}]}`,
		`{"spoke":"v1","hub":"v2","of":"x","gzip":"H4sIAAAAAAAC/4uuVipILMlQsopWKi5ITVbSUUouLSpKzUuuVIrVUSpLzClNVbJScrZRqo0FAO49yMQrAAAA"}`,
	} {
		if got, want := convert(t, menuRegistry(t), noted(text), menus), menuOf("v2", `{"name":"m"}`, `{"currency":"C<","size":"Large"}`); !merge.Equal([]byte(got), []byte(want)) {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestLossless_TooLargeForAnnotations(t *testing.T) {
	reg := menuRegistry(t)
	for _, hub := range []string{
		currency(t, nil, random(300_000)),
		currency(t, nil, strings.Repeat("x", 2<<20)),
		currency(t, map[string]string{"o": random(256<<10 - 100)}, "CHF"),
	} {
		_, err := reg.Convert(t.Context(), []byte(hub), oldMenu1.GroupVersion())
		if want := "metadata.annotations[conversion.crdkit.github.io/lost]: Too long: the fields that v1 cannot express take "; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// A small annotation must not take any amount of memory.
func TestLossless_RefusesBombs(t *testing.T) {
	for _, c := range []struct{ value, want string }{
		{`"` + strings.Repeat("x", 100<<20) + `"`, "more than 1572864 bytes"},
		{`["\\\"",` + strings.Repeat("0,", 1<<17) + `0]`, "more than 131072 values"},
		{strings.Repeat("[", 1<<18) + strings.Repeat("]", 1<<18), "more than 131072 values"},
	} {
		spoke := compressed(t, strings.NewReader(`[{"path":["spec","currency"],"value":`+c.value+`}]`))
		_, err := menuRegistry(t).Convert(t.Context(), []byte(spoke), menus)
		if want := "Invalid value: gzip: " + c.want; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %.1000v, want %s", err, want)
		}
	}
}

// compressed returns a spoke with an annotation of compressed differences.
func compressed(t testing.TB, lost io.Reader) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := io.Copy(w, lost); err != nil {
		t.Fatal(err)
	}
	expect.NoError(t, w.Close())
	return noted(fmt.Sprintf(`{"spoke":"v1","hub":"v2","gzip":%q}`, base64.StdEncoding.EncodeToString(b.Bytes())))
}

// FuzzLossless_Compressed feeds arbitrary bytes as a compressed list of differences.
func FuzzLossless_Compressed(f *testing.F) {
	reg := menuRegistry(f)
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write([]byte(`[{"path":["spec","currency"],"value":"CHF"}]`))
	_ = w.Close()
	f.Add(b.Bytes())
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		text := noted(fmt.Sprintf(`{"spoke":"v1","hub":"v2","gzip":%q}`, base64.StdEncoding.EncodeToString(data)))
		hub, err := reg.Convert(t.Context(), []byte(text), menus)
		if err == nil && convert(t, reg, string(hub), oldMenu1.GroupVersion()) == "" {
			t.Errorf("%q", data)
		}
	})
}
