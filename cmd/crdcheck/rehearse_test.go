package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/crdkit/crdkit/conversion"
	"github.com/crdkit/crdkit/examples/crontab"
	"github.com/crdkit/crdkit/schema/rehearse"
	"github.com/crdkit/crdkit/test/expect"
)

// These environment variables make the test binary a webhook, and let it print the cluster that it finds.
const (
	webhookAddress = "CRDCHECK_TEST_WEBHOOK"
	printCluster   = "CRDCHECK_TEST_CLUSTER"
)

func TestMain(m *testing.M) {
	if os.Getenv(printCluster) != "" {
		fmt.Fprintln(os.Stderr, cluster())
		os.Exit(1)
	}
	if address := os.Getenv(webhookAddress); address != "" {
		if err := http.ListenAndServe(address, crontabs()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

// cluster returns the API server that an operator would find.
func cluster() string {
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(clientcmd.NewDefaultClientConfigLoadingRules(), nil).ClientConfig()
	if err != nil {
		return "no cluster"
	}
	return config.Host
}

// crontabs is the conversion webhook of the CronTab example.
func crontabs() http.Handler {
	reg, err := crontab.NewRegistry()
	if err != nil {
		panic(err)
	}
	return conversion.NewHandler(reg)
}

// upgrade is the command line for the second release of CronTabs.
func upgrade(more ...string) []string {
	return append([]string{"rehearse", "--from", "../../examples/crontab/config/first-release", "--to", "../../examples/crontab/config/crd"}, more...)
}

const samples = "../../examples/crontab/config/samples/v1beta1.yaml"

const unreadable = `CronTab.stable.example.com v1: unreadable after the upgrade: conversion webhook for stable.example.com/v1beta1, Kind=CronTab failed: ` +
	`request.objects[]: cannot convert CronTab from stable.example.com/v1beta1 to stable.example.com/v1: spec.hostPort: Invalid value: …: must be <host>:<port, an integer> (1 object)
    for example default/typo (../../examples/crontab/config/samples/v1beta1.yaml:`

func TestRehearse_ReportsWhatIsLost(t *testing.T) {
	server := httptest.NewServer(crontabs())
	defer server.Close()
	code, stdout, stderr := run(t, "", upgrade("--objects", samples, "--webhook", server.URL)...)
	if code != exitFindings || stderr != "" || !strings.HasPrefix(stdout, unreadable) ||
		!strings.Contains(stdout, "\nnew webhook "+server.URL+": CronTab.stable.example.com v1beta1 converted to v1: 2 objects\n") || !strings.HasSuffix(stdout, "3 objects rehearsed: 4 findings, 1 of them lost\n") {
		t.Errorf("%d\n%s%s", code, stdout, stderr)
	}
}

func TestRehearse_PrintsJSON(t *testing.T) {
	server := httptest.NewServer(crontabs())
	defer server.Close()
	code, stdout, stderr := run(t, content(t, samples), upgrade("--objects", "-", "--webhook", server.URL, "-o", "json", "--redact", "spec.hostPort")...)
	var got struct {
		rehearse.Report
		PassedOver int
		Errors     []string
	}
	if err := json.Unmarshal([]byte(stdout), &got); err != nil || code != exitFindings || len(got.Findings) == 0 || got.Objects != 3 {
		t.Fatalf("%d %v\n%s%s", code, err, stdout, stderr)
	}
	f := got.Findings[0]
	want := rehearse.Example{Where: "-:19", Name: "default/typo", Error: f.Cause,
		Stored: json.RawMessage(`{"apiVersion":"stable.example.com/v1beta1","kind":"CronTab","metadata":{"name":"typo","namespace":"default"},"spec":{"cronSpec":"0 9 * * *","hostPort":"REDACTED","image":"report"}}`)}
	f.Example.Stored = compact(t, f.Example.Stored)
	if diff := cmp.Diff(want, f.Example); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if strings.Contains(stdout, "localhost:http") {
		t.Errorf("a redacted value is printed:\n%s", stdout)
	}
	calls := []rehearse.Call{
		{Kind: "CronTab.stable.example.com", Release: "new", From: "v1", To: "v1beta1", Objects: 2},
		{Kind: "CronTab.stable.example.com", Release: "new", From: "v1beta1", To: "v1", Objects: 2},
	}
	if diff := cmp.Diff(calls, got.Calls); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

func compact(t *testing.T, text []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	expect.NoError(t, json.Compact(&out, text))
	return out.Bytes()
}

func TestRehearse_StartsTheWebhook(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	expect.NoError(t, err)
	address := listener.Addr().String()
	listener.Close()
	command := fmt.Sprintf("env %s=%s '%s'", webhookAddress, address, os.Args[0])
	code, stdout, stderr := run(t, "", upgrade("--objects", samples, "--webhook", "http://"+address, "--webhook-command", command)...)
	if code != exitFindings || !strings.HasPrefix(stdout, unreadable) {
		t.Errorf("%d\n%s%s", code, stdout, stderr)
	}
	if conn, err := net.Dial("tcp", address); err == nil {
		conn.Close()
		t.Error("the webhook still runs")
	}
}

// An operator that is started for a rehearsal finds no cluster, unless its command names one.
func TestRehearse_CommandHasNoCluster(t *testing.T) {
	mine := filepath.Join(t.TempDir(), "config")
	kubeconfig := clientcmdapi.NewConfig()
	kubeconfig.Clusters["mine"] = &clientcmdapi.Cluster{Server: "https://mine.example.com"}
	kubeconfig.Contexts["mine"] = &clientcmdapi.Context{Cluster: "mine"}
	kubeconfig.CurrentContext = "mine"
	expect.NoError(t, clientcmd.WriteToFile(*kubeconfig, mine))
	t.Setenv("KUBECONFIG", mine)
	t.Setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
	t.Setenv("KUBERNETES_SERVICE_PORT", "443")
	for env, want := range map[string]string{"": "no cluster", "KUBECONFIG=" + mine: "https://mine.example.com"} {
		command := fmt.Sprintf("env %s=1 %s '%s'", printCluster, env, os.Args[0])
		_, _, stderr := run(t, "", upgrade("--objects", samples, "--webhook", "http://127.0.0.1:1", "--webhook-command", command)...)
		if !strings.HasPrefix(stderr, want+"\n") {
			t.Errorf("env %s: got %s, want %s", env, stderr, want)
		}
	}
}

func TestRehearse_VerifiesCertificates(t *testing.T) {
	server := httptest.NewTLSServer(crontabs())
	defer server.Close()
	authority := filepath.Join(t.TempDir(), "ca.crt")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	expect.NoError(t, os.WriteFile(authority, text, 0o600))
	for _, test := range []struct {
		flags []string
		code  int
		want  string
	}{
		{nil, exitIncomplete, "error: rehearse: CronTab.stable.example.com default/backup (../../examples/crontab/config/samples/v1beta1.yaml:1): conversion from v1beta1 to v1 by the new release: webhook unreachable: "},
		{[]string{"--certificate-authority", authority}, exitFindings, ""},
		{[]string{"--insecure-skip-tls-verify"}, exitFindings, ""},
		{[]string{"--certificate-authority", samples}, exitError, "error: " + samples + ": the file has no certificate in PEM"},
	} {
		code, stdout, stderr := run(t, "", upgrade(append(test.flags, "--objects", samples, "--webhook", server.URL)...)...)
		if code != test.code || !strings.HasPrefix(stderr, test.want) {
			t.Errorf("%v: %d\n%s%s", test.flags, code, stdout, stderr)
		}
	}
}

func TestRehearse_NamesBadInput(t *testing.T) {
	server := httptest.NewServer(nil)
	server.Close()
	const object = `{"apiVersion":"stable.example.com/%s","kind":%q,"metadata":{"name":"x"},"spec":{"image":"i"}}`
	same := []string{"rehearse", "--from", "../../examples/crontab/config/first-release", "--to", "../../examples/crontab/config/first-release", "--objects", "-"}
	for name, test := range map[string]struct {
		stdin string
		args  []string
		want  string
	}{
		"no file":           {"", upgrade("--objects", "nowhere", "--webhook", server.URL), `error: the path "nowhere" does not exist`},
		"no object":         {"# none\n", same, "error: rehearse: no object of a group that the definitions have (0 passed over)"},
		"empty":             {" \n", same, "error: -: the input is empty\n"},
		"binary":            {"kind\x00", same, "error: -:1: yaml: control characters are not allowed\n"},
		"a key twice":       {strings.Replace(fmt.Sprintf(object, "v1beta1", "CronTab"), `"spec":{`, `"spec":{"image":"h",`, 1), same, `error: -: document 1: CronTab.stable.example.com default/x: duplicate field "spec.image"` + "\n"},
		"a key twice, YAML": {content(t, samples) + "  image: report\n", same, `error: -:19: CronTab.stable.example.com default/typo: line 27: key "image" already set in map` + "\n"},
		"a List in a List":  {`{"kind":"List","items":[{"kind":"CronTabList","items":[` + fmt.Sprintf(object, "v0", "CronTab") + `]}]}`, same, "error: -: items[0]: items[0]: CronTab.stable.example.com default/x: version v0 is neither served nor stored by the old definition"},
		"other objects":     {`{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"v1","kind":"Secret"},{"apiVersion":"v1","kind":"Secret"}]}`, same, `Warning: 2 objects passed over: no matches for kind "Secret" in version "v1"`},
		"not an object":     {"- a\n- b\n", same, "error: -:1: the value is not an object"},
		"not a List":        {"kind: Pod\nitems:\n- a: b\n", same, `error: -:1: kind "Pod" has items: want a kind that ends in List`},
		"text":              {"{", same, "error: -: document 1: after byte 1: unexpected EOF"},
		"no definition":     {fmt.Sprintf(object, "v1beta1", "Cook"), same, `error: -: document 1: Cook.stable.example.com x: no matches for kind "Cook" in version "stable.example.com/v1beta1" among the old definitions`},
		"another version":   {fmt.Sprintf(object, "v0", "CronTab"), same, "error: -: document 1: CronTab.stable.example.com default/x: version v0 is neither served nor stored by the old definition: want one of v1beta1"},
		"no webhook":        {"", upgrade("--objects", "-"), "error: CronTab.stable.example.com is converted by a webhook: --webhook must be specified"},
		"no URL":            {"", append(same, "--webhook-command", "true"), `error: the command "true" serves at an unknown URL: --webhook or --from-webhook must be specified`},
		"a command ends":    {"", append(same, "--webhook", server.URL, "--webhook-command", "sh -c 'exit 3'"), `error: the command "sh -c 'exit 3'": the process ended before it served ` + server.URL + ": exit status 3"},
		"a path to redact":  {"", append(same, "--redact", "spec["), `error: rehearse: redacted path "spec["`},
		"a faulty old file": {"", []string{"rehearse", "--from", samples, "--to", samples, "--objects", "-"}, "error: " + samples + ": there is no CustomResourceDefinition"},
		"no valid URL":      {"", append(same, "--webhook", "http://["), `error: parse "http://[": `},
		"no flag":           {"", []string{"rehearse", "--from", "x", "--to", "y"}, `error: required flag(s) "objects" not set`},
		"stdin twice":       {"", []string{"rehearse", "--from", "-", "--to", "y", "--objects", "-"}, "error: standard input can be read only once"},
	} {
		t.Run(name, func(t *testing.T) {
			code, stdout, stderr := run(t, test.stdin, test.args...)
			if code != exitError || !strings.HasPrefix(stderr, test.want) || strings.Contains(stdout, "rehearsed") && name != "a key twice, YAML" {
				t.Errorf("%d\n%s%s, want %s", code, stdout, stderr, test.want)
			}
		})
	}
}

// A run without a webhook does not claim to have converted or rehearsed anything.
func TestRehearse_WebhookIsUnreachable(t *testing.T) {
	server := httptest.NewServer(nil)
	server.Close()
	plain := httptest.NewServer(crontabs())
	defer plain.Close()
	for name, test := range map[string]struct{ url, want string }{
		"no server":       {server.URL + "/convert", `Post "` + server.URL + `/convert": dial tcp `},
		"no TLS":          {strings.Replace(plain.URL, "http:", "https:", 1), "server gave HTTP response to HTTPS client"},
		"another scheme":  {"localhost:9443", `Post "localhost:9443": unsupported protocol scheme "localhost"`},
		"an unknown host": {"https://nowhere.invalid", `Post "https://nowhere.invalid": dial tcp: lookup nowhere.invalid`},
	} {
		t.Run(name, func(t *testing.T) {
			const want = "error: rehearse: CronTab.stable.example.com default/backup (" + samples + ":1): conversion from v1beta1 to v1 by the new release: webhook unreachable: "
			code, stdout, stderr := run(t, "", upgrade("--objects", samples, "--webhook", test.url)...)
			if code != exitIncomplete || stdout != "" || !strings.HasPrefix(stderr, want) || !strings.Contains(stderr, test.want) {
				t.Errorf("%d\n%s%s, want %d and %s…%s", code, stdout, stderr, exitIncomplete, want, test.want)
			}
		})
	}
}

// The finding has what the server says.
func TestRehearse_WebhookAnswersAnError(t *testing.T) {
	for want, handler := range map[string]http.HandlerFunc{
		"failed: status Forbidden: not you": func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "not you", http.StatusForbidden) },
		`": EOF`:                            func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	} {
		server := httptest.NewServer(handler)
		code, stdout, stderr := run(t, "", upgrade("--objects", samples, "--webhook", server.URL)...)
		if code != exitFindings || !strings.Contains(stdout, want+"\n") {
			t.Errorf("%d\n%s%s, want %s", code, stdout, stderr, want)
		}
		server.Close()
	}
}

// The webhook ends after the first batch of 500 objects.
func TestRehearse_WebhookEnds(t *testing.T) {
	server := httptest.NewUnstartedServer(nil)
	requests := 0
	server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if requests++; requests == 2 { // to v1 and back
			w.Header().Set("Connection", "close")
			server.Listener.Close()
		}
		crontabs().ServeHTTP(w, r)
	})
	server.Start()
	defer server.Close()
	var objects strings.Builder
	for i := range 501 {
		fmt.Fprintf(&objects, `{"apiVersion":"stable.example.com/v1beta1","kind":"CronTab","metadata":{"name":"x%d"},"spec":{"image":"i","cronSpec":"0 3 * * *","hostPort":"a:1"}}`, i)
	}
	code, stdout, stderr := run(t, objects.String(), upgrade("--objects", "-", "--webhook", server.URL)...)
	if code != exitIncomplete || !strings.Contains(stdout, "converted to v1: 500 objects\n") ||
		!strings.Contains(stdout, "\n500 objects rehearsed: ") || !strings.HasSuffix(stdout, ", and the rehearsal is not complete\n") {
		t.Errorf("%d\n%s%s", code, stdout, stderr)
	}
}

