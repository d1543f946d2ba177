package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/crdkit/crdkit/schema"
)

// subject is an object and its definition's version, which is nil if no server would know
// its kind in that version.
type subject struct {
	object
	version *schema.Version
}

// noMatch is what kubectl says of a kind or version that no server knows.
func (o object) noMatch() error {
	if o.Kind == "" {
		return errors.New("no kind")
	}
	if o.APIVersion == "" {
		return errors.New("no apiVersion")
	}
	return fmt.Errorf("no matches for kind %q in version %q", o.Kind, o.APIVersion)
}

// subjects returns the objects of files that the definitions concern: those in their
// groups. The others are counted, and passed over: in a file that is named, with a warning.
func (c *command) subjects(ctx context.Context, all definitions, paths []string) (found []subject, passedOver int) {
	groups := all.groups()
	mentions := mention(slices.Collect(maps.Keys(groups)))
	for _, f := range c.read(ctx, paths) {
		for d := range f.documents() {
			if c.interrupted(ctx) {
				return found, passedOver
			}
			c.progress.show("read %s:%d", f.name, d.line)
			for _, o := range d.objects {
				gvk := o.gvk()
				version := all.version(gvk)
				switch concerned := o.Kind != "" && groups[gvk.Group]; {
				case all.faulty[gvk.GroupKind()]:
					c.fail(fmt.Errorf("%s: %s is not checked: its definition is faulty", o.place, o))
				case version == nil && all.incomplete:
					passedOver++ // its definition may be what could not be read
				case (o.Kind == "" || o.APIVersion == "") && f.named:
					c.fail(fmt.Errorf("%s: %w", o.place, o.noMatch()))
				case !concerned:
					if f.named {
						c.warn("%s: passed over: %s", o.place, o.noMatch())
					}
					passedOver++
				default:
					found = append(found, subject{o, version})
				}
			}
			for _, other := range d.others {
				if f.named {
					c.fail(fmt.Errorf("%s: not an object", other))
				} else {
					passedOver++
				}
			}
			switch {
			case d.err == nil:
			case f.named || mentions(d.unread):
				c.fail(d.err)
			default:
				c.warn("passed over: %s", d.err)
				passedOver++
			}
		}
	}
	return found, passedOver
}

// mention returns a function that reports whether a text that cannot be read, such as
// a template, seems to have an object of a group.
func mention(groups []string) func(text []byte) bool {
	for i := range groups {
		groups[i] = regexp.QuoteMeta(groups[i])
	}
	pattern := regexp.MustCompile(`apiVersion["']?\s*:\s*["']?(?:` + strings.Join(groups, "|") + `)/`)
	return func(text []byte) bool {
		return len(groups) > 0 && bytes.Contains(text, []byte("apiVersion")) && pattern.Match(text)
	}
}
