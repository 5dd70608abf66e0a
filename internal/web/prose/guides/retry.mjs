// Sends a request again if the connection is closed or the server is busy (503).
async function send(url, options, attempts = 4) {
  const response = await fetch(url, options).catch((error) => {
    if (attempts === 1) throw error;
  });
  if (response && (response.status !== 503 || attempts === 1)) return response;
  const seconds = Number(response?.headers.get("Retry-After") ?? 1);
  await new Promise((resolve) => setTimeout(resolve, 1000 * seconds));
  return send(url, options, attempts - 1);
}
