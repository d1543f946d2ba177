package replica

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// conversionFailed is what the API server says then
// (apiextensions-apiserver/pkg/apiserver/conversion/webhook_converter.go).
const conversionFailed = "conversion webhook for "

// silence is how long informers may say nothing, where the API server may not be asked about
// all namespaces.
const silence = 10 * time.Second

// unconverted finds out whether the API server lacks somebody who converts. An informer does not
// tell: the reflector retries in silence. With a time limit in place of the question, a replica with
// many objects would get ready before it could decide about them, or the first one late.
type unconverted struct {
	client *http.Client
	server *url.URL
	lacks  atomic.Bool
}

func newUnconverted(config *rest.Config) (*unconverted, error) {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	server, _, err := rest.DefaultServerUrlFor(config)
	return &unconverted{client: client, server: server}, err
}

// watch asks for each of the resources until one lacks it, or ctx ends. Then this replica is
// the one, and gets ready; it must not take that back while the API server turns to it.
func (u *unconverted) watch(ctx context.Context, resources []schema.GroupVersionResource) {
	for begin := time.Now(); ctx.Err() == nil; {
		for _, r := range resources {
			// Who may list in some namespaces alone cannot know. Informers with another trouble
			// have told it by then.
			lacks, unknown := u.ask(ctx, r)
			if lacks || unknown && time.Since(begin) > silence {
				u.lacks.Store(true)
				return
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(500 * time.Millisecond):
		}
	}
}

// ask says whether objects cannot be read for want of conversion, or that this cannot be
// known. A list without a limit is answered from the API server's watch cache, which holds all
// objects in that version; while it has none, the answer says why (apiserver/pkg/storage/cacher:
// delegator.go, shouldDelegateListOnNotReadyCache, and ready.go). The selector keeps the
// answer small.
func (u *unconverted) ask(ctx context.Context, r schema.GroupVersionResource) (lacks, unknown bool) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	page := u.server.JoinPath("apis", r.Group, r.Version, r.Resource)
	page.RawQuery = url.Values{"fieldSelector": {"metadata.name=-"}}.Encode()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, page.String(), nil)
	if err != nil {
		return false, false
	}
	req.Header.Set("Accept", "application/json")
	resp, err := u.client.Do(req)
	if err != nil {
		return false, false
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	return err == nil && resp.StatusCode >= 400 && bytes.Contains(body, []byte(conversionFailed)), resp.StatusCode == http.StatusForbidden
}
