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
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/blackbox"
)

// startSilent accepts connections and never responds.
func startSilent(t *testing.T) string { return startGreeting(t, "") }

// startGreeting accepts connections and sends one line.
func startGreeting(t *testing.T, line string) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check.OK(t, err)
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

// startEncryptedSMTP starts a mail server that requires a password, and returns
// the environment variable that makes a process trust its certificate.
func startEncryptedSMTP(t *testing.T) (address, trust string) {
	t.Helper()
	web := httptest.NewTLSServer(nil) // for its certificate, which is valid for 127.0.0.1
	t.Cleanup(web.Close)
	file := blackbox.WriteFile(t, "ca.pem", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: web.Certificate().Raw}))
	tls := web.TLS.Clone()
	tls.NextProtos = nil
	server := testkit.StartSMTPWith(t, testkit.SMTPOptions{TLS: tls, User: "mailer", Password: "s3cret"})
	return strings.Replace(server.URL, "smtp://", "smtp://mailer:s3cret@", 1), "SSL_CERT_FILE=" + file
}

// startFakeStripe starts a fake Stripe API with a correctly configured account,
// or one that returns the same error status for every request. A request that
// would change anything fails the test.
func startFakeStripe(t *testing.T, status int) string {
	t.Helper()
	stripe := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		check.Equal(t, r.Method, http.MethodGet, r.URL.Path)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		if status != http.StatusOK {
			fmt.Fprint(w, `{"error":{"type":"invalid_request_error","message":"s3cret"}}`)
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
			t.Errorf("got a request for %s, want none", r.URL.Path)
		}
	}))
	t.Cleanup(stripe.Close)
	return stripe.URL
}

// startWithPasswords starts a PostgreSQL server that requires passwords, and
// returns its URL with a wrong one.
func startWithPasswords(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "palmares-hba-") // readable by the user of the PostgreSQL server
	check.OK(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	file := filepath.Join(dir, "pg_hba.conf")
	check.OK(t, os.WriteFile(file, []byte("host all palmares 127.0.0.1/32 trust\nhost all all 127.0.0.1/32 scram-sha-256\n"), 0o644))
	check.OK(t, os.Chmod(dir, 0o755))
	cluster := testkit.StartCluster(t, "fsync=off", "hba_file="+file)
	execute(t, cluster.URL, `CREATE ROLE guest LOGIN PASSWORD 'right'`)
	return strings.Replace(cluster.URL, "palmares@", "guest:s3cret@", 1)
}

func execute(t *testing.T, address, statement string) {
	t.Helper()
	db := check.Try(sql.Open("postgres", address)).OK(t)
	defer db.Close()
	check.Try(db.Exec(statement)).OK(t)
}

func databaseURL(t *testing.T, cluster, name string) string {
	t.Helper()
	u := check.Try(url.Parse(cluster)).OK(t)
	u.Path = "/" + name
	return u.String()
}

// sendRedis sends commands to a Redis server.
func sendRedis(t *testing.T, address string, commands ...string) {
	t.Helper()
	u, err := url.Parse(address)
	check.OK(t, err)
	conn, err := net.Dial("tcp", u.Host)
	check.OK(t, err)
	defer conn.Close()
	for _, command := range commands {
		fmt.Fprintf(conn, "%s\r\n", command)
		reply := make([]byte, 100)
		if n, err := conn.Read(reply); err != nil || !strings.HasPrefix(string(reply[:n]), "+OK") {
			t.Fatalf("%s: got %s, %v, want +OK", command, reply[:n], err)
		}
	}
}
