package console

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"mime"
	"net/http"
	"path"
	"strings"
)

//go:embed assets
var files embed.FS

// asset is a file of the page.
type asset struct {
	plain, zipped []byte
	kind, tag     string
}

// readAssets returns the files of the page by name.
func readAssets() map[string]asset {
	entries, err := files.ReadDir("assets")
	if err != nil {
		panic(err) // they are part of the program
	}
	assets := make(map[string]asset, len(entries))
	for _, entry := range entries {
		plain, err := files.ReadFile("assets/" + entry.Name())
		if err != nil {
			panic(err)
		}
		plain = lean(plain, path.Ext(entry.Name()))
		sum := sha256.Sum256(plain)
		assets[entry.Name()] = asset{plain, zip(plain), kindOf(entry.Name()), `"` + hex.EncodeToString(sum[:12]) + `"`}
	}
	return assets
}

// lean returns a script or a style without its indentation and its lines of comments, which are for those who
// read the source.
func lean(text []byte, extension string) []byte {
	if extension != ".js" && extension != ".css" {
		return text
	}
	kept := make([]byte, 0, len(text))
	for line := range bytes.Lines(text) {
		if line = bytes.TrimLeft(line, " "); !bytes.HasPrefix(line, []byte("//")) {
			kept = append(kept, line...)
		}
	}
	return kept
}

// kindOf returns the type of a file. It does not ask the system, which may know other ones.
func kindOf(name string) string {
	switch path.Ext(name) {
	case ".html":
		return "text/html; charset=utf-8"
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	default:
		return mime.FormatMediaType("text/plain", map[string]string{"charset": "utf-8"})
	}
}

func zip(plain []byte) []byte {
	var zipped bytes.Buffer
	w, _ := gzip.NewWriterLevel(&zipped, gzip.BestCompression) // fails for other levels only
	_, _ = w.Write(plain)
	_ = w.Close()
	return zipped.Bytes()
}

func (h *handler) serveAsset(w http.ResponseWriter, r *http.Request, name string) {
	a, ok := h.assets[name]
	switch {
	case !ok:
		fail(w, http.StatusNotFound, "there is no such file")
		return
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD")
		fail(w, http.StatusMethodNotAllowed, "only GET is answered")
		return
	}
	header := w.Header()
	header.Set("Cache-Control", "no-cache") // ask whether it is still the same
	header.Set("ETag", a.tag)
	header.Set("Vary", "Accept-Encoding")
	header.Set("Content-Type", a.kind)
	if r.Header.Get("If-None-Match") == a.tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	content := a.plain
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		header.Set("Content-Encoding", "gzip")
		content = a.zipped
	}
	if r.Method == http.MethodGet {
		_, _ = w.Write(content) // the client may be gone
	}
}
