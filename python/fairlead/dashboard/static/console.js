"use strict";
// What pages gain by a script: live parts, a drawer, tips on charts, copying, drafts. All of it works
// without one.

// ---- live parts: one stream for each tab, closed while nobody looks

const main = document.getElementById("main");
let source = null;
// What was done is said once, and not again when the page is loaded again.
const address = new URL(location.href);
if (address.searchParams.has("done")) {
  for (const name of ["done", "undo"]) address.searchParams.delete(name);
  history.replaceState(null, "", address);
}
// The address of this page, which the drawer changes while it is open.
const own = location.pathname + location.search;

function listen() {
  if (source || !main || !("livePage" in main.dataset)) return;
  for (const each of document.querySelectorAll(".live")) each.textContent = "Connecting";
  source = new EventSource(`/dashboard/live?at=${encodeURIComponent(own)}`);
  source.addEventListener("open", () => showState(true));
  source.addEventListener("error", () => showState(false));
  source.addEventListener("part", (event) => {
    const { id, html } = JSON.parse(event.data);
    const part = document.querySelector(`[data-live="${id}"]`);
    if (!part || part.contains(document.activeElement) || part.querySelector("details[open]")) return;
    // The server has escaped what is in it.
    part.innerHTML = html;
    reach();
  });
}

function showState(isOn) {
  for (const each of document.querySelectorAll(".live")) {
    each.classList.toggle("is-on", isOn);
    each.textContent = isOn ? "Live" : "Reconnecting";
  }
}

function stop() {
  source?.close();
  source = null;
}

listen();
document.addEventListener("visibilitychange", () => (document.hidden ? stop() : listen()));
addEventListener("pagehide", stop);
addEventListener("pageshow", listen);

// ---- where one is stands in the list of pages, however long that is

document.querySelector(".places [aria-current]")?.scrollIntoView({ block: "nearest" });

// ---- tables that are wider than their place are scrolled by keys too

function reach() {
  for (const each of document.querySelectorAll(".scroll")) {
    if (each.scrollWidth > each.clientWidth || each.scrollHeight > each.clientHeight) each.tabIndex = 0;
    else if (!each.hasAttribute("role")) each.removeAttribute("tabindex");
  }
}

reach();
addEventListener("resize", reach);
document.addEventListener("toggle", reach, true);

// ---- tips on charts

const tip = document.createElement("div");
tip.className = "tip";
tip.hidden = true;
document.body.append(tip);

document.addEventListener("pointermove", (event) => {
  const column = event.target.closest?.("[data-tip]");
  tip.hidden = !column;
  if (!column) return;
  column.querySelector("title")?.remove();
  tip.textContent = column.dataset.tip;
  const box = tip.getBoundingClientRect();
  const x = Math.min(event.clientX + 14, innerWidth - box.width - 8);
  const y = event.clientY - box.height - 12;
  tip.style.left = `${Math.max(8, x)}px`;
  tip.style.top = `${y < 8 ? event.clientY + 18 : y}px`;
});

// ---- the drawer: a page beside the page, with the address of that page

const drawer = document.createElement("dialog");
drawer.className = "drawer";
drawer.setAttribute("aria-label", "Details");
document.body.append(drawer);
drawer.addEventListener("click", (event) => {
  if (event.target === drawer || event.target.closest("[data-shut]")) drawer.close();
});
// Before it is shut by a key, and after it is shut by a button.
for (const name of ["cancel", "close"]) {
  drawer.addEventListener(name, () => history.replaceState(null, "", own));
}

async function openDrawer(href, part) {
  try {
    const answer = await fetch(`${href}?part=${part}`);
    if (!answer.ok || answer.redirected) throw new Error();
    drawer.innerHTML = '<button type="button" class="second small shut" data-shut>Close</button>';
    const body = document.createElement("div");
    body.innerHTML = await answer.text();
    drawer.append(body);
    if (!drawer.open) drawer.showModal();
    drawer.scrollTop = 0;
    history.replaceState({ drawer: href }, "", href);
    reach();
  } catch {
    location.href = href;
  }
}

document.addEventListener("click", (event) => {
  const link = event.target.closest("a[data-drawer]");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
  event.preventDefault();
  openDrawer(link.href, link.dataset.drawer);
});

