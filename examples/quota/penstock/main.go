// Penstock is the command line of a service that brings a kind of rules of its own, the quotas
// of package quota: all of its commands know them.
//
//	go run ./examples/quota/penstock example quota
//	go run ./examples/quota/penstock validate rules/
package main

import (
	"os"

	"github.com/penstock-go/penstock/cmd/penstock/cli"

	"github.com/penstock-go/penstock/examples/quota/quota"
)

func main() { os.Exit(cli.Main(quota.Kind())) }
