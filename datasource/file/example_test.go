package file_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
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

// A service keeps the lists in a directory, which access rules name.
func ExampleWatchLists() {
	dir, err := os.MkdirTemp("", "lists")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	scrapers := []byte("# seen last week\n192.0.2.0/24\n2001:db8::/32\n")
	if err := os.WriteFile(filepath.Join(dir, "scrapers.txt"), scrapers, 0o600); err != nil {
		panic(err)
	}

	engine := core.New(core.Config{})
	defer engine.Close()
	ctx := context.Background()
	lists, err := file.WatchLists(ctx, engine.Lists(), dir, file.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		panic(err)
	}
	defer lists.Close()
	if err := lists.Ready(ctx); err != nil {
		panic(err)
	}

	for _, status := range engine.Lists().Status() {
		fmt.Println(status.Name, status.Entries, status.InForce)
	}
	fmt.Println(engine.Lists().Get("scrapers").ContainsAddr(netip.MustParseAddr("192.0.2.7")))
	// Output:
	// scrapers 2 true
	// true
}
