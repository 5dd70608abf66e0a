package mail

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"palmares/internal/core/problem"
	"palmares/internal/dev/testkit"
)

func TestInjection(t *testing.T) {
	server := testkit.StartSMTP(t)
	m, _ := newMailer(t, Config{URL: server.URL})
	for _, subject := range []string{"Hello\r\nBcc: eve@example.com", "Hello\nBcc: eve@example.com", "Hello\rBcc: eve@example.com", "Hello\r\n\r\nBcc: eve@example.com", "Hello\x00\u2028Bcc: eve@example.com"} {
		if err := m.Send(t.Context(), Message{To: ana, Subject: subject, Text: "text", HTML: "html"}); err != nil {
			t.Fatal(err)
		}
		header, bodies := parts(t, server.Wait(t, ana))
		if header.Get("Bcc") != "" || header.Get("Subject") != "Hello Bcc: eve@example.com" || bodies["text/plain"] != "text" {
			t.Errorf("%q became %v %v", subject, header, bodies)
		}
	}
	for _, to := range []string{
		"", "ana", "@example.com", "ana@", "Ana <ana@example.com>", "<ana@example.com>", "ana@example.com, eve@example.com", "ana@example.com>\r\nRCPT TO:<eve@example.com",
		"ana@example.com\r\nBcc: eve@example.com", "ana@example.com\n", "ana\r\n@example.com", "\"ana\r\n\"@example.com", `"a b"@example.com`, "ana@example.com (c)", "ana@exa mple.com", "ana@[127.0.0.1]", "a\x00b@example.com", "ana@example.com\x7f", "\xff@example.com",
	} {
		if err := m.Send(t.Context(), private(to)); problem.Of(err).Code != problem.BadInput {
			t.Errorf("%q: %v", to, err)
		}
		if err := m.Post(private(to)); problem.Of(err).Code != problem.BadInput {
			t.Errorf("%q was queued, or found no room: %v", to, err)
		}
	}
	if server.Count("eve@example.com") != 0 {
		t.Error("somebody else was sent a letter")
	}
}

func TestPrinting(t *testing.T) {
	m, log := newMailer(t, Config{})
	if !m.Prints() {
		t.Fatal("it would send")
	}
	stop := run(t, m)
	if err := m.Post(private(ana)); err != nil {
		t.Error(err)
	}
	if err := m.Send(t.Context(), Message{To: ana, Subject: "Bare", Text: "text"}); err != nil {
		t.Error(err)
	}
	if m.Post(private("nobody")) == nil || m.Send(t.Context(), private("nobody")) == nil {
		t.Error("it took an invalid address")
	}
	stop()
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	for i, want := range []map[string]any{
		{"to": ana, "subject": "A private subject", "link": link, "code": code},
		{"to": ana, "subject": "Bare"},
	} {
		want["level"], want["msg"] = "INFO", "no mail is set up: a letter is printed here instead"
		got := map[string]any{}
		if err := json.Unmarshal([]byte(lines[i]), &got); err != nil {
			t.Fatal(err)
		}
		delete(got, "time")
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%v, not %v", got, want)
		}
	}
}
