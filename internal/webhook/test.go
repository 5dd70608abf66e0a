package webhook

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"time"

	"palmares/ent"
)

// TestType is the type of what is sent on trial. It is no event.
const TestType = "webhook.test"

// Test sends something now, to see whether it arrives.
func (w *Webhooks) Test(ctx context.Context, e *ent.Endpoint) (*ent.Attempt, error) {
	id := "msg_test_" + rand.Text()
	body, err := json.Marshal(map[string]any{
		"id": id, "type": TestType, "timestamp": w.now().UTC().Format(time.RFC3339),
		"data": map[string]string{"message": "This is a test of " + w.ServiceName + "."},
	})
	if err != nil {
		return nil, err
	}
	o := w.send(ctx, e, id, body, func() {})
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return o.row(w.Store.Write.Attempt.Create(), e.ID, 0, TestType, 1).Save(ctx)
}
