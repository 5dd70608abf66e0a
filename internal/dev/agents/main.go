// Agents plays a recorded sequence of MCP calls for each of 40 questions against a
// server with the demo catalog, on both databases. It computes the answers from the
// feeds, not from the server.
//
//	make agents
//
// A question passes if its calls give the right answer, if there are at most three of
// them, and if their results have at most 4,000 tokens. A call with wrong arguments
// passes only if its error contains everything that the next call has and it did not.
package main

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"palmares/internal/core/store"
	"palmares/internal/core/text"
	"palmares/internal/dev/load"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/blackbox"
)

const (
	maxCalls  = 3
	maxTokens = 4_000
	// bytesPerToken is the least that OpenAI's tokenizer o200k reaches with a result of
	// these calls (2.4; on average 3.1), so that no count is too low.
	bytesPerToken = 2.4
)

func main() { testkit.Main("agents", run) }

func run(t testing.TB) {
	if len(os.Args) != 2 {
		t.Fatal("usage: agents PALMARES")
	}
	blackbox.UseProgram(t, os.Args[1])
	f := readFeed(t)
	if len(questions) != 40 {
		t.Errorf("got %d questions, want 40", len(questions))
	}
	for _, kind := range []struct {
		name string
		cfg  store.Config
	}{{"SQLite", testkit.SQLite(t)}, {"PostgreSQL", testkit.Postgres(t)}} {
		table := load.NewTable("question, "+kind.name, "about", "calls", "tokens", "result")
		c := connect(t, kind.cfg)
		passed, most := 0, 0
		for _, q := range questions {
			calls, tokens, err := c.ask(q, f)
			outcome := "ok"
			if err != nil {
				outcome = err.Error()
				t.Errorf("%s: %s: %v", kind.name, q.text, err)
			} else {
				passed++
			}
			most = max(most, tokens)
			table.Add(q.text, q.about, calls, tokens, outcome)
		}
		table.Print(os.Stdout)
		fmt.Printf("%s: %d of %d questions answered, at most %d tokens each\n\n", kind.name, passed, len(questions), most)
	}
}

// client is a client of a server.
type client struct {
	t      testing.TB
	server *blackbox.Server
	knows  string // what an agent knows before its first call, folded
}

// connect starts a server and reads what agents read first.
func connect(t testing.TB, cfg store.Config) *client {
	c := &client{t: t, server: blackbox.Serve(t, cfg, "--demo")}
	var list, initialized struct {
		Result json.RawMessage
	}
	c.post("tools/list", `{}`, &list)
	c.post("initialize", `{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"agents","version":"1"}}`, &initialized)
	c.knows = text.Fold(string(list.Result) + string(initialized.Result))
	return c
}

func (c *client) post(method, params string, reply any) {
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":%s}`, method, params)
	got := c.server.Call(c.t, http.MethodPost, "/mcp", body, "Content-Type", "application/json", "Accept", "application/json, text/event-stream")
	if err := json.Unmarshal([]byte(blackbox.ReadAll(c.t, got.Body)), reply); err != nil {
		c.t.Fatalf("%s: got %d and %v, want a reply", method, got.StatusCode, err)
	}
}

// outcome is the result of a call.
type outcome struct {
	IsError           bool
	Content           []struct{ Text string }
	StructuredContent json.RawMessage
}

// text is what a model reads.
func (o outcome) text() string {
	if len(o.Content) == 0 {
		return ""
	}
	return o.Content[0].Text
}

// tokens estimates the tokens of a result. Clients show a model either the text or the
// structured content, so the longer one counts.
func (o outcome) tokens() int {
	return int(math.Ceil(float64(max(len(o.text()), len(o.StructuredContent))) / bytesPerToken))
}

