// Drawicons draws the service's mark as icons, and the image that other sites show
// with a link to it (Open Graph), into the current folder. "go generate
// ./internal/web/page" runs it.
package main

import (
	"log"
	"os"
)

func main() {
	for name, data := range map[string][]byte{
		"favicon.ico": favicon(),
		// iOS rounds the corners itself, and would fill transparent ones with black.
		"apple-touch-icon.png": encode(drawIcon(180, false)),
		"icon-192.png":         encode(drawIcon(192, true)),
		"icon-512.png":         encode(drawIcon(512, true)),
		"og.png":               encode(drawCard()),
	} {
		if err := os.WriteFile(name, data, 0o644); err != nil {
			log.Fatal(err)
		}
	}
}
