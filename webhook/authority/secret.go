package authority

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

// secret is the Secret in the cluster.
type secret struct {
	client          dynamic.ResourceInterface
	namespace, name string
	timeout         time.Duration // of a request
}

func newSecret(client dynamic.Interface, namespace, name string, timeout time.Duration) *secret {
	gvr := schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	return &secret{client: client.Resource(gvr).Namespace(namespace), namespace: namespace, name: name, timeout: timeout}
}

// read returns the Secret, nil if there is none. It asks for the newest state, not for
// that of a cache: a CA is made of what it sees.
func (s *secret) read(ctx context.Context) (*unstructured.Unstructured, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	obj, err := s.client.Get(ctx, s.name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return obj, err
}

// write creates the Secret if old is nil, and otherwise updates that. If somebody else has
// been faster the error is a conflict, or that it exists.
func (s *secret) write(ctx context.Context, old *unstructured.Unstructured, st *state) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	ours, err := st.encode()
	if err != nil {
		return err
	}
	if old == nil {
		obj := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls",
			"metadata": map[string]any{"name": s.name, "namespace": s.namespace},
			"data":     encodeData(ours),
		}}
		_, err = s.client.Create(ctx, obj, metav1.CreateOptions{})
		return err
	}
	obj := old.DeepCopy()
	data, _ := dataOf(old) // a value that is no base64 is none of ours, or about to be replaced
	obj.Object["data"] = encodeData(merge(data, ours))
	_, err = s.client.Update(ctx, obj, metav1.UpdateOptions{})
	return err
}

// dataOf returns the data of a Secret.
func dataOf(obj *unstructured.Unstructured) (map[string][]byte, error) {
	values, _, err := unstructured.NestedStringMap(obj.Object, "data")
	if err != nil {
		return nil, err
	}
	var errs []error
	data := map[string][]byte{}
	for key, value := range values {
		if data[key], err = base64.StdEncoding.DecodeString(value); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", key, err))
		}
	}
	return data, errors.Join(errs...)
}

func encodeData(data map[string][]byte) map[string]any {
	values := map[string]any{}
	for key, value := range data {
		values[key] = base64.StdEncoding.EncodeToString(value)
	}
	return values
}
