package convert

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io"
	"path"
	"slices"

	"github.com/penstock-go/penstock/cmd/penstock/internal/files"
)

// isArchive says whether a file is a zip archive, as the console of Nacos exports configurations.
func isArchive(data []byte) bool { return bytes.HasPrefix(data, []byte("PK\x03\x04")) }

// unpack returns the files of an archive. What the registry says about them is none.
func unpack(archive File) ([]File, error) {
	reader, err := zip.NewReader(bytes.NewReader(archive.Data), int64(len(archive.Data)))
	if err != nil {
		return nil, err
	}
	var all []File
	left := int64(files.Most)
	for _, entry := range reader.File {
		if entry.FileInfo().IsDir() || slices.Contains([]string{".meta.yml", ".metadata.yml"}, path.Base(entry.Name)) {
			continue
		}
		data, err := readEntry(entry, left)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", entry.Name, err)
		}
		left -= int64(len(data))
		all = append(all, File{Name: archive.Name + "/" + entry.Name, Data: data})
	}
	return all, nil
}

// readEntry returns what a file of an archive holds, if that is not longer than most.
func readEntry(entry *zip.File, most int64) ([]byte, error) {
	content, err := entry.Open()
	if err != nil {
		return nil, err
	}
	defer func() { _ = content.Close() }()
	data, err := io.ReadAll(io.LimitReader(content, most+1))
	if err == nil && int64(len(data)) > most {
		err = fmt.Errorf("the files are longer than %d bytes together", files.Most)
	}
	return data, err
}

// convertArchive converts the files of an archive.
func (c *Conversion) convertArchive(archive File, all *batch) {
	entries, err := unpack(archive)
	if err != nil {
		c.Findings = append(c.Findings, Finding{
			Kind: Unreadable, File: archive.Name, Line: 1, Column: 1, Message: "the archive cannot be read: " + err.Error(),
		})
		return
	}
	c.convertEntries(entries, all)
}

// convertEntries converts files that were in another one, each as if it were named alone; but one that is no file of
// rules stops nothing.
func (c *Conversion) convertEntries(entries []File, all *batch) {
	for _, entry := range entries {
		data := bytes.TrimPrefix(entry.Data, []byte("\ufeff"))
		if originOf(data) == fromSentinel && !beginsLikeJSON(data) {
			c.Findings = append(c.Findings, Finding{
				Kind: Understood, File: entry.Name, Line: 1, Column: 1, Message: "it is no JSON, as rules of Sentinel are, and is not read",
			})
			continue
		}
		c.convertFile(entry, all)
	}
}
