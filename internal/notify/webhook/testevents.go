package webhook

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"maps"
	"slices"
	"sync"
	"time"

	"palmares/ent"
	"palmares/ent/account"
	"palmares/ent/attempt"
	"palmares/ent/endpoint"
	"palmares/internal/core/middleware"
	"palmares/internal/core/problem"
)

// TestType is the type of test events. They are not in the journal.
const TestType = "webhook.test"

const (
	// testsPerWindow is how many test events an account may send in testWindow,
	// to all of its endpoints together.
	testsPerWindow = 10
	testWindow     = time.Minute
)

// testLimit is the error of an account that has reached the limit of test events.
func testLimit(retryAfter time.Duration) error {
	retryAfter = max(time.Second, retryAfter)
	if retryAfter == time.Second {
		return problem.New(problem.TooMany, "An account can send %d test events per minute. Try again in 1 second.", testsPerWindow).Wait(retryAfter)
	}
	seconds := int((retryAfter + time.Second - 1) / time.Second)
	return problem.New(problem.TooMany, "An account can send %d test events per minute. Try again in %d seconds.", testsPerWindow, seconds).Wait(retryAfter)
}

// Test sends a test event to an endpoint and returns the attempt.
func (w *Webhooks) Test(ctx context.Context, e *ent.Endpoint) (result *ent.Attempt, err error) {
	id := "msg_test_" + rand.Text()
	body, err := json.Marshal(map[string]any{
		"id": id, "type": TestType, "timestamp": w.now().UTC().Format(time.RFC3339),
		"data": map[string]string{"message": "This is a test of " + w.ServiceName + "."},
	})
	if err != nil {
		return nil, err
	}
	reserved, err := w.reserveTest(ctx, e, body)
	if err != nil {
		return nil, err
	}
	resume := middleware.PauseDeadline(ctx) // post has a timeout of its own
	o := w.post(ctx, e, id, body, func() {})
	resume()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	err = w.Store.Update(ctx, func(tx *ent.Tx) error {
		if o.delivered() {
			if err := tx.Endpoint.Update().Where(endpoint.ID(e.ID)).SetDeliveredAt(o.at.UTC()).Exec(ctx); err != nil {
				return err
			}
		}
		removed, err := tx.Attempt.Delete().Where(attempt.ID(reserved.ID)).Exec(ctx)
		if err != nil {
			return err
		}
		if removed == 0 { // the endpoint was removed in the meantime
			return errNoEndpoint
		}
		result, err = o.row(tx.Attempt.Create(), e.ID, 0, TestType, 1).SetTestBody(string(body)).Save(ctx)
		return err
	})
	return result, err
}

// TestResult returns the result of a test event; nil if there is none with this ID.
func (w *Webhooks) TestResult(ctx context.Context, e *ent.Endpoint, id int) (*ent.Attempt, error) {
	found, err := w.Store.Read.Attempt.Query().Where(attempt.ID(id), attempt.EndpointID(e.ID), attempt.Type(TestType)).Only(ctx)
	return found, ent.MaskNotFound(err)
}

// reserveTest records an attempt before it is made, so that concurrent requests to
// several servers cannot exceed the limit. If the caller disconnects, the
// reservation stays and counts.
func (w *Webhooks) reserveTest(ctx context.Context, e *ent.Endpoint, body []byte) (reserved *ent.Attempt, err error) {
	now := w.now().UTC()
	err = w.Store.WithRowLock(ctx, account.Table, e.AccountID, func(tx *ent.Tx) error {
		nth, err := tx.Attempt.Query().
			Where(attempt.Type(TestType), attempt.AtGT(now.Add(-testWindow)), attempt.HasEndpointWith(endpoint.AccountID(e.AccountID))).
			Order(ent.Desc(attempt.FieldAt)).Offset(testsPerWindow - 1).First(ctx)
		if err == nil {
			return testLimit(nth.At.Add(testWindow).Sub(now))
		}
		if !ent.IsNotFound(err) {
			return err
		}
		if err := w.tests.count(e.AccountID, now); err != nil {
			return err
		}
		reserved, err = outcome{at: now, response: "the test was interrupted"}.row(tx.Attempt.Create(), e.ID, 0, TestType, 1).SetTestBody(string(body)).Save(ctx)
		if ent.IsConstraintError(err) {
			return errNoEndpoint // it was removed in the meantime
		}
		return err
	})
	return reserved, err
}

// testCounter applies the limit within this process. Without it, an account
// could reset the limit by removing its endpoint, which deletes the attempts.
type testCounter struct {
	mu   sync.Mutex
	sent map[int][]time.Time // by account, oldest first
}

func (c *testCounter) count(accountID int, now time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	expired := func(at time.Time) bool { return !at.After(now.Add(-testWindow)) }
	maps.DeleteFunc(c.sent, func(_ int, sent []time.Time) bool { return expired(sent[len(sent)-1]) })
	sent := slices.DeleteFunc(c.sent[accountID], expired)
	if len(sent) >= testsPerWindow {
		return testLimit(sent[0].Add(testWindow).Sub(now))
	}
	c.sent[accountID] = append(sent, now)
	return nil
}
