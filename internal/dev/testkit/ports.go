package testkit

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"testing"
)

// Ports that systems give to whoever asks for any begin above these. One of
// those might be somebody's connection before who it was meant for listens.
const (
	firstPort = 12_000
	lastPort  = 32_000
)

// freePort is one that nobody listens on, nor is given by chance.
func freePort() (int, error) {
	var last error
	for range 100 {
		port := firstPort + rand.IntN(lastPort-firstPort)
		listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			return port, listener.Close()
		}
		last = err
	}
	return 0, errors.Join(errors.New("no port is free"), last)
}

// FreePort is a port that nobody listens on.
func FreePort(t testing.TB) int {
	t.Helper()
	port, err := freePort()
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// FreeAddress is an address on loopback that nobody listens on.
func FreeAddress() (string, error) {
	port, err := freePort()
	return fmt.Sprintf("127.0.0.1:%d", port), err
}
