package rawjson

import "bytes"

// At returns the text of the value at a path of names, or nil. Of duplicate
// members the last counts, as in the API server's decoder.
func At(object []byte, path ...string) (value []byte) {
	c := NewCursor(object)
	if c.Begins() != '{' {
		return nil
	}
	for c.Enter('{'); c.Next('{'); {
		found := string(c.Name()) == path[0]
		if text := c.Value(); found {
			value = text
		}
	}
	if len(path) > 1 && value != nil {
		return At(value, path[1:]...)
	}
	return value
}

// Set returns a copy of an object's text in which the member of that name has
// the value; nil removes it. A new member goes to the end. Of duplicate members
// none but the new one is left. The error is that of [Members].
func Set(object []byte, name string, value []byte) ([]byte, error) {
	out := make([]byte, 0, len(object)+len(name)+len(value)+4)
	out = append(out, '{')
	put := func(member []byte) { out = AppendMember(out, member) }
	set := func() {
		if value != nil {
			put(bytes.Join([][]byte{Quote(name), value}, []byte{':'}))
			value = nil
		}
	}
	for m, err := range Members(object) {
		switch {
		case err != nil:
			return nil, err
		case string(m.Name) == name:
			set()
		default:
			put(m.Text)
		}
	}
	set()
	return append(out, '}'), nil
}

// AppendMember appends a member to an object that is not closed yet.
func AppendMember(object, member []byte) []byte {
	if len(object) > 1 {
		object = append(object, ',')
	}
	return append(object, member...)
}
