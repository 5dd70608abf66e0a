// Applies the visitor's choice of a theme before the page is drawn. Without one,
// or without access to it, the page follows the system.
try {
  const chosen = localStorage.getItem("theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
} catch { /* storage is blocked */ }
