//go:build !race

package roundtrip

const catalogueSeeds = 10
