"use strict";
// The kanban: todos are moved by dragging, and by a handle with the keyboard or by touch. What is
// told to the server is beside which other todo a todo is to stand.

const kanban = document.querySelector("[data-kanban]");
if (kanban) start(kanban);

function start(board) {
  const live = document.getElementById("live");
  const mover = document.querySelector("[data-mover]");
  const columns = [...board.querySelectorAll(".column")];
  let held = null; // {card, from: {list, next}} while a todo is picked up
  let dragged = null;

  for (const handle of board.querySelectorAll(".handle")) handle.hidden = false;

  const say = (text) => { live.textContent = text; };
  const listOf = (column) => column.querySelector("[data-cards]");
  const columnOf = (card) => card.closest(".column");
  const handleOf = (card) => card.querySelector(".handle");
  const place = (card) => {
    const cards = [...card.parentElement.children];
    return `${columnOf(card).dataset.name}, ${cards.indexOf(card) + 1} of ${cards.length}`;
  };

  function count() {
    for (const column of columns) {
      // Columns that are longer than what is shown keep the difference.
      const shown = listOf(column).children.length;
      const badge = column.querySelector("[data-count]");
      badge.textContent = String(shown + Number(badge.dataset.more ??= badge.textContent - shown));
    }
  }

  async function save(card, from) {
    const list = card.parentElement;
    const cards = [...list.children];
    const at = cards.indexOf(card);
    const body = { status: columnOf(card).dataset.status };
    if (cards[at + 1]) body.before = cards[at + 1].dataset.todo;
    else if (cards[at - 1]) body.after = cards[at - 1].dataset.todo;
    count();
    try {
      const answer = await fetch(`/api/board/todos/${card.dataset.todo}/move`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(body),
      });
      if (!answer.ok) throw new Error((await answer.json()).error.message);
      card.classList.toggle("is-done", body.status === "done");
      say(`${card.dataset.title} is now in ${place(card)}.`);
    } catch (error) {
      from.list.insertBefore(card, from.next);
      count();
      say(`${card.dataset.title} was not moved: ${error.message}`);
    }
  }

  // ---- by handle

  function pickUp(card) {
    held = { card, from: { list: card.parentElement, next: card.nextElementSibling } };
    card.classList.add("is-held");
    handleOf(card).setAttribute("aria-pressed", "true");
    mover.hidden = false;
    say(`Picked up ${card.dataset.title}, in ${place(card)}. Arrow keys move it, Enter puts it down, Escape leaves it where it was.`);
  }

  function letGo() {
    const { card, from } = held;
    held = null;
    card.classList.remove("is-held");
    handleOf(card).setAttribute("aria-pressed", "false");
    mover.hidden = true;
    return { card, from };
  }

  function step(direction) {
    if (!held) return;
    const { card } = held;
    if (direction === "drop") {
      const { from } = letGo();
      handleOf(card).focus();
      if (from.list === card.parentElement && from.next === card.nextElementSibling) say(`${card.dataset.title} stays.`);
      else save(card, from);
      return;
    }
    if (direction === "cancel") {
      const { from } = letGo();
      from.list.insertBefore(card, from.next);
      handleOf(card).focus();
      say(`${card.dataset.title} stays in ${place(card)}.`);
      return;
    }
    if (direction === "up" && card.previousElementSibling) card.previousElementSibling.before(card);
    if (direction === "down" && card.nextElementSibling) card.nextElementSibling.after(card);
    if (direction === "left" || direction === "right") {
      const to = columns[columns.indexOf(columnOf(card)) + (direction === "left" ? -1 : 1)];
      if (to) {
        const at = [...card.parentElement.children].indexOf(card);
        listOf(to).insertBefore(card, listOf(to).children[at] ?? null);
      }
    }
    handleOf(card).focus();
    card.scrollIntoView({ block: "nearest", inline: "nearest" });
    say(`${card.dataset.title}: ${place(card)}.`);
  }

  const KEYS = { ArrowLeft: "left", ArrowRight: "right", ArrowUp: "up", ArrowDown: "down", Enter: "drop", " ": "drop", Escape: "cancel" };

  board.addEventListener("click", (event) => {
    const handle = event.target.closest(".handle");
    if (!handle) return;
    const card = handle.closest(".card");
    if (held && held.card === card) step("drop");
    else {
      if (held) step("cancel");
      pickUp(card);
      handle.focus();
    }
  });
  document.addEventListener("keydown", (event) => {
    if (!held || !KEYS[event.key] || event.target.closest("[data-mover]")) return;
    event.preventDefault();
    step(KEYS[event.key]);
  });
  mover.addEventListener("click", (event) => {
    const button = event.target.closest("[data-step]");
    if (button) step(button.dataset.step);
  });

  // ---- by dragging

  board.addEventListener("dragstart", (event) => {
    const card = event.target.closest?.(".card");
    if (!card) return;
    if (held) step("cancel");
    dragged = { card, from: { list: card.parentElement, next: card.nextElementSibling }, dropped: false };
    event.dataTransfer.effectAllowed = "move";
    event.dataTransfer.setData("text/plain", card.dataset.title);
    card.classList.add("is-dragged");
  });
  board.addEventListener("dragover", (event) => {
    const column = event.target.closest(".column");
    if (!dragged || !column) return;
    event.preventDefault();
    for (const each of columns) each.classList.toggle("is-target", each === column);
    const below = [...listOf(column).children].find((card) => {
      if (card === dragged.card) return false;
      const box = card.getBoundingClientRect();
      return event.clientY < box.top + box.height / 2;
    });
    const next = below ?? null;
    if (dragged.card.parentElement !== listOf(column) || dragged.card.nextElementSibling !== next) {
      listOf(column).insertBefore(dragged.card, next);
    }
  });
  board.addEventListener("drop", (event) => {
    if (!dragged) return;
    event.preventDefault();
    dragged.dropped = true;
  });
  board.addEventListener("dragend", () => {
    if (!dragged) return;
    const { card, from, dropped } = dragged;
    dragged = null;
    card.classList.remove("is-dragged");
    for (const each of columns) each.classList.remove("is-target");
    if (!dropped) from.list.insertBefore(card, from.next);
    else if (from.list !== card.parentElement || from.next !== card.nextElementSibling) save(card, from);
  });
  count();
}
