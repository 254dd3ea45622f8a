// Package rules reads rule documents: YAML or JSON in, a sound [Set] out, or
// every mistake at once, each with its place and what to do about it.
//
// # Documents
//
// A document is a mapping of kinds of rules to lists of them:
//
//	flow:
//	  - name: create-qps         # default: the resource
//	    resource: orders:create  # required
//	    limit: 1000              # required; tokens per window, 0 blocks all
//	    window: 1s
//	    algorithm: slidingWindow
//	    buckets: 10
//	    strict: false
//	    control: throttle        # or reject, the default
//	    maxWait: 500ms
//	    warmUp: {period: 10s, coldFactor: 3, step: 1s}
//
// What the fields mean is told where the rules live: see [flow.Rule]. A
// document without rules says so: "flow: []". An empty one is a mistake, so
// that a file caught while it is being rewritten does not take the rules out.
//
// # Syntax
//
// A document whose first character is "{" and which is valid JSON is read as
// JSON, any other as YAML 1.2 (core schema). When a document is neither, the
// JSON error is reported if it begins like JSON, with "{" and then a quote,
// and the YAML error if not. Both kinds of document have the same fields.
//
// Refused with a message, as they hide what a rule says: unknown fields, fields
// given twice or left empty, numbers and booleans in quotes (and unquoted ones
// where text belongs), numbers other than decimal ones, anchors, aliases, merge
// keys and tags of YAML, several documents in one. A default cannot be had by
// writing the zero value ("buckets: 0"); it takes leaving the field out.
package rules
