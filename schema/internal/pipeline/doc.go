// Package pipeline is what packages schema, offline and breaking do to an object alike: the
// steps that need schemas alone, the settings of a request, and its limits.
package pipeline