// ask plays the calls of a question, and checks each of them and the answer.
func (c *client) ask(q question, f feed) (calls, tokens int, err error) {
	if len(q.calls) > maxCalls {
		return len(q.calls), 0, fmt.Errorf("got %d calls, want at most %d", len(q.calls), maxCalls)
	}
	known := c.knows + " " + text.Fold(q.text)
	var results []outcome
	for i, call := range q.calls {
		call = strings.ReplaceAll(call, "$previous", fmt.Sprint(len(f)-1))
		name, arguments, _ := strings.Cut(call, " ")
		if unknown := missing(withoutNumbers(words(arguments)), known); unknown != nil {
			return i, tokens, fmt.Errorf("call %d: an agent cannot know %q", i+1, unknown)
		}
		var reply struct {
			Result *outcome
			Error  any
		}
		c.post("tools/call", fmt.Sprintf(`{"name":%q,"arguments":%s}`, name, arguments), &reply)
		if reply.Result == nil {
			return i + 1, tokens, fmt.Errorf("call %d: got %v, want a result", i+1, reply.Error)
		}
		r := *reply.Result
		results = append(results, r)
		tokens += r.tokens()
		known += " " + text.Fold(r.text())
		last := i == len(q.calls)-1
		switch {
		case r.IsError && !last:
			tried := words(name + " " + arguments)
			needed := slices.DeleteFunc(words(q.calls[i+1]), func(word string) bool { return slices.Contains(tried, word) })
			if absent := missing(needed, text.Fold(r.text())); absent != nil {
				return i + 1, tokens, fmt.Errorf("call %d: got the error %q, want %q in it", i+1, r.text(), absent)
			}
		case r.IsError && !q.unknown:
			return i + 1, tokens, fmt.Errorf("got the error %q, want an answer", r.text())
		case !r.IsError && isEmpty(r) && len(read(r, "hint")) == 0:
			return i + 1, tokens, fmt.Errorf("call %d: got an empty result without a hint", i+1)
		}
	}
	if tokens > maxTokens {
		return len(results), tokens, fmt.Errorf("got %d tokens, want at most %d", tokens, maxTokens)
	}
	return len(results), tokens, check(q, results, q.answer(f))
}

// check compares the answer in the results with the computed one.
func check(q question, results []outcome, want []string) error {
	last := results[len(results)-1]
	var got []string
	for path := range strings.FieldsSeq(q.path) {
		got = append(got, read(last, path)...)
	}
	if q.unordered {
		slices.Sort(got)
		slices.Sort(want)
	}
	if !slices.Equal(got, want) {
		return fmt.Errorf("got %q, want %q", got, want)
	}
	for _, value := range got { // models may read only the text
		if !strings.Contains(last.text(), value) && !strings.Contains(value, " ") && value != "null" {
			return fmt.Errorf("got %q only as structured content, want it in the text too", value)
		}
	}
	return nil
}

// isEmpty reports whether a list has no items.
func isEmpty(r outcome) bool {
	var lists struct{ Data, Results *[]any }
	_ = json.Unmarshal(r.StructuredContent, &lists) // results without a list are not empty
	return lists.Data != nil && len(*lists.Data) == 0 || lists.Results != nil && len(*lists.Results) == 0
}

// read returns the values at a path such as data.*.slug. An object is one value: its
// members, ordered by name. Of an error, "error" is the text.
func read(r outcome, path string) []string {
	if path == "error" && r.IsError {
		return []string{r.text()}
	}
	decoder := json.NewDecoder(strings.NewReader(string(r.StructuredContent)))
	decoder.UseNumber()
	var whole any
	if decoder.Decode(&whole) != nil {
		return nil
	}
	values := []any{whole}
	for name := range strings.SplitSeq(path, ".") {
		var next []any
		for _, value := range values {
			switch value := value.(type) {
			case map[string]any:
				if member, has := value[name]; has {
					next = append(next, member)
				}
			case []any:
				for i, item := range value {
					if name == "*" || name == fmt.Sprint(i) {
						next = append(next, item)
					}
				}
			}
		}
		values = next
	}
	found := []string{}
	for _, value := range values {
		found = append(found, format(value))
	}
	return found
}
