package testkit

import (
	"net/http"
	"testing"

	"palmares/internal/dev/check"
)

func TestStripeMock(t *testing.T) {
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, StartStripeMock(t)+"/v1/prices", nil)
	check.OK(t, err)
	request.SetBasicAuth("sk_test_123", "")
	response, err := http.DefaultClient.Do(request)
	check.OK(t, err)
	defer response.Body.Close()
	check.Equal(t, response.StatusCode, http.StatusOK, "prices: %s", response.Status)
}
