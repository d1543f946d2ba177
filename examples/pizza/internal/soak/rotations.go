package soak

import (
	"bytes"
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// countRotations counts how often another CA has become the current one, until ctx ends.
func (r *restaurant) countRotations(ctx context.Context) (n int) {
	var last []byte
	for sleep(ctx, 100*time.Millisecond) {
		secret, err := r.typed.CoreV1().Secrets(namespace).Get(ctx, secretName, metav1.GetOptions{})
		if err != nil {
			continue
		}
		// The first certificate is the CA's own; what was corrupted comes back as it was.
		begin, current := []byte("-----BEGIN"), secret.Data["tls.crt"]
		if !bytes.HasPrefix(current, begin) {
			continue
		}
		if at := bytes.Index(current[1:], begin); at >= 0 {
			current = current[:at+1]
		}
		if last != nil && !bytes.Equal(last, current) {
			n++
		}
		last = current
	}
	return n
}
