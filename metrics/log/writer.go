package metriclog

import (
	"encoding/binary"
	"errors"
	"os"
	"time"
)

// writer writes seconds to files. It is for use by one goroutine.
type writer struct {
	options Options

	file         file
	lines, index *os.File // nil before the first second, and after an error
	size         int64    // of the file
	last         int64    // the second written last, since 1970
}

// write writes the lines of one second, all or none of them.
func (w *writer) write(second time.Time, lines []Line) error {
	var text []byte
	for i := range lines {
		text = lines[i].appendTo(text, w.options.Location)
	}
	date := second.In(w.options.Location).Format(time.DateOnly)
	isFull := w.size > 0 && w.size+int64(len(text)) > w.options.MaxFileSize
	if w.lines == nil || w.file.date != date || isFull || second.Unix() <= w.last || !w.isIntact() {
		if err := w.begin(date); err != nil {
			return err
		}
	}
	if err := w.append(second.Unix(), text); err != nil {
		return errors.Join(err, w.close())
	}
	return nil
}

// isIntact says whether the file still has its name and what was written.
func (w *writer) isIntact() bool {
	named, err := os.Stat(w.file.path)
	if err != nil {
		return false
	}
	open, err := w.lines.Stat()
	return err == nil && os.SameFile(named, open) && open.Size() == w.size
}

// append adds the text of a second to the present file. What was written of it before an error
// is cut off.
func (w *writer) append(second int64, text []byte) error {
	entry := binary.BigEndian.AppendUint64(nil, uint64(second))
	entry = binary.BigEndian.AppendUint64(entry, uint64(w.size))
	_, err := w.lines.Write(text)
	if err == nil {
		_, err = w.index.Write(entry)
	}
	if err != nil {
		return errors.Join(err, w.lines.Truncate(w.size))
	}
	w.size += int64(len(text))
	w.last = second
	return nil
}

// begin begins another file.
func (w *writer) begin(date string) (err error) {
	if err := w.close(); err != nil {
		return err
	}
	w.file, w.lines, w.index, err = create(w.options.Dir, w.options.App, date)
	return err
}

// close closes the present file, if there is one, and removes it if it is empty.
func (w *writer) close() error {
	if w.lines == nil {
		return nil
	}
	err := errors.Join(w.lines.Close(), w.index.Close())
	if w.size == 0 {
		err = errors.Join(err, w.file.remove())
	}
	w.lines, w.index, w.size = nil, nil, 0
	return err
}
