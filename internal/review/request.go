package review

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crdkit/crdkit/internal/rawjson"
)

// Request is what both protocols ask alike.
type Request struct {
	// APIVersion of the review, such as admission.k8s.io/v1. The answer has the same.
	APIVersion string
	// UID of the request. The answer has the same.
	UID types.UID
	// Raw is the text of the request.
	Raw []byte
}

// parse cuts a review.
func (p Protocol) parse(body []byte) (Request, error) {
	var req Request
	var kind string
	for m, err := range rawjson.Members(body) {
		if err != nil {
			return Request{}, fmt.Errorf("the body is no %s: %w", p.Kind, err)
		}
		switch m.Name {
		case "apiVersion":
			req.APIVersion, _ = rawjson.String(m.Value)
		case "kind":
			kind, _ = rawjson.String(m.Value)
		case "request":
			req.Raw = m.Value
		}
	}
	if kind != p.Kind || !slices.Contains(p.apiVersions(), req.APIVersion) {
		return Request{}, fmt.Errorf("the body has kind %q of apiVersion %q: this handler understands %s of %s",
			kind, req.APIVersion, p.Kind, strings.Join(p.apiVersions(), " and "))
	}
	if req.Raw == nil || string(req.Raw) == "null" {
		return Request{}, fmt.Errorf("the %s has no request", p.Kind)
	}
	for m, err := range rawjson.Members(req.Raw) {
		if err != nil {
			return Request{}, fmt.Errorf("the request of the %s: %w", p.Kind, err)
		}
		if m.Name == "uid" {
			uid, _ := rawjson.String(m.Value)
			req.UID = types.UID(uid)
		}
	}
	if req.UID == "" {
		return Request{}, fmt.Errorf("the request of the %s has no uid", p.Kind)
	}
	return req, nil
}

// salvage reads the version and the UID of a body that parse refused, as far as
// they can be read: even a truncated question is answered with its UID.
func (p Protocol) salvage(body []byte) (req Request) {
	d := jsontext.NewDecoder(bytes.NewBuffer(body),
		jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	for {
		token, err := d.ReadToken()
		if err != nil {
			break
		}
		if token.Kind() != '"' || d.StackDepth() > 2 {
			continue
		}
		switch d.StackPointer() { // first at the name, then at the value
		case "/apiVersion":
			req.APIVersion = token.String()
		case "/request/uid":
			req.UID = types.UID(token.String())
		}
	}
	if !slices.Contains(p.apiVersions(), req.APIVersion) {
		return Request{}
	}
	if req.UID == "uid" {
		req.UID = "" // the body ends between the name and the value
	}
	return req
}
