# A cache in front of the servers, for Varnish 7.1 or newer with the xkey module
# (Debian: varnish and varnish-modules). It stores public responses until a release
# changes them: each server purges their keys here. See docs/edge.md.

vcl 4.1;

import std;
import xkey;

backend default {
	.host = "127.0.0.1";
	.port = "8080";
	.connect_timeout = 1s;
	.first_byte_timeout = 65s; # servers time out earlier
}

# The addresses of the servers.
acl purgers {
	"127.0.0.1";
	"::1";
}

sub vcl_recv {
	if (req.url == "/.purge") {
		# PALMARES_PURGE_URL=http://varnish:6081/.purge
		# PALMARES_PURGE_HEADER="X-Purge-Token: <content of the file>"
		if (req.method != "POST" || client.ip !~ purgers || !req.http.X-Purge-Token ||
			req.http.X-Purge-Token != regsub(std.fileread("/etc/varnish/purge-token"), "\s+$", "")) {
			return (synth(403, "Forbidden"));
		}
		if (req.http.Surrogate-Key) {
			# Purged responses are removed at once, and not served stale.
			set req.http.X-Purged = xkey.purge(req.http.Surrogate-Key);
		}
		return (synth(200, "Purged"));
	}
	unset req.http.X-Purge-Token;
	unset req.http.Surrogate-Key;

	# Streams, and everything that depends on the caller.
	if ((req.method != "GET" && req.method != "HEAD") || req.http.Authorization || req.http.Cookie ||
		req.url ~ "[?&]token=" || req.http.Accept ~ "text/event-stream") {
		return (pass);
	}

	# Browsers send different values that mean the same page. Varnish requests and
	# stores gzip, and unpacks it for clients that do not accept it, so Accept-Encoding
	# needs no rule. Accept-Language matters only to the redirect of "/", which is not stored.
	if (req.http.Accept ~ "text/html" && req.http.Accept !~ "markdown" && req.url ~ "^/(en|fr)/") {
		set req.http.Accept = "text/html";
	}
	return (hash);
}

sub vcl_backend_response {
	if (beresp.status >= 500 && bereq.is_bgfetch) {
		return (abandon); # serve the stored response
	}
	set beresp.http.xkey = beresp.http.Surrogate-Key;
	# What has no keys could not be purged.
	if (!beresp.http.Surrogate-Key || beresp.http.CDN-Cache-Control ~ "(?i)private|no-store") {
		set beresp.uncacheable = true;
		set beresp.ttl = 2m;
		return (deliver);
	}
	# A response that was not purged has not changed, so it may be served while it is
	# revalidated. If purges fail, this limits how long it may be stale after s-maxage.
	if (beresp.grace > 10m) {
		set beresp.grace = 10m;
	}
}

sub vcl_deliver {
	unset resp.http.xkey;
	unset resp.http.Surrogate-Key;
	unset resp.http.Cache-Tag;
	if (obj.hits > 0) {
		set resp.http.X-Cache = "hit";
	} else {
		set resp.http.X-Cache = "miss";
	}
}
