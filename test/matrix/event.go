package matrix

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
)

// event is a line of `go test -json` (go doc cmd/test2json; attributes, which it does not
// name, are in cmd/internal/test2json). Test is empty in what is about a package.
type event struct {
	Action, Package, Test, Output string
	Key, Value                    string // of an attribute
	ImportPath                    string // of the output of a build
}

// readEvents calls each with every event, and returns the first error of either.
func readEvents(r io.Reader, each func(event) error) error {
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			var e event
			if err := json.Unmarshal(line, &e); err != nil {
				return fmt.Errorf("go test -json: %w: %.200q", err, line)
			}
			if err := each(e); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
