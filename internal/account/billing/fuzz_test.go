package billing

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stripe/stripe-go/v86"

	"palmares/internal/core/problem"
)

// FuzzEvent checks that an event without the signature of its body is rejected before
// anything is read, and that the customer of an event is the one in its JSON.
func FuzzEvent(f *testing.F) {
	payload := eventOf("evt_1", stripe.EventTypeCustomerSubscriptionUpdated, "cus_1")
	f.Add(payload, signed(payload, "whsec_other", time.Now()))
	f.Add(eventAbout("evt_2", stripe.EventTypeCustomerDeleted, map[string]any{"object": "customer", "id": "cus_2"}), "t=1,v1=00")
	f.Add([]byte(`{"id":"evt_3","data":{"object":{"customer":{"id":"cus_3"}}}}`), "t=99999999999999999999,t=-1")
	f.Add([]byte(`{"id":"evt_4","data":{"object":{"customer":{"id":4},"object":[]}}}`), "")
	b := &Billing{Config: Config{WebhookSecret: webhookSecret}} // no store: reading it would panic
	f.Fuzz(func(t *testing.T, payload []byte, signature string) {
		r := httptest.NewRequest(http.MethodPost, EventsPath, bytes.NewReader(payload))
		r.Header.Set("Stripe-Signature", signature)
		var p *problem.Problem
		if err := b.receive(r); !errors.As(err, &p) || p.Code.Status() != http.StatusBadRequest && p.Code != problem.TooLarge {
			t.Errorf("%q with %q: got %v, want a forged event rejected", payload, signature, err)
		}
		var event stripe.Event
		var plain struct {
			Data *struct{ Object map[string]any }
		}
		if json.Unmarshal(payload, &event) != nil || json.Unmarshal(payload, &plain) != nil {
			return
		}
		var want any
		if plain.Data != nil {
			object := plain.Data.Object
			want = object["customer"]
			if expanded, ok := want.(map[string]any); ok {
				want = expanded["id"]
			}
			if object["object"] == "customer" {
				want = object["id"]
			}
		}
		if want, _ := want.(string); customerOf(&event) != want {
			t.Errorf("%s: got customer %q, want %q", payload, customerOf(&event), want)
		}
	})
}
