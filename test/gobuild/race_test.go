//go:build race

package gobuild_test

const raceEnabled = true
