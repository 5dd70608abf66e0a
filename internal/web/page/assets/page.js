// What pages do with JavaScript: copy buttons, the theme switch and suggestions
// in the search box. All of it is hidden or harmless without.
const french = document.documentElement.lang === "fr";

for (const button of document.querySelectorAll("[data-copy]")) {
  const source = document.getElementById(button.dataset.copy);
  const label = button.textContent;
  button.hidden = false;
  button.setAttribute("aria-live", "polite");
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(source.textContent);
      button.textContent = french ? "Copié" : "Copied";
    } catch {
      getSelection().selectAllChildren(source); // no clipboard access: select the text, so that Ctrl+C copies it
      button.textContent = french ? "Sélectionné" : "Selected";
    }
    setTimeout(() => { button.textContent = label; }, 2000);
  });
}

for (const button of document.querySelectorAll("[data-theme-switch]")) {
  const root = document.documentElement;
  const isDark = () => (root.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
  const show = () => { button.textContent = isDark() ? button.dataset.light : button.dataset.dark; };
  button.hidden = false;
  button.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    localStorage.setItem("theme", root.dataset.theme);
    show();
  });
  show();
}
