// Files of this device that go into a field of a form.

for (const input of document.querySelectorAll("[data-read-into]")) {
  const place = input.closest("[data-scripted]");
  place.hidden = false;
  input.addEventListener("change", async () => {
    const [file] = input.files;
    const error = place.querySelector(".error");
    error.hidden = true;
    if (!file) return;
    // A form sends some characters as three.
    const text = file.size > Number(input.dataset.most) ? null : await file.text();
    const sent = text === null ? Infinity : new URLSearchParams({ text }).toString().length;
    if (sent > 950_000) {
      error.textContent = `${file.name} (${file.size.toLocaleString("en")} bytes) is more than a page takes: send it to POST /v1/files with the key.`;
      error.hidden = false;
      input.value = "";
      return;
    }
    document.getElementById(input.dataset.readInto).value = text;
    const name = document.getElementById(input.dataset.nameInto);
    if (!name.value) name.value = file.name;
  });
}
