package metriclog

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"time"
)

// defaultLimit is the default of [Query.Limit].
const defaultLimit = 10_000

// Query says which lines of a log to find.
type Query struct {
	Dir, App string    // as in [Options]; required
	From, To time.Time // the first and the last second; without one, all before or after
	Resource string    // the name as it is written, without |; empty for all
	Limit    int       // the most lines; defaults to 10,000
}

// Found is what was found.
type Found struct {
	Lines   []Line // by time
	Skipped int    // damaged lines that were passed over
	More    bool   // whether there are more lines than the limit
}

// Search finds lines in the files of a log. It may read while the log is written. It returns an
// error if the query has mistakes, or if a file cannot be read; then with what was found before.
func Search(q Query) (found Found, err error) {
	mistakes := checkPlace("Query", q.Dir, q.App)
	if !q.From.IsZero() && !q.To.IsZero() && q.To.Before(q.From) {
		mistakes = errors.Join(mistakes, fmt.Errorf("Query.To %v is before From %v: exchange them", q.To, q.From))
	}
	if q.Limit < 0 {
		mistakes = errors.Join(mistakes, fmt.Errorf("Query.Limit is %d: give at least 1, or 0 for the default", q.Limit))
	}
	if mistakes != nil {
		return Found{}, fmt.Errorf("metriclog: %w", mistakes)
	}
	if q.Limit == 0 {
		q.Limit = defaultLimit
	}
	q.Resource = writable(q.Resource)
	files, err := filesOf(q.Dir, q.App)
	if err != nil {
		return Found{}, fmt.Errorf("metriclog: %w", err)
	}
	for _, f := range files {
		if err := q.searchFile(f, &found); err != nil && !errors.Is(err, fs.ErrNotExist) { // removed meanwhile
			return found, fmt.Errorf("metriclog: %s: %w", f.path, err)
		}
		if found.More {
			break
		}
	}
	slices.SortStableFunc(found.Lines, func(a, b Line) int { return a.Time.Compare(b.Time) }) // the wall clock may have been set back
	return found, nil
}

// searchFile adds the lines of a file.
func (q *Query) searchFile(f file, found *Found) error {
	lines, err := os.Open(f.path)
	if err != nil {
		return err
	}
	defer lines.Close()
	if _, err := lines.Seek(q.offset(f), io.SeekStart); err != nil {
		return err
	}
	reader := bufio.NewReaderSize(lines, 2*maxName)
	for {
		text, err := readLine(reader)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		line, wrong := parseLine(text)
		switch {
		case wrong != nil:
			found.Skipped++
		case !q.To.IsZero() && line.Time.After(q.To):
			return nil // the lines of a file are in order
		case line.Time.Before(q.From.Truncate(time.Second)) || q.Resource != "" && line.Resource != q.Resource:
		case len(found.Lines) == q.Limit:
			found.More = true
			return nil
		default:
			found.Lines = append(found.Lines, line)
		}
	}
}

// readLine returns the next line without its line break. One that is longer than the buffer is
// returned as a text that is no line. The last line may be still written: without a line
// break it is the end.
func readLine(reader *bufio.Reader) (string, error) {
	text, err := reader.ReadSlice('\n')
	if err == nil {
		return string(text[:len(text)-1]), nil
	}
	if !errors.Is(err, bufio.ErrBufferFull) {
		return "", err
	}
	for errors.Is(err, bufio.ErrBufferFull) {
		_, err = reader.ReadSlice('\n')
	}
	return "", err
}

// offset returns where in a file to begin: by its index, or at the beginning if that is damaged
// or missing.
func (q *Query) offset(f file) (offset int64) {
	index, err := os.ReadFile(f.index())
	if err != nil || q.From.IsZero() {
		return 0
	}
	for ; len(index) >= 16; index = index[16:] {
		second := int64(binary.BigEndian.Uint64(index))
		at := int64(binary.BigEndian.Uint64(index[8:]))
		if at < offset {
			return 0
		}
		if offset = at; second >= q.From.Unix() {
			break
		}
	}
	return offset
}
