package conversion

import (
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdkit/crdkit/internal/rawjson"
	"github.com/crdkit/crdkit/internal/review"
)

// request is a ConversionRequest.
type request struct {
	to    schema.GroupVersion // the desired version
	text  []byte              // of all objects
	parts []part              // of a large request
}

// part is some of a request's objects in a row, and their results.
type part struct {
	list   []byte         // the objects of a large request, joined by commas
	cursor rawjson.Cursor // at its beginning, to read it again
	offset int            // of the list
	large  []rawjson.Span // in it
	first  int            // the index of the first one
	n      int            // how many have been converted

	text   []byte // the response so far, or what this part adds to it
	seen   map[schema.GroupVersionKind]int
	failed schema.GroupVersionKind
	err    error // of the first object that failed
}

// partSize is the least number of bytes that are converted in one go, where there are more.
const partSize = 32 << 10

// readRequest reads a request, and has the converter parse the objects of a small one.
func readRequest(req *review.Request, c *converter) (asked request, err error) {
	desired := ""
	for name := range req.Members {
		switch string(name) {
		case "desiredAPIVersion":
			desired, _ = c.arena.String(&req.Cursor)
		case "objects":
			err = asked.readObjects(req, c)
		default:
			req.Cursor.Value()
		}
		if err != nil {
			break
		}
	}
	if err := req.End(err); err != nil {
		return asked, err
	}
	if desired == "" {
		return asked, apierrors.NewBadRequest("request.desiredAPIVersion is required")
	}
	if asked.to, err = schema.ParseGroupVersion(desired); err != nil {
		return asked, apierrors.NewBadRequest("request.desiredAPIVersion: " + err.Error())
	}
	return asked, nil
}

// readObjects parses the objects of a small request. It cuts those of a large one into parts, which
// are parsed only when they are converted, because together they would take many times the memory of
// their text. It outlines these parts, so that the second pass need not read all of them.
func (asked *request) readObjects(req *review.Request, c *converter) error {
	cursor, n := &req.Cursor, 0
	begin := cursor.Offset()
	asked.text, asked.parts, c.objects = nil, nil, c.objects[:0]
	if cursor.Begins() == 'n' {
		cursor.Value()
		return nil
	}
	for cursor.Enter('['); cursor.Next('['); n++ {
		switch {
		case !req.Large:
			c.objects = slices.Grow(c.objects, 1)[:n+1]
			c.objects[n].parse(&c.arena, c.registry.metadata, cursor)
		case cursor.Begins() != '{':
			cursor.Enter('{') // an error
		default:
			if last := len(asked.parts) - 1; last < 0 || len(asked.parts[last].list) >= partSize {
				asked.parts = append(asked.parts, part{first: n, offset: cursor.Offset()})
			}
			p := &asked.parts[len(asked.parts)-1]
			_, p.large = cursor.OutlineOfLarge(p.large)
			p.list = cursor.Since(p.offset)
			p.cursor = cursor.Again(p.offset, p.large)
		}
		if err := cursor.Err(); err != nil {
			return fmt.Errorf("request.objects[%d]: %w", n, err)
		}
	}
	asked.text = cursor.Since(begin)
	return nil
}
