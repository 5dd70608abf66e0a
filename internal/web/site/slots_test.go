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
)

func from(address string) context.Context {
	r := httptest.NewRequest(http.MethodGet, "/tools", nil)
	r.RemoteAddr = address
	return (&Site{}).withVisitor(r)
}

// One visitor does not take every slot, however many pages they ask for.
func TestOneVisitorLeavesRoom(t *testing.T) {
	synctest.Test(t, testOneVisitorLeavesRoom)
}

func testOneVisitorLeavesRoom(t *testing.T) {
	s := newSlots()
	var held []func()
	for range slotsOfOne {
		done, err := s.take(from("192.0.2.1:1000"))
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, done)
	}
	begin := time.Now()
	if _, err := s.take(from("192.0.2.1:1001")); !errors.Is(err, errBusy) || time.Since(begin) != slotWait { // on the test's own clock
		t.Errorf("one more of the same: %v after %v", err, time.Since(begin))
	}
	other, err := s.take(from("[2001:db8::1]:1000"))
	if err != nil {
		t.Fatalf("another visitor: %v", err)
	}
	other()
	if done, err := s.take(context.Background()); err != nil {
		t.Errorf("what nobody asks for: %v", err)
	} else {
		done()
	}

	// Who waits has a turn as soon as one is free.
	turn := make(chan error)
	go func() {
		done, err := s.take(from("192.0.2.1:1002"))
		if err == nil {
			done()
		}
		turn <- err
	}()
	synctest.Wait()
	held[0]()
	if err := <-turn; err != nil {
		t.Errorf("after one is free: %v", err)
	}
	held[1]()
	if len(s.visitors) != 0 || len(s.all) != 0 {
		t.Errorf("left over: %v, %d", s.visitors, len(s.all))
	}
}

// All visitors together do not, either; and who asks for far too much is told
// at once.
func TestAllVisitorsLeaveRoom(t *testing.T) {
	synctest.Test(t, testAllVisitorsLeaveRoom)
}

func testAllVisitorsLeaveRoom(t *testing.T) {
	s := newSlots()
	for i := range slotsOfAll {
		if _, err := s.take(from([]string{"192.0.2.1:1", "192.0.2.2:1", "192.0.2.3:1", "192.0.2.4:1"}[i])); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.take(from("192.0.2.9:1")); !errors.Is(err, errBusy) {
		t.Errorf("one more: %v", err)
	}
	gone, cancel := context.WithCancel(from("192.0.2.9:1"))
	cancel()
	if _, err := s.take(gone); !errors.Is(err, context.Canceled) {
		t.Errorf("who went away: %v", err)
	}
	for range pagesOfOne {
		go func() { _, _ = s.take(from("192.0.2.8:1")) }()
	}
	synctest.Wait()
	if v := s.visitors[netip.MustParsePrefix("192.0.2.8/32")]; v == nil || v.pages != pagesOfOne {
		t.Fatalf("got %+v, want a visitor with %d pages", v, pagesOfOne)
	}
	begin := time.Now()
	if _, err := s.take(from("192.0.2.8:1")); !errors.Is(err, errBusy) || time.Since(begin) != 0 {
		t.Errorf("far too much: %v after %v", err, time.Since(begin))
	}
	time.Sleep(slotWait) // until those who wait have given up
	synctest.Wait()
}
