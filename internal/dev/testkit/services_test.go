package testkit

import (
	"net/http"
	"testing"

	"palmares/internal/dev/check"
)

func TestStripeMock(t *testing.T) {
	request := check.Try(http.NewRequestWithContext(t.Context(), http.MethodGet, StartStripeMock(t)+"/v1/prices", nil)).OK(t)
	request.SetBasicAuth("sk_test_123", "")
	response := check.Try(http.DefaultClient.Do(request)).OK(t)
	defer response.Body.Close()
	check.Equal(t, response.StatusCode, http.StatusOK, "prices: %s", response.Status)
}
