package review

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/crdkit/crdkit/internal/rawjson"
)

// Request is what both protocols ask alike.
type Request struct {
	// APIVersion of the review, such as admission.k8s.io/v1. The answer has the same.
	APIVersion string
	// UID of the request. The answer has the same.
	UID types.UID
	// Raw is the text of the request, in the body.
	Raw []byte
	// Members is what else the protocol has read.
	Members Members
	// Pieces are the beginning of the answer. Answer adds what is too long to be copied as it grows.
	Pieces [][]byte

	*account // of the memory of the request: see Take
}

// Members is what a protocol reads of a request. It may use its memory again for the next one.
type Members interface {
	// Reset forgets what has been read. If large is set, the request is read in parts: see
	// [Protocol.InParts].
	Reset(large bool)
	// Read reads the value at the cursor, of the member of that name, or passes over it.
	Read(name []byte, c *rawjson.Cursor) error
}

// parser reads a review, whole. Of members that are there twice the last one counts, as in
// the API server's decoder.
type parser struct {
	Request
	cursor rawjson.Cursor
	kind   string
	large  bool
}

// parse reads a review, and uses the memory of the one before again. If it fails, the
// version and the UID are there if they were read: the API server writes them first.
func (p *parser) parse(protocol *Protocol, body []byte, large bool) error {
	*p = parser{Request: p.Request, cursor: rawjson.NewCursor(body), large: large}
	if p.Members == nil {
		p.Members = protocol.New()
	}
	err := p.readReview(protocol)
	if err == nil {
		err = p.cursor.End()
	}
	switch {
	case err != nil:
		return fmt.Errorf("the body is not of kind %s: %w", protocol.Kind, err)
	case p.kind != protocol.Kind || !slices.Contains(protocol.apiVersions, p.APIVersion):
		return fmt.Errorf("the body has kind %q of apiVersion %q: this handler understands %s of %s",
			p.kind, p.APIVersion, protocol.Kind, strings.Join(protocol.apiVersions, " and "))
	case p.Raw == nil:
		return fmt.Errorf("the %s has no request", protocol.Kind)
	case p.UID == "":
		return fmt.Errorf("the request of the %s has no uid of up to %d bytes", protocol.Kind, maxText)
	}
	return nil
}

// maxText is how long an apiVersion, a kind or a UID may be in bytes. Answers repeat them, and their
// memory is not counted.
const maxText = 1 << 10

// text reads a string, or "" if the value is something else or too long.
func text(c *rawjson.Cursor) string {
	value := c.Value()
	if len(value) > maxText {
		return ""
	}
	s, _ := rawjson.String(value)
	return s
}

func (p *parser) readReview(protocol *Protocol) error {
	c := &p.cursor
	for c.Enter('{'); c.Next('{'); {
		switch string(c.Name()) {
		case "apiVersion":
			p.APIVersion = text(c)
		case "kind":
			p.kind = text(c)
		case "request":
			if err := p.readRequest(); err != nil {
				return err
			}
		default:
			c.Value()
		}
	}
	return nil
}

func (p *parser) readRequest() error {
	c := &p.cursor
	p.UID, p.Raw = "", nil
	p.Members.Reset(p.large)
	if c.Begins() == 'n' {
		c.Value()
		return nil
	}
	begin := c.Offset()
	for c.Enter('{'); c.Next('{'); {
		name := c.Name()
		if string(name) == "uid" {
			p.UID = types.UID(text(c))
		} else if err := p.Members.Read(name, c); err != nil {
			return err
		}
	}
	p.Raw = c.Since(begin)
	return nil
}
