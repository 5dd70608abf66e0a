// Copy buttons. They are hidden in the HTML, since they need this script.
for (const button of document.querySelectorAll("[data-copy]")) {
  const source = document.getElementById(button.dataset.copy);
  const label = button.textContent;
  button.hidden = false;
  button.setAttribute("aria-live", "polite");
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(source.textContent);
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(source); // no clipboard access: select the text, so that Ctrl+C copies it
      button.textContent = "Selected";
    }
    setTimeout(() => { button.textContent = label; }, 2000);
  });
}
