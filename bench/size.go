package main

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"k8s.io/client-go/util/cert"
)

// size compares minimal conversion webhooks by the size of the binary, the number of packages, and
// the memory while the webhook is idle.
func size() error {
	dir, err := os.MkdirTemp("", "size")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	chain, key, err := cert.GenerateSelfSignedCertKey("127.0.0.1", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	if err != nil {
		return err
	}
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "tls.crt"), chain, 0o600), os.WriteFile(filepath.Join(dir, "tls.key"), key, 0o600)); err != nil {
		return err
	}
	bytes, packages := map[string]float64{}, map[string]float64{}
	for _, name := range []string{"files", "managed", "peer"} {
		binary := filepath.Join(dir, name)
		if bytes[name], packages[name], err = build("./minimal/"+name, binary); err != nil {
			return err
		}
	}
	ratio("binary/conversion", bytes["peer"]/bytes["files"])
	ratio("deps/conversion", packages["peer"]/packages["files"])
	ratio("binary/conversion/managed", bytes["peer"]/bytes["managed"])
	ratio("deps/conversion/managed", packages["peer"]/packages["managed"])
	fmt.Println("the smallest conversion webhook, stripped:")
	for _, name := range []string{"files", "managed", "peer"} {
		line := fmt.Sprintf("  %-8s %6.1f MiB, %3.0f packages", name, bytes[name]/(1<<20), packages[name])
		if name != "managed" { // which needs a cluster
			resident, err := idle(filepath.Join(dir, name), dir)
			if err != nil {
				return err
			}
			line += fmt.Sprintf(", %5.1f MiB resident when idle", resident/(1<<20))
		}
		fmt.Println(line)
	}
	return nil
}

// build returns the size of a program, and the number of its packages.
func build(path, binary string) (size, packages float64, err error) {
	if output, err := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", binary, path).CombinedOutput(); err != nil {
		return 0, 0, fmt.Errorf("go build %s: %w\n%s", path, err, output)
	}
	info, err := os.Stat(binary)
	if err != nil {
		return 0, 0, err
	}
	list, err := exec.Command("go", "list", "-deps", path).Output()
	return float64(info.Size()), float64(bytes.Count(list, []byte("\n"))), err
}

// idle starts a webhook, sends one request, and returns the bytes of memory that the webhook uses
// some time later.
func idle(binary, dir string) (resident float64, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	address := l.Addr().String()
	l.Close()
	cmd := exec.Command(binary, dir, address)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, cmd.Process.Kill()); _ = cmd.Wait() }()
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
	for begin := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		resp, err := client.Post("https://"+address+"/convert", "application/json", bytes.NewReader(review(1, 0)))
		if err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				break
			}
			err = errors.New(resp.Status)
		}
		if time.Since(begin) > 10*time.Second {
			return 0, err
		}
	}
	time.Sleep(2 * time.Second)
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", cmd.Process.Pid)) // Linux has it
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(status)) {
		if kB, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			n, err := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(kB), "kB")), 64)
			return n * 1024, err
		}
	}
	return 0, errors.New("no VmRSS")
}
