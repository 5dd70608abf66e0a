def send(request, attempts=4):
    """Sends a request again if the connection is closed or the server is busy (503)."""
    for attempts_left in reversed(range(attempts)):
        try:
            return urllib.request.urlopen(request, timeout=30)
        except OSError as error:
            status = getattr(error, "code", 503)
            if status != 503 or not attempts_left:
                raise
            headers = getattr(error, "headers", None) or {}
            time.sleep(int(headers.get("Retry-After", 1)))
