// Filters the list of failures as one types. The address keeps the choice, so that it can be linked.
"use strict";
const rows = [...document.querySelectorAll("#failures > li")];
const fields = ["q", "package", "stack", "kind", "silent", "strategy"]
  .map((id) => document.getElementById(id))
  .filter(Boolean);
const key = { package: "p", stack: "f", kind: "k", silent: "s", strategy: "t" };

function matches(row) {
  return fields.every(({ id, value }) => {
    if (!value) return true;
    if (id === "q") return value.toLowerCase().split(/\s+/).every((word) => row.dataset.q.includes(word));
    const had = row.dataset[key[id]] ?? "";
    return id === "kind" ? had === value : had.split(" ").includes(value);
  });
}

function show() {
  let shown = 0;
  for (const row of rows) {
    row.hidden = !matches(row);
    shown += !row.hidden;
  }
  const query = new URLSearchParams(fields.filter((one) => one.value).map((one) => [one.id, one.value]));
  history.replaceState(null, "", query.size ? `?${query}` : location.pathname);
  document.getElementById("count").textContent =
    shown === rows.length ? `${shown} failures` : `${shown} of ${rows.length} failures`;
  document.getElementById("none").hidden = shown > 0;
}

const given = new URLSearchParams(location.search);
for (const field of fields) if (given.has(field.id)) field.value = given.get(field.id);
document.getElementById("filters").hidden = false;
document.getElementById("filters").addEventListener("input", show);
document.getElementById("filters").addEventListener("submit", (event) => event.preventDefault());
show();
