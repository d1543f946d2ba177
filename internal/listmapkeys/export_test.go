package listmapkeys

// At returns the keys of the list at a path of field names.
func (t *Tree) At(path []string) []string {
	for _, name := range path {
		t = t.Field([]byte(name))
	}
	return t.Keys()
}
