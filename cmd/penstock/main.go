// Command penstock tests rules, publishes them to etcd, shows which instances run them,
// and decides by them for proxies: see penstock --help. A program that brings kinds of rules of its own has
// a penstock that knows them by package cli.
package main

import (
	"os"

	"github.com/penstock-go/penstock/adapters/llm"
	"github.com/penstock-go/penstock/cmd/penstock/cli"
)

// It knows prices of language models, so that it judges documents that have some.
func main() { os.Exit(cli.Main(llm.PriceKind())) }
