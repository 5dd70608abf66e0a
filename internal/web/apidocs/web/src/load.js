// Loads an app that its page does not need at first: its style and its script.
export async function load({ script, style }) {
  const link = Object.assign(document.createElement("link"), { rel: "stylesheet", href: style });
  const styled = new Promise((resolve, reject) => Object.assign(link, { onload: resolve, onerror: reject }));
  document.head.append(link);
  const [app] = await Promise.all([import(script), styled]);
  return app;
}
