package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/crdkit/crdkit/test/expect"
)

const demo = `The control plane is ready after 2.9 s.

▸ 1/2 v1 reviews: a <topping> is refused
$ kubectl create -f - <<EOF
EOF
  denied
✓ 0.1 s

▸ 2/2 v1 reviews: unseen
$ kubectl get nothing
✓ 0.1 s

demo: 2 steps, 2 passed, 0 failed
`

func TestRun_ShowsChosenSteps(t *testing.T) {
	var out bytes.Buffer
	expect.NoError(t, run(strings.NewReader(demo), &out, []string{"v1 reviews: a <topping> is refused"}))
	for _, want := range []string{"▸ a &lt;topping&gt; is refused", "$ kubectl create -f - &lt;&lt;EOF", "  denied", "2 passed"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in:\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "nothing") {
		t.Errorf("a step that is not chosen is shown:\n%s", out.String())
	}
	wellFormed(t, &out)
}

func TestRun_RefusesOtherDemos(t *testing.T) {
	for name, text := range map[string]string{
		"missing": "▸ 1/1 v1 reviews: another\n✓ 0.1 s\n",
		"failed":  "▸ 1/1 v1 reviews: x\n✗ it failed\n",
	} {
		if err := run(strings.NewReader(text), io.Discard, []string{"v1 reviews: x"}); err == nil || !strings.Contains(err.Error(), `"v1 reviews: x"`) {
			t.Errorf("%s: got %v, want an error that names the step", name, err)
		}
	}
}

func TestWrap_KeepsAllText(t *testing.T) {
	long := strings.Repeat("ä", 2*columns)
	var text string
	for _, line := range wrap(long) {
		if n := len([]rune(line)); n > columns {
			t.Errorf("a line has %d columns, want at most %d", n, columns)
		}
		text += strings.TrimPrefix(line, "    ")
	}
	if text != long {
		t.Errorf("got %q", text)
	}
}

// TestRecording_HasSteps reads the recording of the README.
func TestRecording_HasSteps(t *testing.T) {
	text, err := os.ReadFile("../../docs/demo.svg")
	expect.NoError(t, err)
	for _, name := range shown {
		if _, short, _ := strings.Cut(name, ": "); !strings.Contains(string(text), short) {
			t.Errorf("docs/demo.svg does not show %q: run make recording", name)
		}
	}
	wellFormed(t, bytes.NewReader(text))
}

func wellFormed(t *testing.T, r io.Reader) {
	t.Helper()
	for d := xml.NewDecoder(r); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
	}
}
