package file_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/datasource/file"
)

// A service loads its rules from a directory and follows their changes.
func Example() {
	dir, err := os.MkdirTemp("", "rules")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	document := []byte("flow:\n  - {resource: orders, limit: 0}\n")
	if err := os.WriteFile(filepath.Join(dir, "orders.yaml"), document, 0o600); err != nil {
		panic(err)
	}

	engine := core.New(core.Config{})
	defer engine.Close()
	source, err := file.New(dir, file.Options{})
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	if err := engine.Follow(ctx, source); err != nil {
		panic(err)
	}
	if err := engine.Ready(ctx); err != nil {
		panic(err)
	}

	_, err = engine.Entry(ctx, "orders")
	fmt.Println("blocked:", errors.Is(err, core.ErrBlocked))
	// Output: blocked: true
}
