//go:build race

package roundtrip

// Everything takes ten times as long then; make test runs this package without, too.
const catalogueSeeds = 1
