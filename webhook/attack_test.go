package webhook_test

import (
	"bytes"
	"compress/gzip"
	"crypto/rand"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/crdkit/crdkit/test/expect"
	"github.com/crdkit/crdkit/test/webhooktest"
)

const megabytes = 1 << 20

// attacker attacks a victim until the channel is closed, and returns when its connections are closed.
type attacker func(t *testing.T, v *victim, until <-chan struct{})

// TestAttack lets attackers loose on a server, each of which it must survive in so much memory.
func TestAttack(t *testing.T) {
	t.Parallel()
	const post = "POST /convert HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
	for name, a := range map[string]struct {
		memory   uint64
		attacker attacker
	}{
		"slow headers":               {128 * megabytes, onConnections(300, "http/1.1", drip("POST /convert HTTP/1.1\r\nHost: x\r\nX: ", "x"))},
		"slow bodies":                {192 * megabytes, onConnections(300, "http/1.1", drip(post+fmt.Sprintf("Content-Length: %d\r\n\r\n{", 200*megabytes), " "))}, // it promises much
		"bodies without end":         {192 * megabytes, bodiesWithoutEnd(post + "Transfer-Encoding: chunked\r\n\r\n")},
		"ten thousand connections":   {256 * megabytes, idleConnections},
		"half handshakes":            {128 * megabytes, halfHandshakes(hello(t))},
		"plain HTTP":                 {128 * megabytes, plainHTTP},
		"garbage":                    {128 * megabytes, garbage},
		"gzip bomb":                  {128 * megabytes, gzipBomb},
		"forged client certificates": {128 * megabytes, forgedClientCertificates},
	} {
		t.Run(name, func(t *testing.T) { attack(t, a.memory, a.attacker) })
	}
}

// onConnections returns a crowd of n attackers, each of which opens one connection after the other and sends on it.
func onConnections(n int, protocol string, send func(conn net.Conn, until <-chan struct{})) attacker {
	return func(_ *testing.T, v *victim, until <-chan struct{}) {
		crowd(n, until, func(int) {
			conn, err := v.tryDial(protocol)
			if err != nil {
				return
			}
			defer closeHard(conn)
			send(conn, until)
		})
	}
}

// drip returns a function that sends the first bytes of a request at once, and more every 50 milliseconds.
func drip(first, more string) func(net.Conn, <-chan struct{}) {
	return func(conn net.Conn, until <-chan struct{}) {
		for _, err := io.WriteString(conn, first); err == nil && tick(50*time.Millisecond, until); _, err = io.WriteString(conn, more) {
		}
	}
}

// bodiesWithoutEnd sends chunks until a request is refused, and others meanwhile.
func bodiesWithoutEnd(head string) attacker {
	chunk := []byte(fmt.Sprintf("%x\r\n%s\r\n", 64<<10, strings.Repeat(" ", 64<<10)))
	return func(t *testing.T, v *victim, until <-chan struct{}) {
		refused := v.goesOnUntil()
		onConnections(24, "http/1.1", func(conn net.Conn, until <-chan struct{}) {
			fmt.Fprint(conn, head)
			go func() {
				var answer [12]byte
				if n, _ := io.ReadFull(conn, answer[:]); n > 0 && string(answer[9:n]) == "503" {
					refused()
				}
			}()
			for tick(time.Millisecond, until) {
				if _, err := conn.Write(chunk); err != nil {
					return
				}
			}
		})(t, v, until)
	}
}

// idleConnections opens ten thousand connections, few of them with a handshake.
func idleConnections(t *testing.T, v *victim, until <-chan struct{}) {
	want := 10_000
	var limit syscall.Rlimit // os has raised the soft limit to the hard one
	expect.NoError(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit))
	if room := int(limit.Cur) - 500; room < want {
		t.Logf("%d connections instead of %d: a process may have %d descriptors", room, want, limit.Cur)
		want = room
	}
	var mu sync.Mutex
	var conns []net.Conn
	var opened atomic.Int64
	v.more.Add(int64(want))
	crowd(50, until, func(int) {
		n := int(opened.Add(1))
		if n > want {
			<-until
			return
		}
		defer v.more.Add(-1)
		var conn net.Conn
		var err error
		if n%(20*slowness) == 0 { // a handshake costs the attacker too
			conn, err = v.tryDial("http/1.1")
		} else {
			conn, err = net.Dial("tcp", v.addr)
		}
		if err != nil {
			t.Errorf("connection %d: %v", n, err)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		conns = append(conns, conn)
	})
	for _, conn := range conns {
		closeHard(conn)
	}
}

// hello returns the first bytes that a client of TLS sends.
func hello(t testing.TB) []byte {
	t.Helper()
	client, server := net.Pipe()
	defer server.Close()
	go func() {
		_ = tls.Client(client, &tls.Config{ServerName: "localhost"}).Handshake()
	}()
	buf := make([]byte, 64<<10)
	n, err := server.Read(buf)
	expect.NoError(t, err)
	return buf[:n]
}

