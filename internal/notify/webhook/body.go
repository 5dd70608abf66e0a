package webhook

import (
	"net/url"

	"palmares/internal/catalog/journal"
)

// maxBody is what the specification finds reasonable.
const maxBody = 20_000

// bodyOf is what is sent of an event. One that would be too long is told with
// where to read it.
func (w *Webhooks) bodyOf(event *journal.Event) []byte {
	body := event.JSON()
	if len(body) <= maxBody {
		return body
	}
	return event.JSONWith(struct {
		TooLong bool   `json:"too_long"`
		Bytes   int    `json:"bytes"`
		Fields  int    `json:"fields_changed"`
		Link    string `json:"link"`
	}{true, len(body), len(event.Fields), w.linkTo(event)})
}

// linkTo is the change feed, from just before an event on.
func (w *Webhooks) linkTo(event *journal.Event) string {
	variables := `{"after":null}` // nothing comes before the first
	if event.Number > 1 {
		variables = `{"after":"` + eventID(event.Number-1) + `"}`
	}
	query := `query($after:String){changes(first:1,after:$after){nodes{id type slug release fields before after}}}`
	return w.PublicURL + "/graphql?" + url.Values{"query": {query}, "variables": {variables}}.Encode()
}

func eventID(number int) string { return (&journal.Event{Number: number}).ID() }
