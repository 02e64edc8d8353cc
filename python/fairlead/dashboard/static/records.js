// Files of this device that go into a field of a form.

for (const input of document.querySelectorAll("[data-read-into]")) {
  const place = input.closest("[data-scripted]");
  place.hidden = false;
  input.addEventListener("change", async () => {
    const [file] = input.files;
    const error = place.querySelector(".error");
    error.hidden = true;
    if (!file) return;
    if (file.size > Number(input.dataset.most)) {
      error.textContent = `${file.name} has ${file.size.toLocaleString("en")} bytes, and a page takes ${Number(input.dataset.most).toLocaleString("en")}: send it to POST /v1/files with the key.`;
      error.hidden = false;
      input.value = "";
      return;
    }
    document.getElementById(input.dataset.readInto).value = await file.text();
    const name = document.getElementById(input.dataset.nameInto);
    if (!name.value) name.value = file.name;
  });
}
