package webhook_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"golang.org/x/net/http2"
	"k8s.io/klog/v2"

	"github.com/crdkit/crdkit/test/expect"
	"github.com/crdkit/crdkit/test/webhooktest"
)

// FuzzPort sends bytes to the port of a server with real handlers: as they are, inside
// TLS, and behind the preface of HTTP/2. The server must neither panic, nor hold on to
// the connection when the client has nothing more to say, nor stop to serve others.
func FuzzPort(f *testing.F) {
	h, err := handlers()
	expect.NoError(f, err)
	var panicked atomic.Pointer[string]
	logger := funcr.New(func(_, args string) {
		if strings.Contains(args, "panic") {
			panicked.Store(&args)
		}
	}, funcr.Options{})
	s := startIn(f, klog.NewContext(context.Background(), logger), webhooktest.NewCA(f, "x"), h)
	good := s.client(f, false)
	const raw, http1, h2 = 0, 1, 2

	request := "POST /convert HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
	f.Add(byte(raw), []byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"))
	f.Add(byte(raw), hello(f))
	f.Add(byte(http1), []byte(request+"Content-Length: 3\r\n\r\n{}\n"))
	f.Add(byte(http1), []byte(request+"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"))
	f.Add(byte(http1), []byte(request+"Expect: 100-continue\r\nContent-Length: 9999999\r\n\r\n{"))
	f.Add(byte(http1), []byte(strings.Replace(request, "convert", "admit", 1)+"Content-Length: 0\r\n\r\nGET /healthz HTTP/1.1\r\n\r\n"))
	var frames bytes.Buffer
	framer := http2.NewFramer(&frames, nil)
	_ = framer.WriteSettings()
	_ = framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: requestHeader(), EndHeaders: true})
	_ = framer.WriteData(1, true, []byte(question))
	_ = framer.WriteRSTStream(1, http2.ErrCodeCancel)
	_ = framer.WriteWindowUpdate(0, 1<<31-1)
	f.Add(byte(h2), frames.Bytes())
	f.Fuzz(func(t *testing.T, how byte, sent []byte) {
		conn, err := net.Dial("tcp", s.addr)
		expect.NoError(t, err)
		defer conn.Close()
		end := conn.(*net.TCPConn).CloseWrite
		if how%3 != raw {
			protos := []string{"http/1.1"}
			if how%3 == h2 {
				protos = []string{"h2"}
				sent = append([]byte(http2.ClientPreface), sent...)
			}
			conn.Close()
			inside := s.dial(t, protos...)
			defer closeHard(inside)
			conn, end = inside, inside.CloseWrite
		}
		go func() {
			_, _ = conn.Write(sent)
			_ = end()
		}()
		_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
		if _, err := io.Copy(io.Discard, conn); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatal("the server holds on to the connection")
		}
		if said := panicked.Load(); said != nil {
			t.Fatal(*said)
		}
		if code, _, err := post(good, s.url()+"/convert", []byte(question)); err != nil || code != 200 {
			t.Fatalf("another client gets %d, %v", code, err)
		}
	})
}
