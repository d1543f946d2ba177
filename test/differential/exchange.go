package differential

import (
	"context"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/crdkit/crdkit/schema"
)

// exchange is one request.
type exchange struct {
	what          string
	definition    *schema.Definition
	version, name string
	body, old     []byte // old is nil in a create
	status        bool
	send          Send
}

// done is a request that succeeded on both sides, and what it stored.
type done struct {
	got Outcome
	stored
}

// exchange sends one request to both sides and compares what comes back. It returns nil if
// it failed on either side.
func (r *run) exchange(ctx context.Context, i int, e exchange) (*done, error) {
	if !r.tally.take() {
		return nil, ErrEnough
	}
	method, at, code := http.MethodPost, path(r.crd, e.version, ""), int32(http.StatusCreated)
	if e.old != nil {
		method, at, code = http.MethodPut, path(r.crd, e.version, e.name), http.StatusOK
	}
	if e.status {
		at += "/status"
	}
	out, err := r.offline(ctx, e)
	want, err := offline(out, err, code)
	if err != nil {
		return nil, err
	}
	query := url.Values{"fieldManager": {"test"}}
	if e.send.FieldValidation != "" {
		query.Set("fieldValidation", e.send.FieldValidation)
	}
	got, err := r.server.do(ctx, method, at, query, e.body)
	if err != nil {
		return nil, err
	}
	if err := r.settle(ctx, e, got, &want, &out, code); err != nil {
		return nil, err
	}
	d := &done{got: got}
	if want.Object != nil && got.Object != nil {
		metadata, _ := got.Object["metadata"].(map[string]any)
		name, _ := metadata["name"].(string)
		if got.Stored, err = r.server.stored(ctx, r.crd, name); err != nil {
			return nil, err
		}
		if want.Stored, err = decode(out.Stored); err != nil {
			return nil, err
		}
		d.resourceVersion, _ = metadata["resourceVersion"].(string)
		live := maps.Clone(got.Stored)
		m := maps.Clone(live["metadata"].(map[string]any))
		live["metadata"], m["resourceVersion"] = m, d.resourceVersion
		d.online, d.offline = mustJSON(live), out.Stored
	}
	d.got.Object = maps.Clone(got.Object)
	if m, ok := got.Object["metadata"].(map[string]any); ok {
		d.got.Object["metadata"] = maps.Clone(m)
	}
	r.compare(Comparison{
		Suite: r.Suite, Minor: r.server.minor, Case: i, What: e.what, Send: e.send, Request: method + " " + at + "?" + query.Encode(), Body: e.body, Old: e.old,
		Server: got, Offline: want,
	}, e.old == nil)
	if got.Object == nil || want.Object == nil {
		return nil, nil
	}
	return d, nil
}

// settle does a request offline again, if the outcome differs from the server's. A rule that
// goes through a map finds another member first each time, on either side: one that is not
// the same, or one that is an error. Of embedded objects whose metadata, apiVersion or kind
// cannot be decoded, only one is named, and any
// (apiextensions-apiserver/pkg/apiserver/schema/objectmeta/coerce.go). The offline side must
// report what the server reports, at some time.
func (r *run) settle(ctx context.Context, e exchange, got Outcome, want *Outcome, out **schema.Result, code int32) error {
	differs := func() bool {
		c := Comparison{Body: e.body, Old: e.old, Server: got, Offline: *want}
		c.Server.Object, c.Offline.Object = nil, nil // they have more than can be compared here
		return c.diff() != ""
	}
	byRule := func(text string) bool { return strings.Contains(text, " rule: ") }
	undecodable := func(text string) bool {
		return strings.Contains(text, " cannot be handled as a ") && strings.Contains(text, ": Invalid value: ")
	}
	said := map[string]bool{}
	for i := 0; i < 64 && differs(); i++ {
		if undecodable(got.Message) && undecodable(want.Message) {
			if Same(r.server.minor, got.Message, want.Message) {
				return nil
			}
		} else if !slices.ContainsFunc(slices.Concat(got.Causes, want.Causes), byRule) {
			return nil
		}
		for _, text := range want.Causes {
			said[text] = true
		}
		var err error
		*out, err = r.offline(ctx, e)
		if *want, err = offline(*out, err, code); err != nil {
			return err
		}
	}
	random := len(got.Causes) == len(want.Causes) && !slices.ContainsFunc(got.Causes, func(text string) bool { return !said[text] })
	if random && differs() && len(got.Causes) > 0 {
		want.Causes, want.Message = got.Causes, got.Message
	}
	return nil
}

// offline does a request without a server.
func (r *run) offline(ctx context.Context, e exchange) (*schema.Result, error) {
	opts := []schema.Option{schema.FieldValidation(e.send.FieldValidation), schema.Namespace(namespace)}
	switch v := e.definition.Version(e.version); {
	case e.status:
		return v.UpdateStatus(ctx, e.body, e.old, opts...)
	case e.old != nil:
		return v.Update(ctx, e.body, e.old, opts...)
	default:
		return v.Create(ctx, e.body, opts...)
	}
}
