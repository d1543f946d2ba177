package webhook_test

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"crypto/tls"
	"encoding/binary"
	"encoding/hex"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/crdkit/crdkit/test/expect"
)

// expand is HKDF-Expand-Label (RFC 8446, section 7.1).
func expand(t testing.TB, secret []byte, label string, n int) []byte {
	t.Helper()
	info := binary.BigEndian.AppendUint16(nil, uint16(n))
	info = append(append(info, byte(6+len(label))), "tls13 "+label...)
	out, err := hkdf.Expand(sha256.New, secret, string(append(info, 0)), n)
	expect.NoError(t, err)
	return out
}

func gcm(t testing.TB, key []byte) cipher.AEAD {
	t.Helper()
	block, err := aes.NewCipher(key)
	expect.NoError(t, err)
	aead, err := cipher.NewGCM(block)
	expect.NoError(t, err)
	return aead
}

// handshakes returns a function that sends a handshake message on a connection whose
// handshake is done, which crypto/tls does not let a client do.
func handshakes(t testing.TB, v *victim) (conn *tls.Conn, send func(message []byte) error) {
	t.Helper()
	raw, err := net.Dial("tcp", v.addr)
	expect.NoError(t, err)
	var keys bytes.Buffer
	config := v.config("http/1.1")
	config.CurvePreferences = []tls.CurveID{tls.X25519}
	config.KeyLogWriter = &keys
	conn = tls.Client(raw, config)
	expect.NoError(t, conn.Handshake())
	if suite := conn.ConnectionState().CipherSuite; suite != tls.TLS_AES_128_GCM_SHA256 {
		t.Skipf("this machine prefers %s", tls.CipherSuiteName(suite))
	}
	var traffic []byte
	for line := range strings.Lines(keys.String()) {
		if fields := strings.Fields(line); fields[0] == "CLIENT_TRAFFIC_SECRET_0" {
			traffic, err = hex.DecodeString(fields[2])
			expect.NoError(t, err)
		}
	}
	seq := uint64(0)
	return conn, func(message []byte) error {
		aead, nonce := gcm(t, expand(t, traffic, "key", 16)), expand(t, traffic, "iv", 12)
		for i, b := range binary.BigEndian.AppendUint64(nil, seq) {
			nonce[4+i] ^= b
		}
		seq++
		inner := append(bytes.Clone(message), 22)
		head := binary.BigEndian.AppendUint16([]byte{23, 3, 3}, uint16(len(inner)+aead.Overhead()))
		_, err := raw.Write(aead.Seal(bytes.Clone(head), nonce, inner, head))
		if message[0] == keyUpdate[0] { // what follows has another key
			traffic, seq = expand(t, traffic, "traffic upd", 32), 0
		}
		return err
	}
}

// keyUpdate asks the server to change its key too (RFC 8446, section 4.6.3).
var keyUpdate = []byte{24, 0, 0, 1, 1}

func TestAttack_Renegotiation(t *testing.T) {
	t.Parallel()
	again := hello(t)[5:] // without the head of its record
	for name, message := range map[string][]byte{"hello": again, "key update": keyUpdate} {
		t.Run(name, func(t *testing.T) {
			// The server understands the crafted records: it refuses the second hello, and
			// after a key update it can do so only if it has followed it.
			conn, send := handshakes(t, newVictim(t, 256, ""))
			expect.NoError(t, send(message))
			if message[0] == keyUpdate[0] {
				expect.NoError(t, send(again))
			}
			_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
			_, err := conn.Read(make([]byte, 1))
			expect.ErrorContains(t, err, "unexpected message")
			closeHard(conn)
			attack(t, 128*megabytes, func(t *testing.T, v *victim, until <-chan struct{}) {
				ended := v.goesOnUntil()
				crowd(16, until, func(int) {
					conn, send := handshakes(t, v)
					read := make(chan struct{})
					go func() {
						defer close(read)
						_, _ = io.Copy(io.Discard, conn)
					}()
					for range 10_000 {
						if send(message) != nil {
							ended()
							break
						}
						select {
						case <-until:
							closeHard(conn)
						default:
						}
					}
					closeHard(conn)
					<-read
				})
			})
		})
	}
}
