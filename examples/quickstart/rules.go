package main

import "time"

// The resources are named by the adapters: method and route, or the full method
// of gRPC.
const (
	browse  = "GET:/orders/:id"
	create  = "POST:/orders"
	reserve = "/shop.Inventory/Reserve"
	pay     = "pay:charge" // named by the program
)

// What the rules say, to compare with what is seen.
const (
	browseLimit  = 200
	browsePeriod = 8 * time.Second
	coldFactor   = 3

	createLimit     = 100
	createLimitLate = 40

	reserveLimit = 50

	payRule    = "pay-errors"
	payWindow  = 2 * time.Second
	payMaxOpen = 2 * time.Second
	payProbes  = 3
)

// The documents, as an operator would keep them in etcd.
const (
	prefix = "/penstock/quickstart/"

	ordersDocument = `# GET /orders/:id starts cold: a third of the limit, the whole of it after about 8 s.
flow:
  - {name: browse-warm-up, resource: "GET:/orders/:id", limit: 200, warmUp: {period: 8s, coldFactor: 3}}
  - {name: create-limit, resource: "POST:/orders", limit: 100}
`
	ordersDocumentLate = `# The database asked for less.
flow:
  - {name: browse-warm-up, resource: "GET:/orders/:id", limit: 200, warmUp: {period: 8s, coldFactor: 3}}
  - {name: create-limit, resource: "POST:/orders", limit: 40}
`
	inventoryDocument = `# Reservations queue: one every 20 ms, nobody waits longer than half a second.
flow:
  - {name: reserve-queue, resource: /shop.Inventory/Reserve, limit: 50, algorithm: throttle, maxWait: 500ms}
`
	paymentsDocument = `# Payments are not called for a while when half of the calls of the last 2 s have failed.
breaker:
  - {name: pay-errors, resource: "pay:charge", threshold: 0.5, window: 2s, openFor: 1s, maxOpenFor: 2s, probes: 3}
`
)
