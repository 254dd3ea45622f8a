//go:build versions

// Package examples requires the newest versions of frameworks that no example uses, so that the
// workspace tests the adapters with them.
package examples

import (
	_ "connectrpc.com/connect"
	_ "github.com/go-kratos/kratos/v2"
)
