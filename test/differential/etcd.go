package differential

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
)

// etcd reads and writes what the server stores, through the gateway that etcd has
// (etcd.io/docs/v3.6/dev-guide/api_grpc_gateway).
type etcd struct {
	client *http.Client
}

func newEtcd(socket string) *etcd {
	return &etcd{client: &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		},
	}}}
}

// get returns the value of a key.
func (e *etcd) get(ctx context.Context, key string) ([]byte, error) {
	var out struct {
		KVs []struct{ Value []byte }
	}
	if err := e.call(ctx, "range", map[string]any{"key": []byte(key)}, &out); err != nil {
		return nil, err
	}
	if len(out.KVs) != 1 {
		return nil, fmt.Errorf("etcd has no %s", key)
	}
	return out.KVs[0].Value, nil
}

// put sets the value of a key.
func (e *etcd) put(ctx context.Context, key string, value []byte) error {
	return e.call(ctx, "put", map[string]any{"key": []byte(key), "value": value}, &struct{}{})
}

func (e *etcd) call(ctx context.Context, method string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://etcd/v3/kv/"+method, bytes.NewReader(body))
	if err != nil {
		return err
	}
	response, err := e.client.Do(req)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("etcd: %s: %s", response.Status, text)
	}
	return json.Unmarshal(text, out)
}
