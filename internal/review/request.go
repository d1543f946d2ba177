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
	// Raw is the text of the request, and Members are its parts. They were cut out
	// and not looked at: what reads them must check that they are JSON.
	Raw     []byte
	Members []Member
}

// Member is one member of a request. A list is cut into its elements.
type Member struct {
	Name     string
	Value    []byte
	Elements [][]byte
}

// parse cuts a review. The body is passed over once, and fast: a list of objects
// may be very large.
func (p Protocol) parse(body []byte) (Request, error) {
	var req Request
	var kind string
	c := rawjson.NewCursor(body)
	for c.Enter('{'); c.Next(); {
		switch string(c.Name()) {
		case "apiVersion":
			req.APIVersion, _ = rawjson.String(c.Value())
		case "kind":
			kind, _ = rawjson.String(c.Value())
		case "request":
			if c.Begins() == 'n' {
				c.Value()
				break
			}
			req.parse(&c)
		default:
			c.Value()
		}
	}
	if err := c.End(); err != nil {
		return Request{}, fmt.Errorf("the body is no %s: %w", p.Kind, err)
	}
	if kind != p.Kind || !slices.Contains(p.apiVersions(), req.APIVersion) {
		return Request{}, fmt.Errorf("the body has kind %q of apiVersion %q: this handler understands %s of %s",
			kind, req.APIVersion, p.Kind, strings.Join(p.apiVersions(), " and "))
	}
	if req.Raw == nil {
		return Request{}, fmt.Errorf("the %s has no request", p.Kind)
	}
	if req.UID == "" {
		return Request{}, fmt.Errorf("the request of the %s has no uid", p.Kind)
	}
	return req, nil
}

// parse cuts the request at the cursor.
func (r *Request) parse(c *rawjson.Cursor) {
	r.Members = r.Members[:0] // of a request that was there twice, the last counts
	begin := c.Offset()
	for c.Enter('{'); c.Next(); {
		m := Member{Name: string(c.Name())}
		if begin := c.Offset(); c.Begins() == '[' {
			m.Elements = [][]byte{}
			for c.Enter('['); c.Next(); {
				m.Elements = append(m.Elements, c.Cut())
			}
			m.Value = c.Since(begin)
		} else {
			m.Value = c.Cut()
		}
		if m.Name == "uid" {
			uid, _ := rawjson.String(m.Value)
			r.UID = types.UID(uid)
		}
		r.Members = append(r.Members, m)
	}
	r.Raw = c.Since(begin)
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
	if req.UID == "uid" {
		req.UID = "" // the body ends between the name and the value
	}
	return req
}