// halfHandshakes sends the first message of a client, or a part of it.
func halfHandshakes(first []byte) attacker {
	return func(_ *testing.T, v *victim, until <-chan struct{}) {
		crowd(500, until, func(i int) {
			conn, err := net.Dial("tcp", v.addr)
			if err != nil {
				return
			}
			defer conn.Close()
			switch i % 3 {
			case 0: // in the middle of the hello
				_, _ = conn.Write(first[:len(first)/2])
			case 1: // after it
				_, _ = conn.Write(first)
			case 2: // byte by byte
				for _, b := range first {
					if _, err := conn.Write([]byte{b}); err != nil || !tick(20*time.Millisecond, until) {
						return
					}
				}
			}
			if i%5 == 0 { // and away, to come again
				tick(50*time.Millisecond, until)
				return
			}
			hold(conn, until)
		})
	}
}

// plainHTTP speaks HTTP without TLS.
func plainHTTP(t *testing.T, v *victim, until <-chan struct{}) {
	crowd(20, until, func(int) {
		conn, err := net.Dial("tcp", v.addr)
		if err != nil {
			return
		}
		defer conn.Close()
		fmt.Fprintf(conn, "POST /convert HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", len(question), question)
		_ = conn.SetReadDeadline(time.Now().Add(5 * time.Second))
		answer, _ := io.ReadAll(conn)
		// The kernel may throw the answer away, since the request is not read.
		if len(answer) > 0 && !bytes.HasPrefix(answer, []byte("HTTP/1.0 400 ")) {
			t.Errorf("got %s", answer)
		}
		tick(5*time.Millisecond, until)
	})
}

// garbage sends random bytes, in each layer of the protocols.
func garbage(t *testing.T, v *victim, until <-chan struct{}) {
	var length atomic.Int64
	crowd(16, until, func(i int) {
		garbage := make([]byte, length.Add(1)%20_000)
		_, _ = rand.Read(garbage)
		var conn net.Conn
		var err error
		switch i % 4 {
		case 0:
			conn, err = net.Dial("tcp", v.addr)
		case 1: // what looks like a record of TLS
			conn, err = net.Dial("tcp", v.addr)
			copy(garbage, []byte{22, 3, 1})
		case 2:
			conn, err = v.tryDial("http/1.1")
		case 3:
			if conn, err = v.tryDial("h2"); err == nil {
				fmt.Fprint(conn, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
			}
		}
		if err != nil {
			return
		}
		defer closeHard(conn)
		_, _ = conn.Write(garbage)
		_ = conn.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
		_, _ = io.Copy(io.Discard, conn)
	})
}

// gzipBomb sends bodies of which each is a gigabyte, decompressed.
func gzipBomb(t *testing.T, v *victim, until <-chan struct{}) {
	var member bytes.Buffer
	w := gzip.NewWriter(&member)
	_, _ = w.Write(make([]byte, 4*megabytes))
	expect.NoError(t, w.Close())
	bomb := bytes.Repeat(member.Bytes(), 256) // members follow each other (RFC 1952, section 2.2)
	clients := make([]*http.Client, 8)
	for i := range clients {
		clients[i] = v.client(t, i%2 == 0)
	}
	answered := v.goesOnUntil()
	crowd(len(clients), until, func(i int) {
		path := []string{"/convert", "/admit"}[i%2]
		req, err := http.NewRequestWithContext(t.Context(), "POST", v.url()+path, bytes.NewReader(bomb))
		expect.NoError(t, err)
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Content-Encoding", "gzip")
		if resp, err := clients[i].Do(req); err == nil { // it may be closed before all is sent
			resp.Body.Close()
			answered()
			if resp.StatusCode != http.StatusUnsupportedMediaType {
				t.Errorf("got %s", resp.Status)
			}
		}
		tick(5*time.Millisecond, until)
	})
	for _, client := range clients {
		client.CloseIdleConnections()
	}
}

// forgedClientCertificates shows certificates of another CA that has the same name.
func forgedClientCertificates(t *testing.T, v *victim, until <-chan struct{}) {
	forged := webhooktest.NewCA(t, "of clients").Issue(t, named("kube-apiserver"))
	crowd(16, until, func(int) {
		config := v.config("http/1.1")
		with(forged)(config)
		conn, err := tls.Dial("tcp", v.addr, config)
		if err != nil {
			return
		}
		defer closeHard(conn)
		_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
		fmt.Fprint(conn, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
		if n, err := conn.Read(make([]byte, 1)); n > 0 || err == nil {
			t.Error("a forged certificate was taken")
		}
		tick(2*time.Millisecond, until)
	})
}
