// What pages do with JavaScript: copy buttons, the token in snippets, the theme switch, the values of charts,
// suggestions in the search box, and a query that waits for its user to sign in. All of it
// is hidden or harmless without.
const root = document.documentElement;
const french = root.lang === "fr";

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

for (const field of document.querySelectorAll("[data-token]")) {
  const input = field.querySelector("input");
  const texts = [...document.querySelectorAll("details code")].map(code => [code, code.textContent]);
  field.hidden = false;
  input.addEventListener("input", () => {
    const token = encodeURIComponent(input.value.trim()) || input.placeholder;
    for (const [code, text] of texts) code.textContent = text.replaceAll(input.placeholder, token);
  });
}

for (const button of document.querySelectorAll("[data-theme-switch]")) {
  const system = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ?? (system.matches ? "dark" : "light")) === "dark";
  const show = () => { button.textContent = isDark() ? button.dataset.light : button.dataset.dark; };
  button.hidden = false;
  button.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    try { localStorage.setItem("theme", root.dataset.theme); } catch { /* storage is blocked: the choice ends with the page */ }
    show();
  });
  system.addEventListener("change", show);
  show();
}

for (const input of document.querySelectorAll("[data-suggestions]")) suggest(input);

for (const form of document.querySelectorAll("[data-draft]")) {
  try {
    const { query, variables } = JSON.parse(sessionStorage.getItem("draft"));
    sessionStorage.removeItem("draft");
    form.elements.query.value = query;
    form.elements.variables.value = variables;
    form.submit();
  } catch { /* there is none, or storage is blocked */ }
}

for (const form of document.querySelectorAll("[data-preview]")) preview(form);

for (const chart of document.querySelectorAll("svg.chart")) read(chart);

// preview shows the chart of a query in the form that saves it: when it opens, and for each
// change of the chart or the query.
function preview(form) {
  let request;
  const show = async (...ids) => {
    request?.abort();
    request = new AbortController();
    const { signal } = request;
    try {
      const body = new URLSearchParams(new FormData(form));
      body.set("preview", "1");
      const response = await fetch(form.action, { method: "POST", body, signal });
      const page = new DOMParser().parseFromString(await response.text(), "text/html");
      for (const id of ids) {
        const shown = document.getElementById(id);
        shown.replaceChildren(...page.getElementById(id)?.childNodes ?? []);
        for (const chart of shown.querySelectorAll("svg.chart")) read(chart);
      }
    } catch { /* a newer one replaces it, or the server cannot be reached: the query can still be saved */ }
  };
  form.addEventListener("change", ({ target }) => {
    if (target.name === "query") show("axes", "preview");
    else if (["chart", "x", "y", "series"].includes(target.name)) show("preview");
  });
  form.addEventListener("submit", event => {
    if (event.submitter?.name !== "preview") return;
    event.preventDefault();
    show("axes", "preview");
  });
  if (form.elements.query.value && !document.getElementById("preview").childElementCount) show("preview");
}

// read shows the values of a chart on hover, and with the arrow keys on focus.
function read(chart) {
  const marks = [...chart.querySelectorAll("title")].map(title => {
    const mark = title.parentElement;
    mark.dataset.value = title.textContent;
    title.remove(); // browsers would show it, too
    return mark;
  });
  if (!marks.length) return;
  const reading = document.createElement("p");
  reading.className = "reading";
  reading.setAttribute("role", "status");
  chart.after(reading);
  chart.tabIndex = 0;
  let selected = -1;
  const show = index => {
    marks[selected]?.classList.remove("shown");
    selected = index;
    reading.textContent = marks[index]?.dataset.value ?? "";
    if (index < 0) return;
    marks[index].classList.add("shown");
    const mark = marks[index].getBoundingClientRect(), frame = reading.offsetParent.getBoundingClientRect();
    const left = mark.left + mark.width / 2 - frame.left - reading.offsetWidth / 2;
    reading.style.left = `${Math.max(0, Math.min(left, frame.width - reading.offsetWidth))}px`;
    reading.style.top = `${mark.top - frame.top - reading.offsetHeight - 8}px`;
  };
  chart.addEventListener("pointermove", event => {
    const distances = marks.map(mark => {
      const box = mark.getBoundingClientRect();
      return Math.hypot(event.clientX - Math.max(box.left, Math.min(event.clientX, box.right)), event.clientY - Math.max(box.top, Math.min(event.clientY, box.bottom)));
    });
    const nearest = distances.indexOf(Math.min(...distances));
    show(distances[nearest] < 24 ? nearest : -1);
  });
  chart.addEventListener("pointerleave", () => show(-1));
  chart.addEventListener("blur", () => show(-1));
  chart.addEventListener("keydown", event => {
    const next = { ArrowRight: selected + 1, ArrowLeft: selected - 1, Home: 0, End: marks.length - 1, Escape: -1 }[event.key];
    if (next === undefined) return;
    event.preventDefault();
    show(next === -1 && event.key === "Escape" ? -1 : (next + marks.length) % marks.length);
  });
}