func TestRehearse_ReadsDirectories(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a.yaml": content(t, samples), "values.yaml": "a: b\n", "b.json": oven("o"), "notes.txt": "no manifest",
	} {
		expect.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	code, stdout, stderr := run(t, "", "rehearse", "--from", "../../examples/crontab/config/first-release", "--to", "../../examples/crontab/config/first-release", "--objects", dir)
	if code != exitOK || stdout != "3 objects rehearsed: 0 findings, 0 of them lost\n" || strings.Count(stderr, "passed over") != 2 {
		t.Errorf("%d\n%s%s", code, stdout, stderr)
	}
}

func TestRehearse_EndsWithAnInterrupt(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var out, errOut bytes.Buffer
	args := []string{"rehearse", "--from", "../../examples/crontab/config/first-release", "--to", "../../examples/crontab/config/first-release", "--objects", "-"}
	if code := execute(ctx, args, stuck{cancel}, &out, &errOut); code != exitError || !strings.Contains(errOut.String(), "error: interrupted\n") {
		t.Errorf("%d %s", code, errOut.String())
	}
}

func TestRehearse_ShowsProgress(t *testing.T) {
	var out, terminal bytes.Buffer
	clock := time.Now()
	p := &progress{out: &terminal, width: func() int { return 0 }, now: func() time.Time { clock = clock.Add(patience); return clock }}
	c := &command{out: bufio.NewWriter(&out), errOut: &terminal, progress: p}
	s := &snapshot{command: c, groups: map[string]bool{"stable.example.com": true}, others: map[string]int{}}
	for range s.all(t.Context(), []string{samples}) {
	}
	if want := "rehearse 3 objects " + samples + ":19"; !strings.Contains(terminal.String(), want) {
		t.Errorf("got %q, want %s", terminal.String(), want)
	}
}
