// Package rules reads rule documents: YAML or JSON in, a sound [Set] out, or
// every mistake at once, each with its place and what to do about it.
package rules
