package rawjson

// Guess goes on to the next member of an object, like Next, if the member begins with
// that text, a quoted name and a colon, and no white space is around it. Otherwise it
// returns false, and the cursor stays. Name is not for a member that was guessed.
func (c *Cursor) Guess(name []byte) bool {
	b, i := c.text, c.at
	if c.err != nil || i >= len(b) {
		return false
	}
	if !c.first {
		if b[i] != ',' {
			return false
		}
		i++
	}
	end := i + len(name)
	if end >= len(b) || string(b[i:end]) != string(name) || b[end] <= ' ' {
		return false
	}
	c.start, c.at, c.first = i, end, false
	return true
}