// ---- copying

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  const from = document.getElementById(button.dataset.copy);
  const text = from.value ?? from.textContent;
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
  } catch {
    from.focus();
    from.select?.();
    button.textContent = "Press Ctrl+C";
  }
});
for (const button of document.querySelectorAll("[data-copy]")) button.hidden = false;

// ---- drafts: what was typed outlives a sign-in in between; secrets and files are not kept

const typedFields = (form) =>
  [...form.elements].filter((each) => each.name && each.matches("input, select, textarea") && !["hidden", "password", "file"].includes(each.type));
const isChecked = (each) => each.type === "checkbox" || each.type === "radio";
const drafts = new Map();
for (const form of document.querySelectorAll('form[method="post"]')) {
  if (!typedFields(form).length) continue;
  const act = form.querySelector('[name="act"]')?.value ?? "";
  const base = `draft ${location.pathname} ${act}`;
  let name = base;
  for (let at = 2; drafts.has(name); at += 1) name = `${base} ${at}`;
  drafts.set(name, form);
}
// The server says itself what it was sent, or has taken it.
const isAnswered = document.querySelector("[data-toast], [data-arrived], [data-edited], .error:not([hidden])") !== null;
for (const name of Object.keys(sessionStorage).filter((each) => each.startsWith("draft "))) {
  const form = drafts.get(name);
  const kept = JSON.parse(sessionStorage.getItem(name));
  sessionStorage.removeItem(name);
  // Where a page without the form follows, what was typed has arrived.
  if (!form || isAnswered || Date.now() - kept.at > 30 * 60_000) continue;
  typedFields(form).forEach((each, at) => {
    const [field, value] = kept.values[at] ?? [];
    if (field !== each.name) return;
    if (isChecked(each)) each.checked = value;
    else each.value = value;
  });
  for (const group of form.querySelectorAll("details")) group.open = true;
  for (let around = form.closest("details"); around; around = around.parentElement.closest("details")) around.open = true;
}
for (const [name, form] of drafts) {
  form.addEventListener("submit", () => {
    const values = typedFields(form).map((each) => [each.name, isChecked(each) ? each.checked : each.value]);
    sessionStorage.setItem(name, JSON.stringify({ at: Date.now(), values }));
  });
}

// ---- rows that are put in an order: dragged by their grip, or moved by their buttons

for (const list of document.querySelectorAll("[data-order]")) {
  const target = document.getElementById(`order-${list.dataset.order}`);
  const ids = () => [...list.children].map((row) => row.dataset.id).join(",");
  for (const grip of list.querySelectorAll(".grip")) {
    grip.hidden = false;
    grip.addEventListener("pointerdown", (event) => {
      if (event.button) return;
      event.preventDefault();
      const row = grip.closest("[data-id]");
      const before = ids();
      row.classList.add("is-dragged");
      const move = ({ clientY }) => {
        const others = [...list.children].filter((each) => each !== row);
        const next = others.find((each) => {
          const box = each.getBoundingClientRect();
          return clientY < box.top + box.height / 2;
        });
        if (next) list.insertBefore(row, next);
        else list.append(row);
      };
      const drop = () => {
        document.removeEventListener("pointermove", move);
        for (const name of ends) document.removeEventListener(name, drop);
        row.classList.remove("is-dragged");
        if (ids() === before) return;
        target.elements.order.value = ids();
        target.submit();
      };
      // Not by a capture of the grip: that ends when its row is put elsewhere.
      const ends = ["pointerup", "pointercancel"];
      document.addEventListener("pointermove", move);
      for (const name of ends) document.addEventListener(name, drop);
    });
  }
}

// A button that was pressed has the focus again on the page that follows.
document.addEventListener("submit", (event) => {
  const again = event.target.dataset.again;
  if (again) sessionStorage.setItem("again", again);
});
const again = sessionStorage.getItem("again");
sessionStorage.removeItem("again");
if (again) {
  const button = document.querySelector(`[data-again="${CSS.escape(again)}"] button`);
  if (button?.disabled) button.closest("div").querySelector("button:not([disabled])")?.focus();
  else button?.focus();
}

// ---- the first field that is wrong is where one goes on

document.querySelector("[aria-invalid]")?.scrollIntoView({ block: "center" });
document.querySelector("[aria-invalid]")?.focus();
