package testkit

import (
	"net/http"
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
