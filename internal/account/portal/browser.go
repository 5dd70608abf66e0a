package portal

import "strings"

// browserNames are parts of User-Agent headers and the browsers that send them.
// Most browsers also claim to be others, so the order matters.
var browserNames = [][2]string{
	{"Edg/", "Edge"}, {"EdgA/", "Edge"}, {"EdgiOS/", "Edge"}, {"OPR/", "Opera"}, {"OPiOS/", "Opera"}, {"OPT/", "Opera"},
	{"SamsungBrowser/", "Samsung Internet"}, {"Vivaldi/", "Vivaldi"}, {"YaBrowser/", "Yandex Browser"}, {"DuckDuckGo/", "DuckDuckGo"}, {"Ddg/", "DuckDuckGo"},
	{"FxiOS/", "Firefox"}, {"Firefox/", "Firefox"}, {"CriOS/", "Chrome"}, {"Chromium/", "Chromium"}, {"Chrome/", "Chrome"}, {"Safari/", "Safari"},
}

// systemNames are parts of User-Agent headers and the systems that they stand for. iPhones
// and iPads claim to be like macOS, and Android to be Linux.
var systemNames = [][2]string{
	{"iPhone", "iPhone"}, {"iPad", "iPad"}, {"Android", "Android"}, {"CrOS", "ChromeOS"}, {"Windows", "Windows"}, {"Macintosh", "macOS"},
	{"FreeBSD", "FreeBSD"}, {"OpenBSD", "OpenBSD"}, {"Linux", "Linux"},
}

// device is what a User-Agent header names. Either is empty if it is unknown.
type device struct{ Browser, System string }

func deviceOf(userAgent string) device {
	if !strings.HasPrefix(userAgent, "Mozilla/") { // every browser claims to be Netscape
		return device{}
	}
	return device{firstName(browserNames, userAgent), firstName(systemNames, userAgent)}
}

func firstName(names [][2]string, userAgent string) string {
	for _, known := range names {
		if strings.Contains(userAgent, known[0]) {
			return known[1]
		}
	}
	return ""
}
