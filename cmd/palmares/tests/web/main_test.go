// Package web_test checks the pages of the server in a browser.
package web_test

import (
	"os"
	"testing"

	"palmares/internal/dev/testkit/blackbox"
)

func TestMain(m *testing.M) {
	blackbox.UseReleaseBuild()
	os.Exit(m.Run())
}
