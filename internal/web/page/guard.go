package page

import "net/http"

// Plain is what a page's own style, script and pictures need, and nothing of
// other hosts. Whoever needs more adds a directive, or says form-action anew.
const Plain = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; base-uri 'none'; frame-ancestors 'none'"

// Guard says what browsers may do with a page: what its policy allows, framed
// by nobody, told to nobody.
func Guard(header http.Header, policy string, secure bool) {
	header.Set("Content-Security-Policy", policy)
	header.Set("X-Frame-Options", "DENY")
	header.Set("X-Content-Type-Options", "nosniff")
	// Not none at all: a form's post would then come from nowhere.
	header.Set("Referrer-Policy", "same-origin")
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	header.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=(), payment=(), usb=()")
	if secure {
		header.Set("Strict-Transport-Security", "max-age=31536000")
	}
}
