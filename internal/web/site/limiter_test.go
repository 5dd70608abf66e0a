package site

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"palmares/internal/core/quota"
)

func from(address string) context.Context {
	r := httptest.NewRequest(http.MethodGet, "/tools", nil)
	r.RemoteAddr = address
	return (&Site{}).withVisitor(r)
}

// A visitor cannot take up all slots.
func TestLimitPerVisitor(t *testing.T) {
	synctest.Test(t, testLimitPerVisitor)
}

func testLimitPerVisitor(t *testing.T) {
	l := newLimiter()
	var held []func()
	for range maxRenderingPerVisitor {
		done, err := l.acquire(from("192.0.2.1:1000"))
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, done)
	}
	start := time.Now()
	if _, err := l.acquire(from("192.0.2.1:1001")); !errors.Is(err, errBusy) || time.Since(start) != maxWait { // synctest's clock
		t.Errorf("same visitor: got %v after %v, want %v after %v", err, time.Since(start), errBusy, maxWait)
	}
	other, err := l.acquire(from("[2001:db8::1]:1000"))
	if err != nil {
		t.Fatalf("other visitor: got %v, want a slot", err)
	}
	other()
	if done, err := l.acquire(context.Background()); err != nil {
		t.Errorf("no visitor: got %v, want a slot", err)
	} else {
		done()
	}

	// A waiting page gets a slot as soon as one is free.
	acquired := make(chan error)
	go func() {
		done, err := l.acquire(from("192.0.2.1:1002"))
		if err == nil {
			done()
		}
		acquired <- err
	}()
	synctest.Wait()
	held[0]()
	if err := <-acquired; err != nil {
		t.Errorf("once a slot is free: got %v, want no error", err)
	}
	held[1]()
	if len(l.visitors) != 0 || !l.total.TryAcquire(maxRendering) {
		t.Errorf("got visitors %v, want none and all slots free", l.visitors)
	}
}

// The slots of all visitors are limited too, and a visitor with too many waiting
// pages is rejected immediately.
func TestLimitInTotal(t *testing.T) {
	synctest.Test(t, testLimitInTotal)
}

func testLimitInTotal(t *testing.T) {
	l := newLimiter()
	for i := range maxRendering {
		if _, err := l.acquire(from([]string{"192.0.2.1:1", "192.0.2.2:1", "192.0.2.3:1", "192.0.2.4:1"}[i])); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := l.acquire(from("192.0.2.9:1")); !errors.Is(err, errBusy) {
		t.Errorf("got %v, want %v", err, errBusy)
	}
	canceled, cancel := context.WithCancel(from("192.0.2.9:1"))
	cancel()
	if _, err := l.acquire(canceled); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled request: got %v, want %v", err, context.Canceled)
	}
	for range maxPagesPerVisitor {
		go func() { _, _ = l.acquire(from("192.0.2.8:1")) }()
	}
	synctest.Wait()
	if v := l.visitors[quota.Address(netip.MustParseAddr("192.0.2.8"))]; v == nil || v.pages != maxPagesPerVisitor {
		t.Fatalf("got %+v, want a visitor with %d pages", v, maxPagesPerVisitor)
	}
	start := time.Now()
	if _, err := l.acquire(from("192.0.2.8:1")); !errors.Is(err, errBusy) || time.Since(start) != 0 {
		t.Errorf("too many pages: got %v after %v, want %v immediately", err, time.Since(start), errBusy)
	}
	time.Sleep(maxWait) // until the waiting pages have given up
	synctest.Wait()
}
