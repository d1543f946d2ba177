package offline

// generateName is GenerateName of apiserver/pkg/storage/names/generate.go, which counts
// instead of guessing.
func (r *Resource) generateName(base string) string {
	const letters, most = "bcdfghjklmnpqrstvwxz2456789", 58
	r.mu.Lock()
	n := r.names
	r.names++
	r.mu.Unlock()
	suffix := []byte("bbbbb")
	for i := len(suffix) - 1; i >= 0; i-- {
		suffix[i] = letters[n%uint64(len(letters))]
		n /= uint64(len(letters))
	}
	return base[:min(len(base), most)] + string(suffix)
}
