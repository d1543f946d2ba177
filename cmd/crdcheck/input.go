package main

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// file is what was read from one place.
type file struct {
	name  string
	named bool // on the command line, not found in a directory
	data  []byte
}

// read reads files, those below directories, and standard input. It says what cannot be
// read, and goes on.
func (c *command) read(ctx context.Context, paths []string) (files []file) {
	for _, path := range paths {
		if path == "-" {
			data, err := readAll(ctx, c.in)
			if c.interrupted(ctx) {
				return nil
			}
			if err != nil {
				c.fail(fmt.Errorf("standard input: %w", err))
				continue
			}
			files = append(files, file{"-", true, data})
			continue
		}
		names, named := c.expand(path)
		for _, name := range names {
			if c.interrupted(ctx) {
				return nil
			}
			c.progress.show("read %s", name)
			data, err := os.ReadFile(name)
			if err != nil {
				c.fail(err)
				continue
			}
			files = append(files, file{name, named, data})
		}
	}
	return files
}

// expand returns the file that a path names, or the files with manifests in a directory.
func (c *command) expand(path string) (names []string, named bool) {
	if path == "-" {
		return []string{path}, true
	}
	info, err := os.Stat(path)
	switch {
	case os.IsNotExist(err):
		c.fail(fmt.Errorf("the path %q does not exist", path))
		return nil, true
	case err != nil:
		c.fail(err)
		return nil, true
	case info.IsDir():
		return c.below(path), false
	}
	return []string{path}, true
}

// readAll is io.ReadAll, but ends with the context: a read of a terminal or a pipe does
// not. Such a read ends with the process.
func readAll(ctx context.Context, r io.Reader) (data []byte, err error) {
	done := make(chan struct{})
	var all []byte
	var failed error
	go func() {
		all, failed = io.ReadAll(r)
		close(done)
	}()
	select {
	case <-done:
		return all, failed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// below returns the files with manifests in a directory, which may be a symbolic link.
func (c *command) below(dir string) (names []string) {
	// Unlike filepath.WalkDir, this follows a link at the root.
	_ = fs.WalkDir(os.DirFS(dir), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			c.fail(fmt.Errorf("%s: %w", dir, err))
			return nil // the others can still be read
		}
		if !entry.IsDir() && slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(name)) {
			names = append(names, filepath.Join(dir, filepath.FromSlash(name)))
		}
		return nil
	})
	return names
}
