// Package llm limits the tokens, and the money, of calls of language models whose APIs are in the
// style of OpenAI (chat completions, completions, responses, embeddings) or Anthropic (messages),
// streamed or not.
//
//	meter, err := llm.New(llm.Options{Engine: engine})
//	client := &http.Client{Transport: meter.Transport(nil)}   // of a service that calls a provider
//	http.Handle("/v1/", meter.Handler(reverseProxy))          // of a gateway in front of one
//
// Nobody knows what a call costs before it has ended. So the meter takes the tokens of the prompt
// and an estimate of those of the answer before the call is sent: a quantile of the answers to calls
// like it, at most what the request allows. As parts of the answer come it takes what they cost and
// gives back as much of the estimate, so that a limit holds by when tokens are used. The usage that
// the provider reports corrects both.
//
// # Resources and attributes
//
// Tokens are taken from the resource "llm:tokens", millionths of the money that a call costs from
// "llm:cost", if rule documents, see [PriceKind], or [Options.Prices] have a price of its model. A call enters each of them twice: for
// its prompt, and for the estimate. Limits of calls belong to another resource, such as that of
// nethttp.Transport or nethttp.Middleware around or below it.
//
//	flow:
//	- {name: provider, resource: "llm:tokens", limit: 1000000, window: 1m, algorithm: fixedWindow, scope: fleet, fleet: {mode: ask}}
//	hotParam:
//	- {name: tenants, resource: "llm:tokens", param: tenant, limit: 50000, window: 1m}
//
// Rules can look at the attributes model; key, which is made of a SHA-256 of the API key and never
// is the key; tenant, see [Options.Tenant]; and style, one of chat, responses, embeddings and
// messages. They are read only if a rule asks.
//
// # What is passed on
//
// Requests to other paths are passed on as they are, unguarded and without an allocation. A request
// to a known path that cannot be read, as it is too long or no JSON, is guarded by its length.
// Answers that cannot be read are passed on unharmed and charged by the estimate: [Report.Unread]
// and a warning, once for each reason, say so. Bodies are held in memory up to [Options.MaxRequest],
// [Options.MaxResponse] and [Options.MaxEvent]. Nothing of a body or a key is ever logged.
package llm
