// Access shows an HTTP service that refuses the addresses of a list. The list is a file,
// which is replaced while the service runs: first by another list, then by one with a
// mistake, which changes nothing.
//
//	go run ./examples/access
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"github.com/penstock-go/penstock/access"
	"github.com/penstock-go/penstock/adapters/clientip"
	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/datasource/file"
	"github.com/penstock-go/penstock/list"
	"github.com/penstock-go/penstock/rules"
)

func main() {
	if err := run(os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(out io.Writer) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	dir, err := os.MkdirTemp("", "penstock-access")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	quiet := slog.New(slog.DiscardHandler) // the log says what this program prints
	engine := core.New(core.Config{Logger: quiet})
	defer engine.Close()
	watch, err := file.WatchLists(ctx, engine.Lists(), dir, file.Options{Interval: 50 * time.Millisecond, Logger: quiet})
	if err != nil {
		return err
	}
	defer watch.Close()
	if err := watch.Ready(ctx); err != nil {
		return err
	}
	err = engine.Load(rules.Set{Access: []access.Rule{{Name: "no-scrapers", Match: "*", List: "scrapers"}}})
	if err != nil {
		return err
	}
	server := httptest.NewServer(service(engine))
	defer server.Close()
	return show(ctx, out, dir, engine, server.URL)
}

// service returns an HTTP service that expects to be behind a proxy on this machine.
func service(engine *core.Engine) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /search", func(http.ResponseWriter, *http.Request) {})
	return nethttp.Middleware(engine, nethttp.Options{
		Clients: clientip.Options{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}},
	})(mux)
}

// replace writes another file and renames it, so that nobody reads half of a list.
func replace(dir, text string) error {
	path := filepath.Join(dir, "scrapers.txt")
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

func show(ctx context.Context, out io.Writer, dir string, engine *core.Engine, url string) error {
	changes := []struct {
		title, text string
		isRead      func(list.Status) bool
	}{
		{"The list has 192.0.2.0/24.", "192.0.2.0/24\n", func(s list.Status) bool { return s.Entries == 1 }},
		{
			"It is replaced by 198.51.100.0/24 and 203.0.113.7.", "198.51.100.0/24\n203.0.113.7\n",
			func(s list.Status) bool { return s.Entries == 2 },
		},
		{"It is replaced by 203.0.113.300.", "203.0.113.300\n", func(s list.Status) bool { return s.Err != nil }},
	}
	for _, change := range changes {
		if err := replace(dir, change.text); err != nil {
			return err
		}
		status, err := wait(ctx, engine.Lists(), change.isRead)
		if err != nil {
			return err
		}
		fmt.Fprintln(out, change.title)
		if status.Err != nil {
			fmt.Fprintln(out, "  the last good list stays:", status.Err)
		}
		if err := search(ctx, out, url); err != nil {
			return err
		}
	}
	return nil
}

// wait waits until the new text of the list has been read.
func wait(ctx context.Context, lists *list.Registry, isRead func(list.Status) bool) (list.Status, error) {
	for {
		for _, status := range lists.Status() {
			if isRead(status) {
				return status, nil
			}
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return list.Status{}, errors.New("the list was not read")
		}
	}
}

// search makes a call of each client, as the proxy passes it on.
func search(ctx context.Context, out io.Writer, url string) error {
	for _, address := range []string{"192.0.2.10", "198.51.100.20", "203.0.113.7"} {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/search", http.NoBody)
		if err != nil {
			return err
		}
		request.Header.Set("X-Forwarded-For", address)
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return err
		}
		if err := response.Body.Close(); err != nil {
			return err
		}
		fmt.Fprintf(out, "  %-14s %s\n", address, response.Status)
	}
	return nil
}
