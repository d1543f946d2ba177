// Package reload follows the changes of files such as those of a Secret's volume.
package reload

import (
	"bytes"
	"encoding/pem"
	"errors"
	"os"
	"slices"
	"sync"
	"time"
)

// Interval is how long a value is used without another look at its files.
const Interval = time.Second

// Files holds a value that is made of the content of files. Methods may be called
// concurrently.
type Files[T any] struct {
	paths []string
	parse func(contents [][]byte) (T, error)

	mu       sync.Mutex
	checked  time.Time
	contents [][]byte // of which value was made
	value    T
}

// New reads the files, and calls parse with their contents in the order of paths, as it
// will whenever one of them has changed. The error is that of reading or of parse.
//
// It does not matter how files change: in place, by a rename, or by the swap of a
// symbolic link. While they cannot be read or parsed, the last good value is kept.
func New[T any](parse func(contents [][]byte) (T, error), paths ...string) (*Files[T], error) {
	f := &Files[T]{paths: paths, parse: parse}
	if _, err := f.Check(); err != nil {
		return nil, err
	}
	return f, nil
}

// Value returns the last good value. It reads the files if that was not done within
// [Interval].
func (f *Files[T]) Value() T {
	f.mu.Lock()
	defer f.mu.Unlock()
	if time.Since(f.checked) >= Interval {
		_ = f.load() // Check reports it
	}
	return f.value
}

// Check reads the files now. It returns the last good value, and an error if the files
// cannot be used.
func (f *Files[T]) Check() (T, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	err := f.load()
	return f.value, err
}

// load reads the files. The caller holds the lock.
func (f *Files[T]) load() error {
	f.checked = time.Now()
	contents := make([][]byte, len(f.paths))
	for i, path := range f.paths {
		var err error
		if contents[i], err = os.ReadFile(path); err != nil {
			return err
		}
	}
	if slices.EqualFunc(contents, f.contents, bytes.Equal) {
		return nil
	}
	value, err := f.parse(contents)
	if err != nil {
		return err
	}
	f.contents, f.value = contents, value
	return nil
}

// Complete returns an error if a file of PEM certificates is cut off: its readers would skip the last certificate.
func Complete(text []byte) error {
	for block := new(pem.Block); block != nil; {
		block, text = pem.Decode(text)
	}
	if bytes.Contains(text, []byte("-----BEGIN")) {
		return errors.New("the last certificate is not complete")
	}
	return nil
}
