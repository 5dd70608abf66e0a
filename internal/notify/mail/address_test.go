package mail

import (
	"strings"
	"testing"
)

func TestCheckURL(t *testing.T) {
	for address, want := range map[string]string{
		"smtp://mail.example.com":                          "mail.example.com:587",
		"smtps://mail.example.com/":                        "mail.example.com:465",
		"smtp://user:pa%2Fss@mail.example.com:25":          "mail.example.com:25",
		"smtp://user%40example.com:secret@[2001:db8::1]:1": "2001:db8::1:1",
	} {
		s, err := parseServer(address, nil)
		if err != nil || CheckURL(address) != nil || s.host+":"+s.port != want || s.loopback || s.tls.InsecureSkipVerify {
			t.Errorf("%s: %v, %v", address, s, err)
		}
	}
	if err := CheckURL(""); err != nil {
		t.Error(err)
	}
	for _, address := range []string{
		"hunter2", "hunter2:25", "http://ana:hunter2@host", "smtp:ana:hunter2@host", "smtp://", "smtp:///hunter2", "smtp://ana:hunter2@", "smtp://ana:hunter2@:25",
		"smtp://ana:hunter2@host:port", "smtp://ana:hunter2@host:0", "smtp://ana:hunter2@host:65536", "smtp://ana:hunter2@host:-1",
		"smtp://ana:hunter2/@host", "smtp://ana:hunter2#@host", "smtp://ana:hunter2?@host", "smtp://ana:hunter2%@host", "smtp://ana:25/hunter2@host:587",
		"smtp://ana:hunter2@host/path", "smtp://ana:hunter2@host?a=b", "smtp://ana:hunter2@host#a", "smtp://ana@host", "smtp://:hunter2@host", "smtp://ana:hunter2@ho st", "smtp://ana:hunter2@host\n",
	} {
		err := CheckURL(address)
		if err == nil {
			t.Errorf("%q is taken", address)
			continue
		}
		_, fromNew := New(Config{URL: address, From: "ana@example.com"})
		for _, sentence := range []string{err.Error(), fromNew.Error()} {
			if strings.Contains(sentence, "hunter2") || strings.Contains(sentence, "ana") {
				t.Errorf("%q is repeated: %s", address, sentence)
			}
		}
	}
}

func TestLoopback(t *testing.T) {
	for host, want := range map[string]bool{
		"localhost": true, "LOCALHOST": true, "127.0.0.1": true, "127.9.8.7": true, "::1": true, "::ffff:127.0.0.1": true,
		"localhost.example.com": false, "127.0.0.1.example.com": false, "10.0.0.1": false, "0.0.0.0": false, "::": false, "example.com": false,
	} {
		if isLoopback(host) != want {
			t.Errorf("%s: %t", host, !want)
		}
	}
}

func TestCheckFrom(t *testing.T) {
	for _, address := range []string{"ana@example.com", "Ana <ana@example.com>", "\"Ana, of palmarès\" <ana@example.com>", "Été <ana@xn--bcher-kva.example>"} {
		if err := CheckFrom(address); err != nil {
			t.Errorf("%s: %v", address, err)
		}
	}
	for _, address := range []string{"", "ana", "Ana <ana>", "Ana\r\nBcc: eve@example.com <ana@example.com>", "ana@example.com\r\n", "ana@example.com, eve@example.com", "señora@example.com", "ana@bücher.example", "\"a b\"@example.com"} {
		if CheckFrom(address) == nil {
			t.Errorf("%q is taken", address)
		}
	}
	if _, err := New(Config{URL: "smtp://localhost"}); err == nil {
		t.Error("it would send from nobody")
	}
}

func TestMasked(t *testing.T) {
	for address, want := range map[string]string{
		"ana@example.com": "a…@example.com", "a@example.com": "a…@example.com", "éa@example.com": "é…@example.com",
		"a@b@example.com": "a…@example.com", "@example.com": "…", "ana": "…", "": "…",
	} {
		if got := masked(address); got != want {
			t.Errorf("%q became %q", address, got)
		}
	}
}
