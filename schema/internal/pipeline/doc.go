// Package pipeline is what package schema and package offline both do to an object: the
// steps that need schemas alone, and the settings of a request.
package pipeline
