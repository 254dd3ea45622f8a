package lists_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/datasource/lists"
	"github.com/penstock-go/penstock/list"
)

// feed is a source of one list.
type feed struct{ text []byte }

func (feed) Name() string { return "feed:" }

func (f feed) Run(ctx context.Context, sink core.Sink) error {
	digest := lists.DigestOf(f.text)
	sink.Apply(core.Change{Complete: true, Documents: []core.Document{{Name: "scrapers", Data: digest[:]}}})
	<-ctx.Done()
	return ctx.Err()
}

func (f feed) open(_ context.Context, d lists.Document) (lists.Text, error) {
	return lists.Text{ReadCloser: io.NopCloser(bytes.NewReader(f.text)), Digest: d.Digest}, nil
}

// A source of one's own delivers digests, and opens texts when these change.
func ExampleStart() {
	ctx := context.Background()
	source := feed{[]byte("192.0.2.0/24\n198.51.100.7\n")}
	registry := list.NewRegistry()
	watch, err := lists.Start(ctx, lists.Config{
		Registry: registry, Source: source, Open: source.open, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		panic(err)
	}
	defer watch.Close()
	if err := watch.Ready(ctx); err != nil {
		panic(err)
	}
	fmt.Println(registry.Get("scrapers").Len(), "entries")
	// Output: 2 entries
}
