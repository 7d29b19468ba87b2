// On every page: the theme's button, buttons that copy, and addresses that only the reader's browser knows.
"use strict";
const root = document.documentElement;
const button = document.getElementById("theme");
const isDark = () =>
  root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
const label = () => (button.textContent = isDark() ? "Light" : "Dark");
button.hidden = false;
label();
button.addEventListener("click", () => {
  root.dataset.theme = isDark() ? "light" : "dark";
  localStorage.setItem("theme", root.dataset.theme);
  label();
});

for (const place of document.querySelectorAll("[data-address]"))
  place.textContent = new URL(place.dataset.address, location.href).href;

for (const copier of document.querySelectorAll(".copier")) {
  copier.hidden = false;
  copier.addEventListener("click", async () => {
    await navigator.clipboard.writeText(copier.previousElementSibling.textContent.trimEnd() + "\n");
    copier.textContent = "Copied";
    setTimeout(() => (copier.textContent = "Copy"), 1500);
  });
}
