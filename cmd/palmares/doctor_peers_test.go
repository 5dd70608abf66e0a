package main

import (
	"database/sql"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"palmares/internal/account/billing"
	"palmares/internal/dev/testkit"
)

// silent takes connections, and never answers.
func silent(t *testing.T) string { return greeting(t, "") }

// greeting takes connections, and says one line.
func greeting(t *testing.T, line string) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			if line != "" {
				_, _ = io.WriteString(conn, line+"\r\n")
			}
			t.Cleanup(func() { _ = conn.Close() })
		}
	}()
	return listener.Addr().String()
}

// encryptedSMTP is a mail server with a password, and the variable that makes
// a process trust it.
func encryptedSMTP(t *testing.T) (address, trust string) {
	t.Helper()
	web := httptest.NewTLSServer(nil) // for its certificate, which is good for 127.0.0.1
	t.Cleanup(web.Close)
	file := writeFile(t, "ca.pem", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: web.Certificate().Raw}))
	tls := web.TLS.Clone()
	tls.NextProtos = nil
	server := testkit.StartSMTPWith(t, testkit.SMTPOptions{TLS: tls, User: "mailer", Password: "geheim"})
	return strings.Replace(server.URL, "smtp://", "smtp://mailer:geheim@", 1), "SSL_CERT_FILE=" + file
}

// startShop is a Stripe where all is as it should be, or which answers
// everything with one status. Nothing may be changed there.
func startShop(t *testing.T, status int) string {
	t.Helper()
	shop := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			t.Errorf("the doctor sends %s %s", r.Method, r.URL.Path)
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		if status != http.StatusOK {
			fmt.Fprint(w, `{"error":{"type":"invalid_request_error","message":"geheim"}}`)
			return
		}
		switch r.URL.Path {
		case "/v1/prices":
			fmt.Fprint(w, `{"object":"list","data":[{"id":"price_9","object":"price","active":true,"currency":"eur","unit_amount":9900,"tax_behavior":"exclusive","recurring":{"interval":"month","interval_count":1}}]}`)
		case "/v1/tax/settings":
			fmt.Fprint(w, `{"object":"tax.settings","status":"active"}`)
		case "/v1/billing_portal/configurations":
			fmt.Fprint(w, `{"object":"list","data":[{"id":"bpc_1","object":"billing_portal.configuration","active":true,"is_default":true}]}`)
		case "/v1/webhook_endpoints":
			events, _ := json.Marshal(billing.Events)
			fmt.Fprintf(w, `{"object":"list","data":[{"id":"we_1","status":"enabled","url":"https://palmares.example.invalid/billing/stripe","enabled_events":%s}]}`, events)
		default:
			t.Errorf("the doctor asks for %s", r.URL.Path)
		}
	}))
	t.Cleanup(shop.Close)
	return shop.URL
}

// withPasswords is the address, with a wrong one, of a PostgreSQL that asks
// for passwords.
func withPasswords(t *testing.T) string {
	t.Helper()
	bin, err := testkit.PostgreSQL.Ensure()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "palmares-hba-") // where the server's user may read
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	file := filepath.Join(dir, "pg_hba.conf")
	if err := os.WriteFile(file, []byte("host all palmares 127.0.0.1/32 trust\nhost all all 127.0.0.1/32 scram-sha-256\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	cluster, err := testkit.StartCluster(t.Context(), bin, "fsync=off", "hba_file="+file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Stop)
	onDatabase(t, cluster.URL, `CREATE ROLE guest LOGIN PASSWORD 'right'`)
	return strings.Replace(cluster.URL, "palmares@", "guest:geheim@", 1)
}

func onDatabase(t *testing.T, address, statement string) {
	t.Helper()
	db, err := sql.Open("postgres", address)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(statement); err != nil {
		t.Fatal(err)
	}
}

func inDatabase(t *testing.T, cluster, name string) string {
	t.Helper()
	u, err := url.Parse(cluster)
	if err != nil {
		t.Fatal(err)
	}
	u.Path = "/" + name
	return u.String()
}

// tell gives a Redis commands of an operator's.
func tell(t *testing.T, address string, commands ...string) {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", u.Host)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for _, command := range commands {
		fmt.Fprintf(conn, "%s\r\n", command)
		answer := make([]byte, 100)
		if n, err := conn.Read(answer); err != nil || !strings.HasPrefix(string(answer[:n]), "+OK") {
			t.Fatalf("%s: %s %v", command, answer[:n], err)
		}
	}
}
