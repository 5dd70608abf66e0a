// Package web_test looks at the pages of the program in a browser.
package web_test

import (
	"os"
	"testing"

	"palmares/internal/dev/testkit/blackbox"
)

func TestMain(m *testing.M) {
	blackbox.RunShipped()
	os.Exit(m.Run())
}
