// Package web_test checks the pages of the server in a browser.
package browser_test

import (
	"testing"

	"palmares/internal/dev/testkit/browser"
)

func TestMain(m *testing.M) { browser.Only(m) }
