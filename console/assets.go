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

// assets are the files of the page by name. Those in a directory that is named after the release, the hash of
// all of them, never change: a browser asks for each once.
type assets struct {
	files   map[string]asset
	release string
}

// readAssets returns the files of the page.
func readAssets() assets {
	entries, err := files.ReadDir("assets")
	if err != nil {
		panic(err) // they are part of the program
	}
	all := assets{files: make(map[string]asset)}
	sums := sha256.New()
	for _, entry := range entries {
		plain, err := files.ReadFile("assets/" + entry.Name())
		if err != nil {
			panic(err)
		}
		_, _ = sums.Write(plain)
		all.files[entry.Name()] = newAsset(entry.Name(), plain)
	}
	all.release = hex.EncodeToString(sums.Sum(nil)[:8])
	page := strings.ReplaceAll(string(all.files["index.html"].plain), `"assets/`, `"assets/`+all.release+"/")
	all.files["index.html"] = newAsset("index.html", []byte(page))
	return all
}

func newAsset(name string, plain []byte) asset {
	sum := sha256.Sum256(plain)
	return asset{plain, zip(plain), kindOf(name), `"` + hex.EncodeToString(sum[:12]) + `"`}
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

// serveAsset serves a file, which the client keeps for good if the path has the release.
func (h *handler) serveAsset(w http.ResponseWriter, r *http.Request, release, name string) {
	a, ok := h.assets.files[name]
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
	if release == h.assets.release {
		header.Set("Cache-Control", "public, max-age=31536000, immutable")
	} else {
		header.Set("Cache-Control", "no-cache") // ask whether it is still the same
	}
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
