// The keyboard: j and k walk through rows, / goes to the search field, Ctrl+K opens the search for pages and records.

document.addEventListener("keydown", (event) => {
  if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k" && !event.shiftKey && !event.altKey) {
    event.preventDefault();
    openPalette();
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest?.("input, select, textarea, [contenteditable]")) return;
  if (event.key === "/" && !drawer.open) {
    const field = document.querySelector("[data-search]");
    if (!field) return;
    event.preventDefault();
    field.focus();
    field.select();
  } else if (event.key === "j" || event.key === "k") walk(event.key === "j" ? 1 : -1);
});

function walk(step) {
  const rows = [...document.querySelectorAll("main a[data-drawer]")];
  const at = drawer.open
    ? rows.findIndex((each) => each.href === history.state?.drawer)
    : rows.indexOf(document.activeElement);
  const next = rows[at < 0 && step < 0 ? rows.length - 1 : at + step];
  if (!next) return;
  if (drawer.open) openDrawer(next.href, next.dataset.drawer);
  else next.focus();
}

// The dialog is made when it is first opened, so that no page has a hidden field.
let palette = null;
let wait = 0;

function makePalette() {
  const made = document.createElement("dialog");
  made.className = "palette";
  made.setAttribute("aria-label", "Search the console");
  made.innerHTML = '<input type="search" aria-label="Search pages, keys, models and requests" placeholder="Pages, keys, models, requests" autocomplete="off" spellcheck="false"><div class="found"></div>';
  document.body.append(made);
  const [field, found] = made.children;
  field.addEventListener("input", () => {
    clearTimeout(wait);
    wait = setTimeout(() => find(field, found), 120);
  });
  made.addEventListener("click", (event) => {
    if (event.target === made) made.close();
  });
  made.addEventListener("keydown", (event) => {
    const links = [...found.querySelectorAll("a")];
    const at = links.indexOf(document.activeElement);
    if (event.key === "Enter" && at < 0 && links[0]) location.href = links[0].href;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    (links[at + step] ?? field).focus();
  });
  return made;
}

function openPalette() {
  if (!document.querySelector('.side a[href="/dashboard/find"]')) return;
  palette ??= makePalette();
  if (palette.open) return;
  palette.showModal();
  const [field, found] = palette.children;
  field.select();
  find(field, found);
}

async function find(field, found) {
  const words = field.value;
  try {
    const answer = await fetch(`/dashboard/find?part=found&q=${encodeURIComponent(words)}`);
    // The server has escaped what is in it. An answer to earlier words comes too late.
    if (answer.ok && !answer.redirected && words === field.value) found.innerHTML = await answer.text();
  } catch {
    found.textContent = "The gateway does not answer.";
  }
}

for (const link of document.querySelectorAll('.side a[href="/dashboard/find"]')) {
  link.addEventListener("click", (event) => {
    event.preventDefault();
    openPalette();
  });
}

// A click anywhere on a row of the log opens it, unless text was selected.
document.addEventListener("click", (event) => {
  if (event.target.closest("a, button") || String(getSelection())) return;
  event.target.closest("tr")?.querySelector("a[data-drawer]")?.click();
});

// A choice in a filter is applied at once.
for (const form of document.querySelectorAll("form[data-auto]")) {
  form.addEventListener("change", (event) => {
    if (event.target.matches("select")) form.requestSubmit();
  });
}
// Empty fields stay out of the address.
document.addEventListener("submit", (event) => {
  if (event.target.method !== "get") return;
  for (const each of event.target.elements) {
    if (each.name && each.value === "") each.disabled = true;
  }
});
addEventListener("pageshow", () => {
  for (const each of document.querySelectorAll('form[method="get"] :disabled')) each.disabled = false;
});
