package main

import (
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// call is a recorded request that counts against a quota. Times are nanoseconds
// since the history started.
type call struct {
	Client  int
	Subject string // whose quota it counts against, with the day if there are several
	Server  int
	Start   int64
	End     int64
	// Status is 0 if there was no response. It is then unknown whether the request was
	// counted.
	Status    int
	Remaining int  // as the response says, or unstated
	Matches   bool // it has the ETag of the response, so that it is uncounted
}

const unstated = -1

// calls is the history of one subject or more.
type calls struct {
	Model string // name of the model that must explain it
	Limit int    // for each subject
	Fault int64  // when the fault started
	Calls []call
}

// figures are how many requests there are, without a response and refused.
func figures(histories []*calls) (all, unanswered, refused int) {
	for _, h := range histories {
		all += len(h.Calls)
		for _, c := range h.Calls {
			switch c.Status {
			case 0:
				unanswered++
			case http.StatusTooManyRequests:
				refused++
			}
		}
	}
	return all, unanswered, refused
}

// rules are the models by name. "exact" is what the service promises; each of the
// others is a documented exception.
var rules = map[string]func(h *calls) porcupine.Model{
	"exact":  exactModel,
	"outage": outageModel,
}

// step is what a request did to a count. A request that is uncounted has two steps,
// and a model ensures that the second comes after the first.
type step struct {
	call
	number int // identifies the request
	refund bool
	before bool // it was finished before the fault
}

// states reports whether the response agrees with what remains after the request was
// counted. A 304 says what remains without it.
func (s *step) states(remaining int) bool {
	if s.Status == http.StatusNotModified {
		remaining++
	}
	return s.Remaining == unstated || s.Remaining == remaining
}

// check returns the subjects whose requests no order explains.
func (h *calls) check(patience time.Duration) (violations []string) {
	bySubject := map[string][]porcupine.Operation{}
	for i, c := range h.Calls {
		end := c.End
		if c.Status == 0 { // it may take effect at any later time
			end = math.MaxInt64
		}
		add := func(refund bool) {
			bySubject[c.Subject] = append(bySubject[c.Subject], porcupine.Operation{
				ClientId: c.Client, Input: step{c, i, refund, c.End < h.Fault}, Call: c.Start, Return: end,
			})
		}
		add(false)
		if c.Matches && c.Status != http.StatusTooManyRequests && c.Status != http.StatusOK {
			add(true)
		}
	}
	model := rules[h.Model](h)
	for subject, operations := range bySubject {
		if result := porcupine.CheckOperationsTimeout(model, operations, patience); result != porcupine.Ok {
			violations = append(violations, fmt.Sprintf("%s: %s after %d requests, model %s", subject, result, len(operations), h.Model))
		}
	}
	slices.Sort(violations)
	return violations
}

// only returns the history of one subject.
func (h *calls) only(subject string) *calls {
	part := *h
	part.Calls = slices.DeleteFunc(slices.Clone(h.Calls), func(c call) bool { return c.Subject != subject })
	return &part
}

// counter is the state of the exact model: one count for all servers.
type counter struct {
	count   int
	pending string // numbers of the requests that are yet to be uncounted
}

// exactModel grants exactly the limit, in one order for all servers.
func exactModel(h *calls) porcupine.Model {
	return nondeterministic(counter{}, func(c counter, s step) []counter {
		mark := fmt.Sprintf("<%d>", s.number)
		if s.refund {
			if !strings.Contains(c.pending, mark) { // it was not counted yet, or never
				return onlyIf(s.Status == 0, c)
			}
			refunded := counter{c.count - 1, strings.Replace(c.pending, mark, "", 1)}
			if s.Status == 0 { // killed before or after
				return []counter{c, refunded}
			}
			return []counter{refunded}
		}
		counted := counter{c.count + 1, c.pending}
		if s.Matches && s.Status != http.StatusOK {
			counted.pending += mark
		}
		switch {
		case s.Status == http.StatusTooManyRequests:
			return onlyIf(c.count >= h.Limit, c)
		case s.Status == 0:
			return append(onlyIf(c.count < h.Limit, counted), c)
		default:
			return onlyIf(c.count < h.Limit && s.states(h.Limit-counted.count), counted)
		}
	})
}

// shares is the state of the outage model: what each server knows of.
type shares struct {
	total int
	known [maxServers]int
}

// outageModel explains requests while Redis is unavailable, slow or has lost its
// data. Before the fault, it is the exact model. Then each server counts from
// what it has last seen, so that they grant at most n times the remainder, and a
// server that has refused a request does not grant another. No server refuses one
// before the limit is reached.
func outageModel(h *calls) porcupine.Model {
	return nondeterministic(shares{}, func(c shares, s step) []shares {
		if s.refund {
			c.total--
			return []shares{c} // servers may hear of it late or never: they grant less
		}
		counted := c
		counted.total++
		if counted.known[s.Server]++; s.before {
			counted.known[s.Server] = counted.total
		}
		switch {
		case s.Status == http.StatusTooManyRequests:
			refused := c
			refused.known[s.Server] = h.Limit
			return onlyIf(c.total >= h.Limit, refused)
		case s.Status == 0:
			return []shares{c, counted}
		case s.before:
			return onlyIf(c.total < h.Limit && s.states(h.Limit-counted.total), counted)
		default:
			return onlyIf(c.known[s.Server] < h.Limit, counted)
		}
	})
}

func onlyIf[S any](allowed bool, next S) []S {
	if !allowed {
		return nil
	}
	return []S{next}
}

// nondeterministic returns a model whose steps may lead to several states.
func nondeterministic[S counter | shares](first S, next func(S, step) []S) porcupine.Model {
	model := porcupine.NondeterministicModel{
		Init: func() []any { return []any{first} },
		Step: func(state, input, _ any) (all []any) {
			for _, n := range next(state.(S), input.(step)) {
				all = append(all, n)
			}
			return all
		},
		Equal: func(a, b any) bool { return a.(S) == b.(S) },
	}
	return model.ToModel()
}
