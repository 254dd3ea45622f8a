// Package rules reads rule documents: YAML or JSON in, a sound [Set] out, or
// every mistake at once, each with its place and what to do about it.
//
// # Documents
//
// A document is a mapping of kinds of rules to lists of them:
//
//	flow:
//	  - name: create-qps          # default: the resource, or the pattern
//	    resource: orders:create   # or match: "orders:*" and perResource: true
//	    limit: 1000               # required; tokens per window, 0 blocks all
//	    window: 1s
//	    algorithm: slidingWindow  # or fixedWindow; the next rule shows the others
//	    buckets: 10               # slidingWindow
//	    strict: false             # slidingWindow
//	    warmUp: {period: 10s, coldFactor: 3, step: 1s}
//	    origin: mobile
//	    related: orders:write     # slidingWindow and fixedWindow
//	    shadow: false
//	  - name: pay-burst
//	    resource: orders:pay
//	    limit: 100
//	    algorithm: tokenBucket    # or throttle
//	    maxWait: 500ms            # tokenBucket and throttle
//	    burst: 200                # tokenBucket
//	    overdraft: false          # tokenBucket
//	isolation:
//	  - {name: render-pool, resource: reports:render, limit: 10, maxWait: 2s}
//	breaker:
//	  - {name: pay-errors, resource: pay:charge, threshold: 0.5, minCalls: 20, openFor: 5s}
//	hotParam:
//	  - {name: per-user, resource: orders:create, param: user, limit: 10, values: {vip: 100}}
//	access:
//	  - {name: no-scrapers, match: "*", deny: [192.0.2.0/24], list: scrapers}
//
// The types of the rules say what the fields mean: see [flow.Rule], [isolation.Rule],
// [breaker.Rule], [hotparam.Rule] and [access.Rule]; [Example] returns a document with
// all of them. Engines may know more kinds, see [NewTable]; [Table.ParseKnown] reads documents
// that may have rules of kinds that one does not know. A field that has no effect
// beside the others is a mistake. A document without rules says so: "flow: []". An empty
// one is a mistake, so that a file caught while it is being rewritten does not take the
// rules out.
//
// # Syntax
//
// A document whose first character is "{" and which is valid JSON is read as JSON, any
// other as YAML 1.2 (core schema). When it is neither, the JSON error is reported if it
// begins like JSON, with "{" and then a quote, and the YAML error if not. One whose name
// ends in ".json" and which begins with a bracket has to be JSON. Both kinds of document have the same fields.
//
// Mistakes quote the values and the names of fields of rules. Of a document that names
// no kind of rules they show nothing, for it may be another file with secrets in it.
//
// Refused with a message, as they hide what a rule says: unknown fields, fields
// given twice or left empty, numbers and booleans in quotes (and unquoted ones
// where text belongs), numbers other than decimal ones, anchors, aliases, merge
// keys and tags of YAML, several documents in one. A default cannot be had by
// writing the zero value ("buckets: 0"); it takes leaving the field out.
//
// # Differences
//
// [Diff] tells what becomes of the rules when one set takes the place of
// another, field by field, as documents write them.
package rules
