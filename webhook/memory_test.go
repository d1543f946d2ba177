//go:build linux && !race

package webhook_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/crdkit/crdkit/test/expect"
	"github.com/crdkit/crdkit/test/tier"
)

// TestMemory attacks servers in processes with a memory limit. (The race detector takes several times
// the memory of the process.)
func TestMemory(t *testing.T) {
	for _, limit := range tier.Pick([]int{128}, []int{128, 512}) {
		t.Run(fmt.Sprintf("GOMEMLIMIT for %d MiB", limit), func(t *testing.T) { attackMemory(t, limit, "") })
		t.Run(fmt.Sprintf("cgroup of %d MiB", limit), func(t *testing.T) {
			cgroup, err := newCgroup(t, limit)
			if err != nil {
				t.Skipf("no cgroup can be created here: %v", err)
			}
			attackMemory(t, limit, cgroup)
		})
	}
}

// newCgroup creates a cgroup with a memory limit in that of the test, and returns its directory.
func newCgroup(t *testing.T, limit int) (dir string, err error) {
	t.Helper()
	groups, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(groups)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		file := "memory.max"
		switch {
		case parts[1] == "memory":
			dir, file = "/sys/fs/cgroup/memory", "memory.limit_in_bytes"
		case parts[1] == "" && dir == "":
			dir = "/sys/fs/cgroup"
		default:
			continue
		}
		dir = filepath.Join(dir, parts[2], fmt.Sprintf("crdkit-%d-%d", os.Getpid(), limit))
		if err = os.Mkdir(dir, 0o755); err != nil {
			continue
		}
		t.Cleanup(func() { expect.EventuallyTrue(t, "the cgroup is empty", func() bool { return os.Remove(dir) == nil }) })
		return dir, os.WriteFile(filepath.Join(dir, file), []byte(strconv.Itoa(limit<<20)), 0o644)
	}
	return dir, errors.Join(err, os.ErrNotExist)
}

// repeated returns a reader of first, as many times middle as fill a size in bytes, and last. It takes
// no memory.
func repeated(size int, first, middle, last string) (io.Reader, int64) {
	n := (size - len(first) - len(last)) / len(middle)
	block := bytes.Repeat([]byte(middle), max(1, 64<<10/len(middle)))
	all := []io.Reader{strings.NewReader(first)}
	for left := n * len(middle); left > 0; left -= len(block) {
		all = append(all, bytes.NewReader(block[:min(left, len(block))]))
	}
	return io.MultiReader(append(all, strings.NewReader(last))...), int64(len(first) + n*len(middle) + len(last))
}

const (
	toHub    = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","request":{"uid":"1","desiredAPIVersion":"example.com/v1","objects":[`
	oneFleet = `{"apiVersion":"example.com/v1alpha1","kind":"Fleet","metadata":{"name":"f"`
	create   = `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"1","kind":{"group":"example.com","version":"v1","kind":"Fleet"},"operation":"CREATE","name":"f","object":{"apiVersion":"example.com/v1","kind":"Fleet","metadata":{"name":"f"`
)

// realContainer is a container as in many Deployments.
const realContainer = `{"name":"server","image":"registry.example.com/server:1.2.3","args":["--listen=:8080","--verbose"],"ports":[{"containerPort":8080,"name":"http","protocol":"TCP"}],` +
	`"env":[{"name":"A","value":"b"},{"name":"POD","valueFrom":{"fieldRef":{"apiVersion":"v1","fieldPath":"metadata.name"}}}],"resources":{"limits":{"cpu":"1","memory":"512Mi"},"requests":{"cpu":"50m","memory":"64Mi"}},` +
	`"livenessProbe":{"httpGet":{"path":"/healthz","port":8080},"periodSeconds":10},"volumeMounts":[{"name":"config","mountPath":"/etc/server"}]}`

