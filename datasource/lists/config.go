package lists

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/list"
)

// Digest is the SHA-256 of the text of a list.
type Digest [sha256.Size]byte

// Document is a document as the source has delivered it.
type Document struct {
	Name   string
	Digest Digest
}

// Text is the text of a list.
type Text struct {
	io.ReadCloser

	// Digest is what the text has to have, or it is not put in force.
	Digest Digest
}

// Config says where a [Watch] gets lists from and where it puts them.
type Config struct {
	// Registry receives the lists. Required.
	Registry *list.Registry

	// Source has one document for each list. Its data are the SHA-256 of the text, or what
	// [Manifest] returns. Required.
	Source core.Source

	// Open opens the text of a document, in the version given or in a newer one.
	// Required.
	Open func(ctx context.Context, document Document) (Text, error)

	// ListName returns the name of the list that a document contains. Defaults to the
	// name of the document.
	ListName func(document string) string

	// MinRetry and MaxRetry bound the pause before a list that could not be read is
	// read again. It doubles with each failure. Default to 100 ms and a minute.
	MinRetry, MaxRetry time.Duration

	// Copies is a directory for copies of the lists in force; see [KeepCopies]. It is made
	// if only its parent exists. Defaults to none.
	Copies string

	// App is the name of the application whose lists are copied. Required with Copies.
	App string

	// MaxCopies is how many bytes the copies may have together. Defaults to 1 GiB. A list
	// for which there is no space left is not copied, and the log says so.
	MaxCopies int64

	// Logger receives which lists come into force, which do not and why. Entries of
	// lists are not logged. Defaults to [slog.Default].
	Logger *slog.Logger

	// Clock times the pauses. Defaults to [clock.System].
	Clock clock.Clock
}

// complete returns the configuration with the defaults filled in, or all its mistakes.
func (c Config) complete() (Config, error) {
	var faults []error
	if c.Registry == nil {
		faults = append(faults, errors.New("lists: the registry is nil: pass that of an engine, Engine.Lists()"))
	}
	if c.Source == nil || c.Open == nil {
		faults = append(faults, errors.New("lists: Config.Source and Config.Open are required"))
	}
	if c.MinRetry < 0 || c.MaxRetry < 0 {
		faults = append(faults, errors.New("lists: Config.MinRetry and MaxRetry must not be negative: leave them out for the defaults"))
	}
	if c.Copies != "" && c.App == "" {
		faults = append(faults, errors.New("lists: Config.Copies without Config.App: name the application"))
	}
	if c.MaxCopies < 0 {
		faults = append(faults, errors.New("lists: Config.MaxCopies must not be negative: leave it out for the default"))
	}
	if c.MaxCopies == 0 {
		c.MaxCopies = 1 << 30
	}
	if c.Copies != "" {
		path, err := filepath.Abs(c.Copies)
		faults = append(faults, err)
		c.Copies = path
	}
	if c.ListName == nil {
		c.ListName = func(document string) string { return document }
	}
	if c.MaxRetry == 0 {
		c.MaxRetry = max(c.MinRetry, time.Minute)
	}
	if c.MinRetry == 0 {
		c.MinRetry = min(c.MaxRetry, 100*time.Millisecond)
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.Clock == nil {
		c.Clock = clock.System()
	}
	return c, errors.Join(faults...)
}

// Manifest returns the data of the document of a list: the digest of its text, and whether
// somebody has confirmed that any number of entries may go with this version; see
// core.Config.MaxRemoval.
func Manifest(digest Digest, confirmed bool) []byte {
	if confirmed {
		return append(digest[:], confirmedVersion)
	}
	return digest[:]
}

// confirmedVersion follows the digest of a version of which that is confirmed.
const confirmedVersion = 1

// readManifest returns what a document says; false if it says nothing.
func readManifest(data []byte) (digest Digest, confirmed, ok bool) {
	switch {
	case len(data) == len(digest):
		return Digest(data), false, true
	case len(data) == len(digest)+1 && data[len(digest)] == confirmedVersion:
		return Digest(data[:len(digest)]), true, true
	}
	return Digest{}, false, false
}

// DigestOf returns the digest of a text.
func DigestOf(text []byte) Digest { return sha256.Sum256(text) }
