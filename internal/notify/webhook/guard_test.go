package webhook

import (
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"palmares/internal/dev/testkit"
)

// forbiddenHosts are this machine, its network or nobody's, in every spelling.
var forbiddenHosts = []string{
	"127.0.0.1", "127.1.2.3", "[::1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[0:0:0:0:0:ffff:7f00:0001]", "[::127.0.0.1]",
	"[::1%25lo]", "[fe80::1%25eth0]", "[fe80::1]", "[FE80::1%25eth0]",
	"169.254.169.254", "[::ffff:169.254.169.254]", "[fd00:ec2::254]", "168.63.129.16", "100.100.100.200", "192.0.0.192",
	"10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "[fc00::1]", "[fd12:3456::1]", "[fec0::1]",
	"100.64.0.1", "100.127.255.255", "0.0.0.0", "0.1.2.3", "[::]", "[::ffff:0.0.0.0]",
	"224.0.0.1", "239.255.255.250", "[ff02::1]", "[ff0e::1]", "255.255.255.255", "240.0.0.1",
	"192.0.2.1", "198.51.100.1", "203.0.113.1", "198.18.0.1", "192.88.99.1", "[2001:db8::1]", "[3fff::1]",
	"[64:ff9b::7f00:1]", "[64:ff9b::10.0.0.1]", "[64:ff9b:1::7f00:1]", // NAT64
	"[2002:7f00:1::]", "[2002:a00:1::1]", // 6to4
	"[2001:0:7f00:1::]", "[::ffff:0:127.0.0.1]", "[100::1]", "[4000::1]", // Teredo, SIIT, nobody's
}

func TestForbiddenAddresses(t *testing.T) {
	t.Parallel()
	w := New(Config{})
	for _, host := range forbiddenHosts {
		if got, err := w.checkURL("https://" + host + "/hook"); err != errPrivateAddress {
			t.Errorf("%s: got %q, %v", host, got, err)
		}
		if _, err := w.checkURL("https://" + strings.ToUpper(host) + ":8443"); err == nil {
			t.Errorf("%s with a port is taken", host)
		}
		address := strings.ReplaceAll(strings.Trim(host, "[]"), "%25", "%")
		if w.mayDial(netip.MustParseAddr(address)) {
			t.Errorf("%s may be dialled", address)
		}
	}
	for _, address := range []string{"8.8.8.8", "1.1.1.1", "172.15.0.1", "172.32.0.1", "100.63.255.255", "100.128.0.1", "11.0.0.1", "2606:4700::1111", "2a00:1450::1", "::ffff:8.8.8.8"} {
		if !w.mayDial(netip.MustParseAddr(address)) {
			t.Errorf("%s may not be dialled", address)
		}
	}
}

// A server that only this machine reaches may send to this machine, and to no
// other network than those of everybody.
func TestLoopback(t *testing.T) {
	t.Parallel()
	w := New(Config{Loopback: true})
	for _, address := range []string{"127.0.0.1", "::1", "::ffff:127.0.0.1", "8.8.8.8"} {
		if !w.mayDial(netip.MustParseAddr(address)) {
			t.Errorf("%s may not be dialled", address)
		}
	}
	for _, address := range []string{"10.0.0.1", "169.254.169.254", "0.0.0.0", "::", "::127.0.0.1", "64:ff9b::7f00:1"} {
		if w.mayDial(netip.MustParseAddr(address)) {
			t.Errorf("%s may be dialled", address)
		}
	}
	for _, taken := range []string{"http://localhost:8080/x", "http://LOCALHOST", "http://127.0.0.1", "http://[::1]:99", "https://localhost", "https://hooks.example"} {
		if _, err := w.checkURL(taken); err != nil {
			t.Errorf("%s: %v", taken, err)
		}
	}
	for _, refused := range []string{"http://hooks.example", "http://8.8.8.8", "http://localhost.example", "http://10.0.0.1", "https://10.0.0.1"} {
		if _, err := w.checkURL(refused); err == nil {
			t.Errorf("%s is taken", refused)
		}
	}
}

