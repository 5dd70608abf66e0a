// The color scheme of the page: what the visitor chose, or that of the system.
const system = matchMedia("(prefers-color-scheme: dark)");
const { documentElement: root } = document;

export const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);

export function onSchemeChange(update) {
  system.addEventListener("change", update);
  new MutationObserver(update).observe(root, { attributeFilter: ["data-theme"] });
}