// suggest makes a search box a combobox with the pages that it suggests.
function suggest(input) {
  const list = document.createElement("div");
  list.className = "suggestions";
  list.id = input.id + "-suggestions";
  list.hidden = true;
  list.setAttribute("role", "listbox");
  list.setAttribute("aria-label", "Suggestions");
  input.after(list);
  for (const [name, value] of Object.entries({ role: "combobox", "aria-autocomplete": "list", "aria-expanded": "false", "aria-controls": list.id })) input.setAttribute(name, value);

  let timer, request, selected = -1;
  const cancel = () => { clearTimeout(timer); request?.abort(); };
  const select = index => {
    list.children[selected]?.setAttribute("aria-selected", "false");
    selected = index;
    const option = list.children[index];
    if (!option) return input.removeAttribute("aria-activedescendant");
    option.setAttribute("aria-selected", "true");
    option.scrollIntoView({ block: "nearest" });
    input.setAttribute("aria-activedescendant", option.id);
  };
  const open = isOpen => {
    list.hidden = !isOpen;
    input.setAttribute("aria-expanded", String(isOpen));
    if (!isOpen) select(-1);
  };
  const show = pages => {
    select(-1);
    list.replaceChildren(...pages.map((page, i) => {
      const option = document.createElement("a");
      const note = document.createElement("span");
      option.id = `${list.id}-${i}`;
      option.href = page.path;
      option.tabIndex = -1;
      option.setAttribute("role", "option");
      option.setAttribute("aria-selected", "false");
      note.textContent = page.note ?? "";
      option.append(page.name, " ", note);
      return option;
    }));
    open(pages.length > 0);
  };
  const fetchSuggestions = async () => {
    request = new AbortController();
    const { signal } = request;
    try {
      const query = new URLSearchParams({ q: input.value.trim(), lang: root.lang });
      const response = await fetch(`${input.dataset.suggestions}?${query}`, { signal, headers: { Accept: "application/json" } });
      const pages = response.ok ? await response.json() : [];
      if (!signal.aborted) show(pages);
    } catch {
      if (!signal.aborted) open(false); // the search itself still works
    }
  };

  input.addEventListener("input", () => {
    cancel();
    if (input.value.trim().length < 2) return open(false);
    timer = setTimeout(fetchSuggestions, 150);
  });
  input.addEventListener("keydown", event => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (event.key === "Escape" && !list.hidden) {
      event.preventDefault(); // which would empty the box
      cancel();
      open(false);
    } else if (step && list.children.length) {
      event.preventDefault();
      if (list.hidden) open(true);
      // One more place than there are options: the text itself.
      const places = list.children.length + 1;
      select((selected + 1 + step + places) % places - 1);
    }
  });
  input.form.addEventListener("submit", event => { // by Enter
    if (selected < 0) return;
    event.preventDefault();
    location.assign(list.children[selected].href);
  });
  input.addEventListener("focusout", () => { cancel(); open(false); });
  list.addEventListener("mousedown", event => event.preventDefault()); // keeps the focus, so that a click arrives
}
