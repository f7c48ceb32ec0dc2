package page

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"net/http"
	"path"
	"time"
)

//go:embed static
var static embed.FS

// types are the MIME types of the files: the system's own table may have others.
var types = map[string]string{
	".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8",
	".svg": "image/svg+xml", ".png": "image/png", ".txt": "text/plain; charset=utf-8",
}

// serveStatic adds the files of the page. A browser asks each time whether they have changed.
func (p *Page) serveStatic() {
	files, err := static.ReadDir("static")
	if err != nil {
		panic(err) // they are in the program
	}
	for _, f := range files {
		name := f.Name()
		content, _ := static.ReadFile("static/" + name)
		sum := sha256.Sum256(content)
		tag := `"` + hex.EncodeToString(sum[:8]) + `"`
		at := "/page/" + name
		if name == "index.html" {
			at = "/{$}"
		}
		p.mux.HandleFunc("GET "+at, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", types[path.Ext(name)])
			w.Header().Set("Cache-Control", "no-cache")
			w.Header().Set("ETag", tag)
			http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(content))
		})
	}
}