func TestAddresses(t *testing.T) {
	t.Parallel()
	w := New(Config{})
	for text, want := range map[string]string{
		"https://hooks.example":                   "https://hooks.example",
		" HTTPS://Hooks.Example/Path?q=1#part \n": "https://Hooks.Example/Path?q=1",
		"https://hooks.example:8443/":             "https://hooks.example:8443/",
		"https://hooks.example.":                  "https://hooks.example.",
		"https://bücher.example/ä":                "https://b%C3%BCcher.example/%C3%A4",
		"https://8.8.8.8/":                        "https://8.8.8.8/",
		"https://[2606:4700::1111]/":              "https://[2606:4700::1111]/",
		"https://7-zip.0x":                        "https://7-zip.0x",
	} {
		if got, err := w.checkURL(text); err != nil || got != want {
			t.Errorf("%q: got %q, %v", text, got, err)
		}
	}
	for _, text := range []string{
		"", "hooks.example", "//hooks.example", "https:", "https://", "https:///x", "https:hooks.example", "https://:443", "https://?x",
		"http://hooks.example", "ftp://hooks.example", "javascript:alert(1)", "file:///etc/passwd", "gopher://hooks.example", "unix:///x",
		"http://localhost", "http://127.0.0.1",
		"https://user@hooks.example", "https://user:password@hooks.example", "https://hooks.example@127.0.0.1", "https://@hooks.example",
		`https://hooks.example\@127.0.0.1/`, "https://hooks.example%00/", "https://hooks\n.example", "https://hooks .example", "https://%31%32%37.0.0.1",
		"https://2130706433", "https://0x7f000001", "https://0X7F.1", "https://017700000001", "https://0177.0.0.1", "https://127.1", "https://127.0.0.1.",
		"https://0x7f.0.0.0x1", "https://127.0.0.01", "https://256.256.256.256", "https://09.1.1.08", "https://１２７.0.0.1", "https://①②⑦.0.0.1", "https://99999999999999999999999",
		"https://hooks.example:0", "https://hooks.example:65536", "https://hooks.example:x", "https://hooks.example:-1",
		"https://[::1", "https://[::1]x", "https://[127.0.0.1]", "https://[fe80::1%eth0]",
		"https://hooks.example/" + strings.Repeat("a", maxURL),
	} {
		if got, err := w.checkURL(text); err == nil {
			t.Errorf("%.60q is taken as %.60q", text, got)
		}
	}
}

// What a name stands for is looked at when it is dialled: names that are taken
// as an address gain nothing by standing for this machine.
func TestNamesThatStandForThisMachine(t *testing.T) {
	t.Parallel()
	s := newSite(t, testkit.Open(t, testkit.SQLite(t)))
	r := newUnstarted(t)
	r.StartTLS()
	port := r.URL[strings.LastIndexByte(r.URL, ':'):]
	s.Loopback = false
	s.stopClock()
	for _, host := range []string{"localhost", "LocalHost"} {
		e := s.add(Wish{URL: "https://" + host + port})
		attempt, err := s.Test(t.Context(), e)
		if err != nil {
			t.Fatal(err)
		}
		if attempt.Delivered || attempt.Status != 0 || attempt.Answer != "blocked: the host name resolves to a private network address" {
			t.Errorf("%s: %+v", host, attempt)
		}
		if err := s.Remove(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	// An address that was allowed once is looked at, too.
	for _, host := range append(forbiddenHosts, "2130706433", "0x7f000001", "127.1", "localhost.", "１２７.0.0.1", "127。0。0。1", "①②⑦.0.0.1", "127.0.0.1.") {
		e := s.add(Wish{URL: "https://hooks.example"})
		e.URL = "https://" + host + port
		s.clock.pass(testWindow)
		attempt, err := s.Test(t.Context(), e)
		if err != nil {
			t.Fatal(err)
		}
		if attempt.Delivered || attempt.Status != 0 || attempt.Answer != "blocked: the host name resolves to a private network address" && attempt.Answer != "the host name could not be resolved" {
			t.Errorf("%s: %+v", host, attempt)
		}
		if err := s.Remove(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	if got := r.all(); len(got) != 0 {
		t.Errorf("%d came through", len(got))
	}
}

// Where a receiver points elsewhere, nobody goes.
func TestRedirects(t *testing.T) {
	t.Parallel()
	s := newSite(t, testkit.Open(t, testkit.SQLite(t)))
	s.stopClock()
	inside, r := newReceiver(t), newReceiver(t)
	for _, status := range []int{301, 302, 303, 307, 308, 300, 304} {
		for _, to := range []string{inside.URL, "http://169.254.169.254/latest/meta-data", "/here", "file:///etc/passwd"} {
			r.answers(func(_ int, w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Location", to)
				w.WriteHeader(status)
			})
			e := s.add(Wish{URL: r.URL})
			s.clock.pass(testWindow)
			attempt, err := s.Test(t.Context(), e)
			if err != nil || attempt.Delivered || attempt.Status != status {
				t.Errorf("%d: %v %v", status, attempt, err)
			}
			_ = s.Remove(t.Context(), e)
		}
	}
	if len(inside.all()) != 0 {
		t.Error("it was followed")
	}
}

// The proxy of the environment is not asked: it would dial for us.
func TestNoProxy(t *testing.T) {
	if transport := New(Config{}).client.Transport.(*http.Transport); transport.Proxy != nil {
		t.Error("there is a proxy")
	}
}
