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
const page = Number(list.dataset.page) || Infinity; // rows that are shown at once
let most = page;
const constant = document.getElementById("constant"); // of the heat map: whether rows without a change are shown
const MESSAGE = 4; // words that may be a message

let search;
/** Return the search, which is loaded on first use. */
function loadSearch() {
  const parts = [import("./search.mjs"), fetch("search.json").then((answer) => answer.json())];
  search ??= Promise.all(parts).then(([{ makeSearch }, entries]) => makeSearch(entries));
  search.catch(() => (search = undefined));
  return search;
}

function passes(row) {
  if (constant && !constant.checked && row.dataset.e && !valueOf("q").trim()) return false;
  return fields.every(({ id, value }) => {
    if (!value || !(id in key)) return true;
    const had = row.dataset[key[id]] ?? "";
    return id === "kind" ? had === value : had.split(" ").includes(value);
  });
}

/** Return rows in the chosen order. */
function sorted(found) {
  if (valueOf("sort") === "id") return [...found].sort((one, other) => (one.id < other.id ? -1 : 1));
  const place = orders.indexOf(valueOf("sort"));
  const placeOf = (row) => Number(row.dataset.o.split(" ")[place]);
  return place < 0 ? found : [...found].sort((one, other) => placeOf(one) - placeOf(other));
}

/** Return the rows that a text finds, the likeliest first; `shared` has the words, unless one has the whole message. */
async function searched(text) {
  if (!text) return { rows, shared: [] };
  const found = (await loadSearch())(text);
  return { rows: found.map((id) => byId.get(id)), shared: found.shared };
}

/** Say that no failure has a message of which some share words. */
function sayNear(text, { rows: found, shared }) {
  const near = document.getElementById("near");
  if (!near) return;
  near.hidden = !shared.length || text.split(/\s+/).length < MESSAGE || !found.length;
  document.getElementById("shared").textContent = `None has this message; these share words: ${shared.join(", ")}.`;
}

async function show() {
  list.setAttribute("aria-busy", "true");
  const text = valueOf("q").trim();
  const chosen = fields.filter((field) => field.value.trim() && field.value.length <= MOST_LINKED);
  const query = new URLSearchParams(chosen.map((field) => [field.id, field.value.trim()]));
  history.replaceState(null, "", query.size ? `?${query}` : location.pathname);
  let found;
  try {
    const result = await searched(text);
    sayNear(text, result);
    found = sorted(result.rows.filter(passes));
  } catch {
    count.textContent = "The search could not be loaded; try again.";
    return;
  }
  if (text !== valueOf("q").trim()) return; // another letter was typed meanwhile
  for (const row of rows) row.hidden = true;
  for (const row of found.slice(0, most)) row.hidden = false;
  list.append(...found);
  const number = found.length === rows.length ? found.length : `${found.length} of ${rows.length}`;
  count.textContent = `${number} failures${told[valueOf("sort")] ?? ""}`;
  const further = document.getElementById("further");
  if (further) further.hidden = found.length <= most;
  document.getElementById("none").hidden = found.length > 0;
  list.setAttribute("aria-busy", "false");
}

const given = new URLSearchParams(location.search);
for (const field of fields) if (given.has(field.id)) field.value = given.get(field.id);
document.getElementById("filters").hidden = false;
document.getElementById("choices").open = matchMedia("(min-width: 46rem)").matches;
document.getElementById("filters").addEventListener("input", () => {
  most = page;
  show();
});
for (const [id, further] of [["more", () => most + page], ["all", () => Infinity]])
  document.getElementById(id)?.addEventListener("click", () => {
    most = further();
    show();
  });
document.getElementById("read")?.addEventListener("click", () => {
  sessionStorage.setItem("log", valueOf("q"));
  location.href = "match.html";
});
document.getElementById("filters").addEventListener("submit", (event) => event.preventDefault());
document.getElementById("q")?.addEventListener("focus", () => loadSearch(), { once: true });
show();
