package testkit

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestStripeMock(t *testing.T) {
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, StartStripeMock(t)+"/v1/prices", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.SetBasicAuth("sk_test_123", "")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		t.Errorf("prices: got %s, want 200", response.Status)
	}
}

// With another version in its name, an upgraded module would not be rebuilt.
func TestStripeMockVersion(t *testing.T) {
	module, err := os.ReadFile(filepath.Join(stripeMockModule(), "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	if want := "github.com/stripe/stripe-mock " + stripeMockVersion; !strings.Contains(string(module), want) {
		t.Errorf("stripemock/go.mod does not require %s", want)
	}
}
