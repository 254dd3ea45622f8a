package file

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/penstock-go/penstock/datasource/lists"
	"github.com/penstock-go/penstock/list"
)

// listInterval is the default of [Options.Interval] for lists, which are large and change
// rarely.
const listInterval = time.Second

// listDocuments is the format of lists.
func listDocuments() format {
	return format{
		name: "file:", extensions: []string{".txt", ".list"}, maxSize: list.MaxSize, tooLong: "split the list",
		checksumOnly: true,
	}
}

// WatchLists keeps the lists in a directory, or in one file, in the registry, which is
// that of an engine (Engine.Lists), until ctx ends or the watch is closed. The path need
// not exist yet.
//
//	lists, err := file.WatchLists(ctx, engine.Lists(), "/etc/shop/lists", file.Options{})
//
// Of a directory, each file whose name ends in .txt or .list and does not begin with a
// dot is a list, named like the file without that ending: scrapers.txt is the list
// "scrapers". Changes are noticed as those of rule documents are, by default within two
// seconds: see the package comment. A list is built in the background and put in force as
// a whole. A list with mistakes is logged and its last good version stays. A list is
// removed when the directory can be read and does not contain it.
//
// Watch.Ready waits for the lists at the start of a program.
func WatchLists(ctx context.Context, registry *list.Registry, path string, opts Options) (*lists.Watch, error) {
	if opts.Interval == 0 {
		opts.Interval = listInterval
	}
	source, err := newSource(path, opts, listDocuments())
	if err != nil {
		return nil, err
	}
	return lists.Start(ctx, lists.Config{
		Registry: registry,
		Source:   source,
		Open:     source.openList,
		ListName: func(document string) string { return strings.TrimSuffix(document, filepath.Ext(document)) },
		Logger:   source.opts.Logger,
		Clock:    source.opts.Clock,
	})
}

// openList opens the file of a list.
func (s *Source) openList(_ context.Context, document lists.Document) (lists.Text, error) {
	path := s.join(document.Name)
	if info, err := os.Stat(s.path); err == nil && !info.IsDir() {
		path = s.path
	}
	text, err := open(path)
	if err != nil {
		return lists.Text{}, fmt.Errorf("file: %w", err)
	}
	info, err := text.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = irregularError(path, info)
	}
	if err != nil {
		text.Close()
		return lists.Text{}, fmt.Errorf("file: %w", err)
	}
	return lists.Text{ReadCloser: text, Digest: document.Digest}, nil
}
