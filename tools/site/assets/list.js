// Searches, filters and sorts the failures of the index and of the heat map. The address keeps the choice, so that it
// can be linked.
"use strict";
const list = document.getElementById("failures");
const rows = [...list.children];
const byId = new Map(rows.map((row) => [row.id, row]));
const fields = ["q", "package", "stack", "kind", "silent", "strategy", "sort"]
  .map((id) => document.getElementById(id))
  .filter(Boolean);
const key = { package: "p", stack: "f", kind: "k", silent: "s", strategy: "t" };
const orders = ["severity", "newest", "reports"]; // the places that a row states
const told = { severity: ": silent ones first, then hangs, then errors" };
const MOST_LINKED = 1000; // characters of a search that the address keeps
const valueOf = (id) => document.getElementById(id)?.value ?? "";
const count = document.getElementById("count");

let search;
/** Return the search, which is loaded on first use. */
function loadSearch() {
  const parts = [import("./search.mjs"), fetch("search.json").then((answer) => answer.json())];
  search ??= Promise.all(parts).then(([{ makeSearch }, entries]) => makeSearch(entries));
  search.catch(() => (search = undefined));
  return search;
}

function passes(row) {
  return fields.every(({ id, value }) => {
    if (!value || !(id in key)) return true;
    const had = row.dataset[key[id]] ?? "";
    return id === "kind" ? had === value : had.split(" ").includes(value);
  });
}

/** Return rows in the chosen order. */
function sorted(found) {
  const place = orders.indexOf(valueOf("sort"));
  const placeOf = (row) => Number(row.dataset.o.split(" ")[place]);
  return place < 0 ? found : [...found].sort((one, other) => placeOf(one) - placeOf(other));
}

/** Return the rows that a text finds, the likeliest first. */
async function searched(text) {
  if (!text) return rows;
  return (await loadSearch())(text).map((id) => byId.get(id));
}

async function show() {
  list.setAttribute("aria-busy", "true");
  const text = valueOf("q").trim();
  const chosen = fields.filter((field) => field.value.trim() && field.value.length <= MOST_LINKED);
  const query = new URLSearchParams(chosen.map((field) => [field.id, field.value.trim()]));
  history.replaceState(null, "", query.size ? `?${query}` : location.pathname);
  let found;
  try {
    found = sorted((await searched(text)).filter(passes));
  } catch {
    count.textContent = "The search could not be loaded; try again.";
    return;
  }
  if (text !== valueOf("q").trim()) return; // another letter was typed meanwhile
  for (const row of rows) row.hidden = true;
  for (const row of found) row.hidden = false;
  list.append(...found);
  const number = found.length === rows.length ? found.length : `${found.length} of ${rows.length}`;
  count.textContent = `${number} failures${told[valueOf("sort")] ?? ""}`;
  document.getElementById("none").hidden = found.length > 0;
  list.setAttribute("aria-busy", "false");
}

const given = new URLSearchParams(location.search);
for (const field of fields) if (given.has(field.id)) field.value = given.get(field.id);
document.getElementById("filters").hidden = false;
document.getElementById("filters").addEventListener("input", show);
document.getElementById("filters").addEventListener("submit", (event) => event.preventDefault());
document.getElementById("q")?.addEventListener("focus", () => loadSearch(), { once: true });
show();
