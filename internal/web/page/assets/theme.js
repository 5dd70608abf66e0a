// Applies the visitor's choice of a theme before the page is drawn. Without one,
// the page follows the system.
const chosen = localStorage.getItem("theme");
if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
