package review

import (
	"io/fs"
	"net/http"
)

// HandlerIn is Handler with so many bytes of memory.
func (p Protocol) HandlerIn(bytes int64) http.Handler { return p.handler(&memory{max: bytes}) }

func MemoryLimit(root fs.FS) int64 { return memoryLimit(root) }
