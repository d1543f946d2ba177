package rawjson

// Rest returns the text from the cursor to the end.
func (c *Cursor) Rest() []byte { return c.text[c.at:] }
