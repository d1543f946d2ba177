package rawjson

// AppendCompact appends a value to dst, without the white space around its tokens. The
// value must be JSON; strings and numbers keep their text.
func AppendCompact(dst, value []byte) []byte {
	from := 0
	for i := 0; i < len(value); {
		switch value[i] {
		case '"':
			end, err := skipString(value, i)
			if err != nil {
				return append(dst, value[from:]...)
			}
			i = end
		case ' ', '\t', '\r', '\n':
			dst = append(dst, value[from:i]...)
			i = skipSpace(value, i)
			from = i
		default:
			i++
		}
	}
	return append(dst, value[from:]...)
}
