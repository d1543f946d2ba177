package authority

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
)

// request returns the context of a request for the Secret. It has no logger, because client-go logs bodies at verbosity 8,
// and these have the private key of the CA.
func (a *Authority) request(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(klog.NewContext(ctx, logr.Discard()), 15*time.Second)
}

// clock is a transport that compares the clock of this process with that of the API server, which verifies the certificates.
type clock struct {
	http.RoundTripper
	ahead atomic.Int64 // in nanoseconds, as of the last response
}

func (c *clock) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := c.RoundTripper.RoundTrip(r)
	if err == nil {
		if date, err := http.ParseTime(resp.Header.Get("Date")); err == nil {
			c.ahead.Store(int64(time.Since(date)))
		}
	}
	return resp, err
}

// read returns the Secret, or nil. It bypasses the caches of the API server, because a new CA
// may depend on the result.
func (a *Authority) read(ctx context.Context) (*corev1.Secret, error) {
	ctx, cancel := a.request(ctx)
	defer cancel()
	obj, err := a.secrets.Get(ctx, a.name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	secret := &corev1.Secret{}
	return secret, runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, secret)
}

// write creates the Secret if old is nil, and otherwise updates it. It returns the UID of the
// Secret. If another client was faster, the error is a conflict or AlreadyExists.
func (a *Authority) write(ctx context.Context, old *corev1.Secret, st *state) (types.UID, error) {
	ctx, cancel := a.request(ctx)
	defer cancel()
	if ahead := time.Duration(a.clock.ahead.Load()); ahead.Abs() > skew {
		return "", fmt.Errorf("the clock of this replica differs from the API server's by %s, expected at most %s", ahead.Round(time.Minute), skew)
	}
	secret := &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: a.name},
		Type:       corev1.SecretTypeTLS,
	}
	if old != nil {
		secret = old.DeepCopy()
		// Only the keys of this package are replaced.
		maps.DeleteFunc(secret.Data, func(key string, _ []byte) bool { return slices.Contains(keys[:], key) })
	}
	if secret.Data == nil {
		secret.Data = map[string][]byte{}
	}
	maps.Copy(secret.Data, st.encode())
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(secret)
	if err != nil {
		return "", err
	}
	obj := &unstructured.Unstructured{Object: fields}
	if old == nil {
		obj, err = a.secrets.Create(ctx, obj, metav1.CreateOptions{FieldManager: fieldManager})
	} else {
		obj, err = a.secrets.Update(ctx, obj, metav1.UpdateOptions{FieldManager: fieldManager})
	}
	if err != nil {
		return "", err
	}
	return obj.GetUID(), nil
}
