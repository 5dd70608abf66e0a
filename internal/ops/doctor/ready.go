package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"unicode"
)

// Status is what a server that is ready tells.
type Status struct {
	Status  string `json:"status"`
	Release int    `json:"release"`
	Error   string `json:"error"`
}

// NotReady is the error of a server that answers, but not that it is ready.
type NotReady struct {
	Ours bool   // it is a palmares
	Why  string // in its words
}

func (e *NotReady) Error() string {
	if e.Ours {
		return e.Why
	}
	return "what answers there is no palmares"
}

// Ready asks a server at a root, such as http://127.0.0.1:8080, whether it is.
func Ready(ctx context.Context, root string) (Status, error) {
	var status Status
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, root+"/readyz", nil)
	if err != nil {
		return status, err
	}
	response, err := asking.Do(request)
	if err != nil {
		return status, err
	}
	defer response.Body.Close()
	err = json.NewDecoder(io.LimitReader(response.Body, 10_000)).Decode(&status)
	switch {
	case err == nil && response.StatusCode == http.StatusOK && status.Status == "ready":
		return status, nil
	case err == nil && response.StatusCode == http.StatusServiceUnavailable && status.Error != "":
		return status, &NotReady{Ours: true, Why: plain(status.Error)}
	}
	return status, &NotReady{}
}

// plain is what a server says, on one short line.
func plain(text string) string {
	text = strings.TrimSuffix(strings.Join(strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }), " "), ".")
	if len(text) > 200 {
		text = strings.ToValidUTF8(text[:200], "") + "…"
	}
	return text
}

var errAnyPort = errors.New("the port is 0, which is another one each time")

// LocalAddress is where a server that listens on an address is asked from its
// own machine.
func LocalAddress(listen string) (root string, err error) {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return "", err
	}
	if port == "0" {
		return "", errAnyPort
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "localhost"
	}
	return "http://" + net.JoinHostPort(host, port), nil
}
