package metriclog

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// file is one file of a log, by its name: APP-metrics.log.DATE, or APP-metrics.log.DATE.N.
type file struct {
	path   string
	date   string // as in 2026-10-31
	number int    // of its day, from 0
}

const (
	indexSuffix = ".idx"
	permissions = 0o640 // the group may read, as a dashboard does
)

func (f file) index() string { return f.path + indexSuffix }

// remove removes the file and its index, if they are there.
func (f file) remove() (failed error) {
	for _, path := range []string{f.path, f.index()} {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			failed = errors.Join(failed, fmt.Errorf("a file cannot be removed: %w", err))
		}
	}
	return failed
}

func newFile(dir, app, date string, number int) file {
	path := filepath.Join(dir, app+"-metrics.log."+date)
	if number > 0 {
		path += "." + strconv.Itoa(number)
	}
	return file{path: path, date: date, number: number}
}

// filesOf returns the files of a log in the order in which they were begun.
func filesOf(dir, app string) ([]file, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var files []file
	for _, entry := range entries {
		rest, isOurs := strings.CutPrefix(entry.Name(), app+"-metrics.log.")
		if !isOurs || entry.IsDir() {
			continue
		}
		date, digits, numbered := strings.Cut(rest, ".")
		number := 0
		if numbered {
			number, err = strconv.Atoi(digits)
		}
		if _, badDate := time.Parse(time.DateOnly, date); badDate != nil || err != nil || numbered && number < 1 {
			err = nil
			continue // an index, or a file of somebody else
		}
		files = append(files, newFile(dir, app, date, number))
	}
	slices.SortFunc(files, func(a, b file) int {
		return cmp.Or(cmp.Compare(a.date, b.date), cmp.Compare(a.number, b.number))
	})
	return files, nil
}

// create makes the next file of a day, which did not exist before, and its index.
func create(dir, app, date string) (f file, lines, index *os.File, err error) {
	if err = os.MkdirAll(dir, 0o750); err != nil {
		return file{}, nil, nil, err
	}
	files, err := filesOf(dir, app)
	if err != nil {
		return file{}, nil, nil, err
	}
	number := 0
	for _, other := range files {
		if other.date == date {
			number = other.number + 1
		}
	}
	for {
		f = newFile(dir, app, date, number)
		lines, err = os.OpenFile(f.path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, permissions)
		if !errors.Is(err, fs.ErrExist) {
			break
		}
		number++ // another process was quicker
	}
	if err != nil {
		return file{}, nil, nil, err
	}
	index, err = os.OpenFile(f.index(), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, permissions)
	if err != nil {
		return file{}, nil, nil, errors.Join(err, lines.Close(), os.Remove(f.path))
	}
	return f, lines, index, nil
}

// removeOldest removes files and their indices until there are no more than most: those of later dates
// than the present one, which the wall clock had by mistake, then the oldest, and never the present one.
func removeOldest(dir, app string, most int, present file) error {
	files, err := filesOf(dir, app)
	if err != nil {
		return err
	}
	slices.SortStableFunc(files, func(a, b file) int {
		return cmp.Or(compareBool(b.date > present.date, a.date > present.date), compareBool(a == present, b == present))
	})
	var failed error
	for len(files) > most {
		failed = errors.Join(failed, files[0].remove())
		files = files[1:]
	}
	return failed
}

// compareBool is cmp.Compare of bool, of which false is less.
func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}
