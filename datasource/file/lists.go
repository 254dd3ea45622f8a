package file

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/datasource/lists"
	"github.com/penstock-go/penstock/list"
)

// The defaults of [Options.Interval] and [Options.CompareInterval] for lists, which are
// large and change rarely.
const (
	listInterval        = time.Second
	listCompareInterval = 10 * time.Minute
)

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
// Watch.Ready waits for the lists at the start of a program. lists.KeepCopies keeps copies for
// a start while the source is away.
func WatchLists(ctx context.Context, registry *list.Registry, path string, opts Options, more ...lists.Option) (*lists.Watch, error) {
	if opts.Interval == 0 {
		opts.Interval = listInterval
	}
	if opts.CompareInterval == 0 {
		opts.CompareInterval = listCompareInterval
	}
	source, err := newSource(path, opts, listDocuments())
	if err != nil {
		return nil, err
	}
	return lists.Start(ctx, lists.Config{
		Registry: registry,
		Source:   source,
		Open:     source.openList,
		ListName: listName,
		Logger:   source.opts.Logger,
		Clock:    source.opts.Clock,
	}.With(more...))
}

// openList opens the file of a list.
func (s *source) openList(_ context.Context, document lists.Document) (lists.Text, error) {
	path := s.join(document.Name)
	if info, err := os.Stat(s.path); err == nil && !info.IsDir() {
		path = s.path
	}
	text, err := openRegular(path)
	if err != nil {
		return lists.Text{}, fmt.Errorf("file: %w", err)
	}
	return lists.Text{ReadCloser: text, Digest: document.Digest}, nil
}

// ReadLists reads the lists in a directory, or in one file, into the registry once, by the
// same rules as [WatchLists]. It returns an error with everything that is wrong with them;
// those without mistakes are then in the registry. It is for programs that end soon, such
// as tests.
func ReadLists(ctx context.Context, registry *list.Registry, path string) error {
	source, err := newSource(path, Options{}, listDocuments())
	if err != nil {
		return err
	}
	self, err := os.Stat(source.path)
	if err != nil {
		return fmt.Errorf("file: %w", err)
	}
	paths, err := source.paths(self)
	if err == nil && len(paths) == 0 {
		err = fmt.Errorf("file: %s holds no lists: their names end in %s", path, strings.Join(source.format.extensions, " or "))
	}
	if err != nil {
		return err
	}
	var faults []error
	for _, document := range slices.Sorted(maps.Keys(paths)) {
		name := listName(document)
		err := list.CheckName(name)
		if err == nil {
			err = readList(ctx, registry, name, list.Provider{Source: source.Name(), Document: document}, paths[document])
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("%s: %w", paths[document], err))
		}
		if ctx.Err() != nil {
			break
		}
	}
	return errors.Join(faults...)
}

// readList reads one list into the registry.
func readList(ctx context.Context, registry *list.Registry, name string, from list.Provider, path string) error {
	text, err := openRegular(path)
	if err != nil {
		return err
	}
	defer text.Close()
	parsed, digest, err := lists.Parse(ctx, text, list.Options{})
	if err != nil {
		return err
	}
	registry.Put(name, from, list.Version{List: parsed, Digest: digest, At: clock.System().Now()})
	return nil
}

// listName returns the name of the list in a file.
func listName(document string) string { return strings.TrimSuffix(document, filepath.Ext(document)) }

// openRegular opens a regular file. It does not block if the path is something else.
func openRegular(path string) (*os.File, error) {
	opened, err := open(path)
	if err != nil {
		return nil, err
	}
	info, err := opened.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = irregularError(path, info)
	}
	if err != nil {
		_ = opened.Close()
		return nil, err
	}
	return opened, nil
}
