package webhook_test

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"encoding/binary"
	"encoding/hex"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// recorder keeps what the server says first.
type recorder struct {
	net.Conn
	mu   sync.Mutex
	said []byte
}

func (r *recorder) Read(p []byte) (int, error) {
	n, err := r.Conn.Read(p)
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.said) < 128 {
		r.said = append(r.said, p[:n]...)
	}
	return n, err
}

// prf is that of TLS 1.2 (RFC 5246, section 5).
func prf(secret []byte, seed []byte, n int) (out []byte) {
	sum := func(b ...[]byte) []byte {
		h := hmac.New(sha256.New, secret)
		for _, part := range b {
			h.Write(part)
		}
		return h.Sum(nil)
	}
	for a := sum(seed); len(out) < n; a = sum(a) {
		out = append(out, sum(a, seed)...)
	}
	return out[:n]
}

// expand is HKDF-Expand-Label (RFC 8446, section 7.1).
func expand(t testing.TB, secret []byte, label string, n int) []byte {
	t.Helper()
	info := binary.BigEndian.AppendUint16(nil, uint16(n))
	info = append(append(info, byte(6+len(label))), "tls13 "+label...)
	out, err := hkdf.Expand(sha256.New, secret, string(append(info, 0)), n)
	check(t, err)
	return out
}

func gcm(t testing.TB, key []byte) cipher.AEAD {
	t.Helper()
	block, err := aes.NewCipher(key)
	check(t, err)
	aead, err := cipher.NewGCM(block)
	check(t, err)
	return aead
}

// handshakes returns a function that sends a handshake message on a connection whose
// handshake is done, which crypto/tls does not let a client do.
func handshakes(t testing.TB, v *victim, version uint16) (conn *tls.Conn, send func(message []byte) error) {
	t.Helper()
	raw, err := net.Dial("tcp", v.addr)
	check(t, err)
	rec := &recorder{Conn: raw}
	var keys bytes.Buffer
	config := v.config("http/1.1")
	config.MinVersion, config.MaxVersion = version, version
	config.CipherSuites = []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256}
	config.CurvePreferences = []tls.CurveID{tls.X25519}
	config.KeyLogWriter = &keys
	conn = tls.Client(rec, config)
	check(t, conn.Handshake())
	secret := map[string][]byte{}
	var clientRandom []byte
	for line := range strings.Lines(keys.String()) {
		fields := strings.Fields(line)
		clientRandom, _ = hex.DecodeString(fields[1])
		secret[fields[0]], _ = hex.DecodeString(fields[2])
	}
	switch suite := conn.ConnectionState().CipherSuite; suite {
	case tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256:
		rec.mu.Lock()
		serverRandom := rec.said[11:43] // behind the heads of record and message, and a version
		rec.mu.Unlock()
		block := prf(secret["CLIENT_RANDOM"], append(append([]byte("key expansion"), serverRandom...), clientRandom...), 40)
		aead, iv, seq := gcm(t, block[:16]), block[32:36], uint64(1) // 0 was Finished
		return conn, func(message []byte) error {
			number := binary.BigEndian.AppendUint64(nil, seq)
			seq++
			head := []byte{22, 3, 3}
			ad := binary.BigEndian.AppendUint16(append(bytes.Clone(number), head...), uint16(len(message)))
			sealed := aead.Seal(nil, append(bytes.Clone(iv), number...), message, ad)
			record := append(binary.BigEndian.AppendUint16(head, uint16(8+len(sealed))), number...)
			_, err := raw.Write(append(record, sealed...))
			return err
		}
	case tls.TLS_AES_128_GCM_SHA256:
		traffic := secret["CLIENT_TRAFFIC_SECRET_0"]
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
	default:
		t.Skipf("this machine prefers %s", tls.CipherSuiteName(suite))
		return nil, nil
	}
}

// keyUpdate asks the server to change its key too (RFC 8446, section 4.6.3).
var keyUpdate = []byte{24, 0, 0, 1, 1}

func TestAttackRenegotiation(t *testing.T) {
	t.Parallel()
	again := hello(t)[5:] // without the head of its record
	for name, c := range map[string]struct {
		version uint16
		message []byte
	}{
		"TLS 1.2":            {tls.VersionTLS12, again},
		"TLS 1.3":            {tls.VersionTLS13, again},
		"TLS 1.3 key update": {tls.VersionTLS13, keyUpdate},
	} {
		t.Run(name, func(t *testing.T) {
			// The server understands the crafted records: it refuses the second hello, and
			// after a key update it can do so only if it has followed it.
			conn, send := handshakes(t, newVictim(t), c.version)
			check(t, send(c.message))
			if c.message[0] == keyUpdate[0] {
				check(t, send(again))
			}
			_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
			_, err := conn.Read(make([]byte, 1))
			if err == nil || !strings.Contains(err.Error(), "unexpected message") {
				t.Errorf("the server says %v", err)
			}
			closeHard(conn)
			attack(t, 128*megabytes, func(t *testing.T, v *victim, until <-chan struct{}) {
				var ended atomic.Int64
				crowd(16, until, func(int) {
					conn, send := handshakes(t, v, c.version)
					read := make(chan struct{})
					go func() {
						defer close(read)
						_, _ = io.Copy(io.Discard, conn)
					}()
					for range 10_000 {
						if send(c.message) != nil {
							ended.Add(1)
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
				if ended.Load() == 0 {
					t.Error("the server never ended it")
				}
			})
		})
	}
}
