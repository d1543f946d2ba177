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
)

const megabytes = 1 << 20

func TestAttack_SlowHeaders(t *testing.T) {
	attack(t, 128*megabytes, func(t *testing.T, v *victim, until <-chan struct{}) {
		crowd(300, until, func(int) {
			conn, err := v.tryDial("http/1.1")
			if err != nil {
				return
			}
			defer closeHard(conn)
			fmt.Fprint(conn, "POST /convert HTTP/1.1\r\nHost: x\r\nX: ")
			for tick(50*time.Millisecond, until) {
				if _, err := conn.Write([]byte("x")); err != nil {
					return
				}
			}
		})
	})
}

func TestAttack_SlowBodies(t *testing.T) {
	attack(t, 192*megabytes, func(t *testing.T, v *victim, until <-chan struct{}) {
		crowd(300, until, func(int) {
			conn, err := v.tryDial("http/1.1")
			if err != nil {
				return
			}
			defer closeHard(conn)
			// It promises much.
			fmt.Fprintf(conn, "POST /convert HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n{", 200*megabytes)
			for tick(50*time.Millisecond, until) {
				if _, err := conn.Write([]byte(" ")); err != nil {
					return
				}
			}
		})
	})
}

func TestAttack_BodiesWithoutEnd(t *testing.T) {
	attack(t, 192*megabytes, func(t *testing.T, v *victim, until <-chan struct{}) {
		var sent, refused atomic.Int64
		v.more.Add(1) // until one is refused
		crowd(24, until, func(int) {
			conn, err := v.tryDial("http/1.1")
			if err != nil {
				return
			}
			defer closeHard(conn)
			fmt.Fprint(conn, "POST /convert HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
			chunk := []byte(fmt.Sprintf("%x\r\n%s\r\n", 64<<10, strings.Repeat(" ", 64<<10)))
			go func() {
				var answer [12]byte
				if n, _ := io.ReadFull(conn, answer[:]); n > 0 && string(answer[9:n]) == "503" {
					if refused.Add(1) == 1 {
						v.more.Add(-1)
					}
				}
			}()
			for tick(time.Millisecond, until) {
				if _, err := conn.Write(chunk); err != nil {
					return
				}
				sent.Add(int64(len(chunk)))
			}
		})
		t.Logf("%d MiB were sent, %d requests were refused", sent.Load()>>20, refused.Load())
		if refused.Load() == 0 {
			t.Error("none was refused: this attack shows nothing")
		}
	})
}

func TestAttack_TenThousandIdleConnections(t *testing.T) {
	want := 10_000
	var limit syscall.Rlimit // os has raised the soft limit to the hard one
	check(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit))
	if room := int(limit.Cur) - 500; room < want {
		t.Logf("%d connections instead of %d: a process may have %d descriptors", room, want, limit.Cur)
		want = room
	}
	attack(t, 256*megabytes, func(t *testing.T, v *victim, until <-chan struct{}) {
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
	})
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
	check(t, err)
	return buf[:n]
}

func TestAttack_HalfHandshakes(t *testing.T) {
	first := hello(t)
	attack(t, 128*megabytes, func(t *testing.T, v *victim, until <-chan struct{}) {
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
	})
}

func TestAttack_PlainHTTP(t *testing.T) {
	attack(t, 128*megabytes, func(t *testing.T, v *victim, until <-chan struct{}) {
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
	})
}

func TestAttack_Garbage(t *testing.T) {
	attack(t, 128*megabytes, func(t *testing.T, v *victim, until <-chan struct{}) {
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
	})
}

func TestAttack_GzipBomb(t *testing.T) {
	var member bytes.Buffer
	w := gzip.NewWriter(&member)
	_, _ = w.Write(make([]byte, 4*megabytes))
	check(t, w.Close())
	bomb := bytes.Repeat(member.Bytes(), 256) // members follow each other (RFC 1952, section 2.2)
	attack(t, 128*megabytes, func(t *testing.T, v *victim, until <-chan struct{}) {
		clients := make([]*http.Client, 8)
		for i := range clients {
			clients[i] = v.client(t, i%2 == 0)
		}
		var answers atomic.Int64
		v.more.Add(1) // until one is answered
		crowd(len(clients), until, func(i int) {
			path := []string{"/convert", "/admit"}[i%2]
			req, err := http.NewRequestWithContext(t.Context(), "POST", v.url()+path, bytes.NewReader(bomb))
			check(t, err)
			req.Header.Set("Content-Type", "application/json")
			req.Header.Set("Content-Encoding", "gzip")
			if resp, err := clients[i].Do(req); err == nil { // it may be closed before all is sent
				resp.Body.Close()
				if answers.Add(1) == 1 {
					v.more.Add(-1)
				}
				if resp.StatusCode != http.StatusUnsupportedMediaType {
					t.Errorf("got %s", resp.Status)
				}
			}
			tick(5*time.Millisecond, until)
		})
		if answers.Load() == 0 {
			t.Error("no answer: this attack shows nothing")
		}
		for _, client := range clients {
			client.CloseIdleConnections()
		}
	})
}

func TestAttack_ForgedClientCertificates(t *testing.T) {
	attack(t, 128*megabytes, func(t *testing.T, v *victim, until <-chan struct{}) {
		forged := newAuthority(t, "of clients").issue(t, named("kube-apiserver"))
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
	})
}
