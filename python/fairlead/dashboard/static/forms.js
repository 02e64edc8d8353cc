// Long forms: the number of changes beside the button, and a search that hides the fields without the words.

for (const form of document.querySelectorAll("form.long")) {
  const note = form.querySelector("[data-changes]");
  const isChanged = (each) => {
    if (each.matches("select")) return [...each.options].some((one) => one.selected !== one.defaultSelected);
    return isChecked(each) ? each.checked !== each.defaultChecked : each.value !== each.defaultValue;
  };
  const tell = () => {
    const many = typedFields(form).concat([...form.querySelectorAll('input[type="password"]')]).filter(isChanged).length;
    note.textContent = many === 0 ? "" : many === 1 ? "1 change" : `${many} changes`;
  };
  form.addEventListener("input", tell);
  tell();
}

for (const input of document.querySelectorAll("[data-narrow]")) {
  input.closest("[hidden]").hidden = false;
  input.addEventListener("input", () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const group of document.querySelectorAll("form.long > details")) {
      for (const field of group.querySelectorAll(".field")) {
        const text = `${group.querySelector("h2").textContent} ${field.textContent}`.toLowerCase();
        field.hidden = !words.every((each) => text.includes(each));
      }
      group.hidden = !group.querySelector(".field:not([hidden])");
    }
  });
}

for (const input of document.querySelectorAll("[data-tiles]")) {
  input.closest("[data-scripted]")?.removeAttribute("hidden");
  input.addEventListener("input", () => {
    const words = input.value.trim().toLowerCase();
    for (const section of document.querySelectorAll(".tiles-of")) {
      for (const tile of section.querySelectorAll("li, tbody tr")) tile.hidden = !tile.textContent.toLowerCase().includes(words);
      section.hidden = !section.querySelector("li:not([hidden]), tbody tr:not([hidden])");
    }
  });
}
