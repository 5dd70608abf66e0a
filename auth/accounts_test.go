package auth_test

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"palmares/auth"
	"palmares/internal/core/store"
	"palmares/internal/dev/testkit"
)

func TestAddresses(t *testing.T) {
	for given, want := range map[string]string{
		"ana@example.com":         "ana@example.com",
		" Ana@Example.COM ":       "ana@example.com",
		"ana+list@example.com":    "ana+list@example.com",
		"ana@sub.example.com":     "ana@sub.example.com",
		"élodie@exemple.fr":       "élodie@exemple.fr",
		"":                        "",
		"ana":                     "",
		"ana@":                    "",
		"ana@host":                "",
		"@example.com":            "",
		"Ana <ana@example.com>":   "",
		"<ana@example.com>":       "",
		"ana@example.com, b@c.de": "",
		"ana@example.com\nBcc: x": "",
		"ana@exa\x00mple.com":     "",
		"ana@example.":            "",
		strings.Repeat("a", 300) + "@example.com": "",
	} {
		if got, err := auth.NormalEmail(given); got != want || (err == nil) != (want != "") {
			t.Errorf("%.40q: %q, %v", given, got, err)
		}
	}
}

// However an address is written, it is one account.
func TestSpellingsOfOneAddress(t *testing.T) {
	for _, spellings := range [][]string{
		{"ana@example.com", "ANA@EXAMPLE.COM", "\tAna@Example.com "},
		{"\u00e9lodie@exemple.fr", "e\u0301lodie@exemple.fr", "\u00c9lodie@exemple.fr", "E\u0301LODIE@EXEMPLE.FR"},
		{"ana@m\u00fcnchen.de", "ana@mu\u0308nchen.de", "ana@M\u00dcNCHEN.DE", "ana@xn--mnchen-3ya.de", "ana@XN--MNCHEN-3YA.DE"},
		{"ana@example.com", "ana@\uff45xample.com", "ana@example\u3002com"}, // as a Japanese keyboard writes
	} {
		want, err := auth.NormalEmail(spellings[0])
		if err != nil {
			t.Fatal(err)
		}
		for _, spelling := range append(spellings, want) {
			if got, err := auth.NormalEmail(spelling); got != want || err != nil {
				t.Errorf("%q is %q, not %q: %v", spelling, got, want, err)
			}
		}
	}
	// The root's dot is nobody's habit: it is refused, and so no second account.
	for _, wrong := range []string{"ana@example.com.", "ana@example.com..", "ana@example.com\u3002", "ana@example.com\uff0e", "ana@example.com\uff61", "ana@host\u3002", "ana@.example.com", "a\xff@example.com", "ana@exa\xffmple.com",
		"ana@example.com\r\nBcc: ben@example.com", "ana\r@example.com", "ana@[127.0.0.1]", "ana@xn--a.com", `"a b"@example.com`, "ana@exa mple.com",
		"\u202eana@example.com\x00"} {
		if got, err := auth.NormalEmail(wrong); err == nil {
			t.Errorf("%q is taken as %q", wrong, got)
		}
	}
}

// The number of keys holds when ten are made at once.
func TestKeyLimit(t *testing.T) {
	t.Parallel()
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		accounts := auth.NewAccounts(s)
		for plan, most := range map[auth.Plan]int64{auth.Developer: 3, auth.Pro: 10} {
			account, err := accounts.Create(t.Context(), string(plan)+"@example.com", plan)
			if err != nil {
				t.Fatal(err)
			}
			var made atomic.Int64
			var all sync.WaitGroup
			for range 15 {
				all.Go(func() {
					text, _, err := accounts.CreateKey(t.Context(), account, "one of many")
					switch {
					case err == nil && text != "":
						made.Add(1)
					case !strings.Contains(err.Error(), "revoke one first"):
						t.Error(err)
					}
				})
			}
			all.Wait()
			if made.Load() != most {
				t.Errorf("%s: %d keys, not %d", plan, made.Load(), most)
			}
			keys, err := accounts.Keys(t.Context(), account)
			if err != nil || len(keys) != int(most) {
				t.Fatalf("%d keys, %v", len(keys), err)
			}
			if err := accounts.Revoke(t.Context(), keys[0].ID); err != nil {
				t.Fatal(err)
			}
			if err := accounts.Revoke(t.Context(), keys[0].ID); err == nil {
				t.Error("revoked twice")
			}
			if _, _, err := accounts.CreateKey(t.Context(), account, ""); err != nil {
				t.Errorf("after one was revoked: %v", err)
			}
		}
		if _, err := accounts.Create(t.Context(), " DEVELOPER@example.com", auth.Pro); err == nil || !strings.Contains(err.Error(), "already") {
			t.Errorf("a second account of one address: %v", err)
		}
		if _, err := accounts.Find(t.Context(), "nobody@example.com"); err == nil || strings.Contains(err.Error(), "ent:") {
			t.Errorf("nobody: %v", err)
		}
	})
}

// What is stored opens nothing.
func TestSecretsAreNotStored(t *testing.T) {
	t.Parallel()
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		accounts := auth.NewAccounts(s)
		account, err := accounts.Create(t.Context(), "ana@example.com", auth.Developer)
		if err != nil {
			t.Fatal(err)
		}
		text, row, err := accounts.CreateKey(context.Background(), account, "x")
		if err != nil {
			t.Fatal(err)
		}
		if secret := text[16:48]; strings.Contains(string(row.SecretHash), secret) || strings.Contains(row.String(), secret) || len(row.SecretHash) != 32 {
			t.Errorf("stored: %s", row)
		}
		for _, name := range []string{strings.Repeat("n", 81), "two\nlines", "nul\x00"} {
			if _, _, err := accounts.CreateKey(t.Context(), account, name); err == nil {
				t.Errorf("%q is a name", name)
			}
		}
	})
}