// realFleet is an object as large as many Deployments, with what the API server notes about it.
var realFleet = func() string {
	managed := `,"managedFields":[{"manager":"kubectl","operation":"Apply","apiVersion":"example.com/v1","time":"2026-01-01T00:00:00Z","fieldsType":"FieldsV1","fieldsV1":{` + strings.Repeat(`"f:spec":{"f:template":{"f:spec":{".":{},"f:containers":{},"f:volumes":{}}}},`, 30) + `"f:x":{}}}]`
	return oneFleet + `,"labels":{"app":"server","tier":"backend"},"uid":"705ab4f5-6393-11e8-b7cc-42010a800002"` + managed + `},"spec":{"template":{"spec":{"containers":[` + strings.Repeat(realContainer+",", 7) + realContainer + `]}}}}`
}()

// attackMemory sends a server what takes most memory. Meanwhile, small reviews must be answered.
func attackMemory(t *testing.T, limit int, cgroup string) {
	v := newVictim(t, limit, cgroup)
	large := limit << 20 / 9 // 57 MiB of 512
	nested := strings.Repeat(`{"a":`, 4000) + strings.Repeat(`[`, 4000) + strings.Repeat(`]`, 4000) + strings.Repeat(`}`, 4000)
	type request struct {
		path                string
		size                int
		first, middle, last string
	}
	client := v.client(t, false)
	send := func(r request) int {
		body, size := repeated(r.size, r.first, r.middle, r.last)
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, v.url()+r.path, io.NopCloser(body))
		expect.NoError(t, err)
		req.ContentLength = size
		req.Header.Set("Content-Type", "application/json")
		resp, err := client.Do(req)
		if err != nil { // the server did not read all of it
			return 0
		}
		defer resp.Body.Close()
		_, _ = io.Copy(io.Discard, resp.Body)
		return resp.StatusCode
	}
	list := func(path string, size int, object string) request {
		return request{path, size, toHub, object + ",", object + "]}}"}
	}
	inside := func(path string, size int, first, middle, last string) request {
		return request{path, size, first, middle, last}
	}

	// The page docs/running-in-production.md promises these sizes.
	sizes := map[int][2]int{128: {8 << 20, 500 << 10}, 512: {40 << 20, 2500 << 10}}[limit]
	if limit == 128 && cgroup == "" {
		sizes[0] = 7 << 20 // of 90 % of the limit
	}
	spec := `},"spec":{"template":{"spec":{"containers":[`
	for name, what := range map[string]request{
		"list":                 list("/convert", sizes[0], realFleet),
		"object":               inside("/convert", sizes[1], toHub+oneFleet+spec, realContainer+`,`, `{}]}}}}]}}`),
		"object and admission": inside("/admit-fleet", sizes[1], create+spec, realContainer+`,`, `{}]}}}}}}`),
	} {
		if code := send(what); code != 200 {
			t.Errorf("an ordinary %s of %d bytes gets %d", name, what.size, code)
		}
		t.Logf("ordinary %s: %s", name, peak(t, v, limit, cgroup))
	}

	var stop atomic.Bool
	var small sync.WaitGroup
	var answered atomic.Int64
	small.Go(func() {
		client := v.client(t, true)
		for !stop.Load() {
			code, answer, err := 503, "", error(nil)
			for try := 0; code == 503 && try < 10; try++ { // as the API server does
				code, answer, err = post(client, v.url()+"/convert", []byte(question))
				if code == 503 {
					time.Sleep(100 * time.Millisecond)
				}
			}
			if err != nil || code != 200 || !strings.Contains(answer, `"address":"localhost:80"`) {
				t.Errorf("a small review got %d %.200s, %v", code, answer, err)
				return
			}
			answered.Add(1)
			time.Sleep(20 * time.Millisecond)
		}
	})
	for _, attack := range []struct {
		name  string
		times int
		what  request
	}{
		{"spaces to /convert", 2, request{path: "/convert", size: 250 << 20, middle: " "}},
		{"spaces to /admit-fleet", 2, request{path: "/admit-fleet", size: 250 << 20, middle: " "}},
		{"spaces that fit", 4, request{path: "/convert", size: large, middle: " "}},
		{"two large lists", 2, list("/convert", large, realFleet)},
		{"a hundred bodies", 100, list("/convert", 1<<20, realFleet)},
		{"a hundred admissions", 100, inside("/admit-fleet", 1<<20, create+`},"spec":{"template":{"spec":{"containers":[`, `{"name":"a","image":"b","args":["c","d"]},`, `{}]}}}}}}`)},
		{"a hundred bodies of 200 KiB", 100, list("/convert", 200<<10, realFleet)},
		{"tiny objects", 2, list("/convert", large, `{"apiVersion":"example.com/v1alpha1","kind":"Fleet"}`)},
		{"tiny objects with metadata", 2, list("/convert", large, oneFleet+`,"labels":{"a":"b"},"finalizers":["x"]}}`)},
		{"empty objects", 2, list("/convert", large, `{}`)},
		{"many owners", 10, inside("/convert", large/8, toHub+oneFleet+`,"ownerReferences":[`, `{},`, `{}]}}]}}`)},
		{"many labels", 10, inside("/convert", large/8, toHub+oneFleet+`,"labels":{`, `"":"",`, `"a":"a"}}}]}}`)},
		{"many names", 10, inside("/convert", large/8, toHub+oneFleet+`},"spec":{"names":[`, `"",`, `""]}}]}}`)},
		{"many containers", 10, inside("/convert", large/16, toHub+oneFleet+`},"spec":{"template":{"spec":{"containers":[`, `{},`, `{}]}}}}]}}`)},
		{"many containers in an admission", 10, inside("/admit-fleet", large/16, create+`},"spec":{"template":{"spec":{"containers":[`, `{},`, `{}]}}}}}}`)},
		{"many small containers in an admission", 100, inside("/admit-fleet", 64<<10, create+`},"spec":{"template":{"spec":{"containers":[`, `{},`, `{}]}}}}}}`)},
		{"many values in an admission", 10, inside("/admit-any", large/16, create+`},"spec":{"values":[`, `{},`, `{}]}}}}`)},
		{"nested objects", 100, inside("/admit-any", 100<<10, create+`},"spec":{"values":[`, nested+`,`, `{}]}}}}`)},
		{"many nested objects", 2, list("/convert", large, oneFleet+`},"spec":`+nested+`}`)},
		{"large lists after all of this", 2, list("/convert", large, realFleet)},
	} {
		var all sync.WaitGroup
		codes := make([]atomic.Int64, 600)
		for range attack.times {
			all.Go(func() {
				what := attack.what
				code := send(what)
				for ; code == 413 && what.size > 64<<10; code = send(what) {
					what.size = what.size * 2 / 3 // to the largest one that is accepted
				}
				codes[code].Add(1)
			})
		}
		all.Wait()
		var got []string
		for code := range codes {
			if n := codes[code].Load(); n > 0 {
				got = append(got, fmt.Sprintf("%d times %d", n, code))
				if code != 200 && code != 400 && code != 503 {
					t.Errorf("%s: an answer has code %d", attack.name, code)
				}
			}
		}
		t.Logf("%s: %s; %s", attack.name, strings.Join(got, ", "), peak(t, v, limit, cgroup))
	}
	stop.Store(true)
	small.Wait()
	t.Logf("%d small reviews were answered meanwhile", answered.Load())
}

// peak returns the peak of the resident memory of a victim since the last time, without that of its program.
func peak(t *testing.T, v *victim, limit int, cgroup string) string {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", v.process.Pid))
	expect.NoError(t, err)
	mib := func(name string) int {
		_, after, _ := strings.Cut(string(status), name+":")
		line, _, _ := strings.Cut(after, "kB")
		kib, err := strconv.Atoi(strings.TrimSpace(line))
		expect.NoError(t, err)
		return kib >> 10
	}
	peak := mib("VmHWM") - mib("RssFile")
	if peak > limit && cgroup == "" { // in a cgroup, the kernel kills the victim, or takes pages of the program away
		t.Errorf("the peak is %d MiB", peak)
	}
	expect.NoError(t, os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", v.process.Pid), []byte("5"), 0)) // begins again
	return fmt.Sprintf("peak %d MiB", peak)
}
