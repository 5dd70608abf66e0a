package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
)

// aside is for questions beside the load: each on a connection of its own, so
// that a server that ends does not wait for them.
var aside = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

func fetch(ctx context.Context, address string) (code int, body []byte, err error) {
	return answer(ctx, http.MethodGet, address, nil)
}

func answer(ctx context.Context, method, address string, payload []byte) (code int, body []byte, err error) {
	r, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(payload))
	if err != nil {
		return 0, nil, err
	}
	if payload != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	response, err := aside.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	body, err = io.ReadAll(response.Body)
	return response.StatusCode, body, err
}
