package review

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crdkit/crdkit/internal/rawjson"
)

// Request is what both protocols ask alike.
type Request struct {
	// APIVersion of the review, such as admission.k8s.io/v1. The answer has the same.
	APIVersion string
	// UID of the request. The answer has the same.
	UID types.UID
	// Raw is the text of the request, unless it has the protocol's list. As for Head.
	Raw []byte
	// Head holds the texts of the members that [Protocol.Head] names, in that order;
	// nil is one that is absent. If the protocol has no list, they were cut out and not
	// looked at: what reads them must check that they are JSON.
	Head [][]byte
	// List is a cursor inside the protocol's list, before the first element; nil if
	// there is no list. Whoever answers reads it to its end.
	List *rawjson.Cursor

	finish func() error
}

// Finish reads what comes after the list, once that has been read. The error says that
// the request is none that can be answered.
func (r *Request) Finish() error {
	if err := r.finish(); err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	return nil
}

// parser reads a review, and passes over the text once. A list of objects may be very
// large: where the head comes before it, as the API server sends it, the list is left
// to whoever answers, and the rest is read afterwards.
type parser struct {
	Request
	protocol *Protocol
	cursor   rawjson.Cursor
	list     rawjson.Cursor // where it had to be cut out
	kind     string
	asked    bool
	stopped  bool // before the list
	err      error
}

// reset makes the parser ready for another review.
func (p *parser) reset(protocol *Protocol) {
	p.protocol, p.kind, p.asked, p.stopped, p.err = protocol, "", false, false, nil
	p.APIVersion, p.UID, p.Raw, p.List = "", "", nil, nil
	p.Head = append(p.Head[:0], make([][]byte, len(protocol.Head))...)
	if p.finish == nil {
		p.finish = p.readOn
	}
}

// parse reads the review, as far as to the list if that can be left for later.
func (p *parser) parse(body []byte) error {
	p.cursor = rawjson.NewCursor(body)
	p.cursor.Enter('{')
	return p.read()
}

// readOn reads what comes after a list that parse has left.
func (p *parser) readOn() error {
	if !p.stopped {
		return nil
	}
	p.stopped = false
	p.readRequest()
	return p.read()
}

func (p *parser) read() error {
	p.readReview()
	if p.stopped {
		return p.check()
	}
	if err := p.cursor.End(); p.err == nil {
		p.err = err
	}
	if p.err != nil {
		return fmt.Errorf("the body is no %s: %w", p.protocol.Kind, p.err)
	}
	return p.check()
}

// check returns an error if the review is not one of this protocol.
func (p *parser) check() error {
	if p.kind != p.protocol.Kind || !slices.Contains(p.protocol.apiVersions, p.APIVersion) {
		return fmt.Errorf("the body has kind %q of apiVersion %q: this handler understands %s of %s",
			p.kind, p.APIVersion, p.protocol.Kind, strings.Join(p.protocol.apiVersions, " and "))
	}
	if !p.asked {
		return fmt.Errorf("the %s has no request", p.protocol.Kind)
	}
	if p.UID == "" {
		return fmt.Errorf("the request of the %s has no uid", p.protocol.Kind)
	}
	return nil
}

func (p *parser) readReview() {
	c := &p.cursor
	for !p.stopped && c.Next() {
		switch string(c.Name()) {
		case "apiVersion":
			p.once("apiVersion", p.APIVersion != "")
			p.APIVersion = known(c.Value(), p.protocol.apiVersions...)
		case "kind":
			p.once("kind", p.kind != "")
			p.kind = known(c.Value(), p.protocol.Kind)
		case "request":
			p.once("request", p.asked)
			if c.Begins() == 'n' {
				c.Value()
				break
			}
			p.asked = true
			begin := c.Offset()
			c.Enter('{')
			p.readRequest()
			if p.List == nil {
				p.Raw = c.Since(begin)
			}
		default:
			c.Value()
		}
	}
}

func (p *parser) readRequest() {
	c := &p.cursor
	for c.Next() {
		name := c.Name()
		switch i := slices.Index(p.protocol.Head, string(name)); {
		case i >= 0:
			p.once(p.protocol.Head[i], p.Head[i] != nil)
			if p.protocol.List == "" {
				p.Head[i] = c.Cut() // it may be large, and is read once more
			} else {
				p.Head[i] = c.Value()
			}
		case string(name) == "uid":
			p.once("uid", p.UID != "")
			uid, _ := rawjson.String(c.Value())
			p.UID = types.UID(uid)
		case p.protocol.List != "" && string(name) == p.protocol.List:
			p.once(p.protocol.List, p.List != nil)
			if c.Begins() == 'n' {
				c.Value()
				break
			}
			if p.ready() {
				p.List, p.stopped = c, true
				c.Enter('[')
				return
			}
			p.List, p.list = &p.list, *c
			p.list.Enter('[')
			c.Cut()
		default:
			c.Value()
		}
	}
}

// ready says whether a list can be read now.
func (p *parser) ready() bool {
	return p.err == nil && p.kind != "" && p.APIVersion != "" && p.UID != "" &&
		!slices.ContainsFunc(p.Head, func(text []byte) bool { return text == nil })
}

// once refuses a member that is there twice: a list may have been answered for what
// the first one said.
func (p *parser) once(name string, twice bool) {
	if twice && p.err == nil {
		p.err = fmt.Errorf("%s is there twice", name)
	}
}

// known decodes a string, which is most likely one of those.
func known(text []byte, likely ...string) string {
	for _, s := range likely {
		if len(text) == len(s)+2 && string(text[1:len(text)-1]) == s {
			return s
		}
	}
	s, _ := rawjson.String(text)
	return s
}

// salvage reads the version and the UID of a body that parse refused, as far as
// they can be read: even a truncated question is answered with its UID.
func (p *Protocol) salvage(body []byte) *Request {
	req := &Request{}
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
	// The body may end between the name and the value.
	if req.UID == "uid" {
		req.UID = ""
	}
	if req.APIVersion == "apiVersion" {
		req.APIVersion = ""
	}
	return req
}
