// `repros match` in the browser: Pyodide runs the project's own code on the pasted log. On this thread and not in a
// worker, because a worker is not bound by the page's Content-Security-Policy.
import { loadPyodide } from "../pyodide/pyodide.mjs";

const byId = (id) => document.getElementById(id);
const state = byId("state");
let python;
let isLoaded = false;

async function load() {
  state.textContent = "Loading Python...";
  const runtime = await loadPyodide({ indexURL: new URL("../pyodide/", import.meta.url).href });
  const [code, program] = await Promise.all([fetch("python.zip"), fetch("assets/match.py")]);
  runtime.FS.writeFile("/python.zip", new Uint8Array(await code.arrayBuffer()));
  // The catalogue is read with pathlib, so the code is unpacked rather than imported from the archive.
  runtime.runPython(`import shutil, sys
shutil.unpack_archive("/python.zip", "/code")
sys.path.insert(0, "/code")`);
  runtime.runPython(await program.text());
  return runtime.globals.get("answer");
}

/** Return the report of `repros match --json` on a log. */
export async function match(text) {
  python ??= load();
  python.catch(() => (python = undefined));
  const answer = await python;
  isLoaded = true;
  return JSON.parse(answer(text));
}
globalThis.reprosMatch = match;

function element(tag, name, ...children) {
  const made = document.createElement(tag);
  if (name) made.className = name;
  made.append(...children);
  return made;
}

function link(id) {
  const made = element("a", "", id);
  made.href = `failures/${id}.html`;
  return made;
}

function code(text) {
  return element("code", "", text);
}

function fact(name, ...values) {
  return element("div", "", element("dt", "", name), ...values.map((value) => element("dd", "", ...[value].flat())));
}

function seen({ line, ranks, type, message }) {
  const where = [`line ${line}`, ...ranks].join(", ");
  return [`${where}: `, code([type, message].filter(Boolean).join(": "))];
}

function candidate(one) {
  const facts = element(
    "dl",
    "summary",
    fact("Why", one.why),
    fact("Seen", [...seen(one.seen[0]), one.seen.length > 1 ? ` and ${one.seen.length - 1} more` : ""]),
    fact("Versions", one.affected.why),
  );
  if (one.works.length)
    facts.append(fact("Works", ...one.works.map(({ variant, about }) => [code(variant), ` ${about}`])));
  if (one.does_not_fix.length)
    facts.append(fact("Does not", ...one.does_not_fix.map(({ variant, claim }) => [code(variant), ` ${claim}`])));
  if (one.rivals.length || one.confidence === "possible")
    facts.append(fact("Apart", one.apart ?? "nothing in the log; run it with --confirm --python PATH"));
  const page = link(one.id);
  page.textContent = "the page of this failure";
  facts.append(fact("Next", ["read ", page, ": its cause, the diff, and how to run it"]));
  const heading = element("h2", "", link(one.id), ` ${one.title} `, element("span", `tag ${one.confidence}`, one.confidence));
  return element("section", "candidate", heading, facts);
}

/** Return what the words of an exception say where no documented failure has it. */
function explanation({ title, facts, where, causes, next }) {
  const list = element("dl", "summary");
  if (facts.length) list.append(fact("It says", ...facts));
  if (where) list.append(fact("Where", [code(`${where.file}:${where.line}`), ` ${where.function} `, code(where.code ?? "")]));
  for (const one of causes.slice(0, 4))
    list.append(fact(one.likelihood, one.cause, ["check: ", code(one.check)], ["fix: ", code(one.fix)]));
  if (next.length) list.append(fact("Next", ...next.map((command) => [code(command)])));
  return element("section", "candidate", element("h3", "", title ?? "What the log says"), list);
}

function show(found) {
  const parts = found.candidates.map(candidate);
  if (!parts.length) {
    parts.push(element("h2", "", "No known repro"));
    parts.push(...(found.explanations ?? []).slice(0, 2).map(explanation));
    const list = found.exceptions.slice(0, 6).map((one) => element("li", "", ...seen(one)));
    if (list.length) parts.push(element("p", "", "These exceptions were read:"), element("ul", "", ...list));
    else parts.push(element("p", "", "Neither a traceback nor the last line of one was read."));
  }
  for (const { id, line, why } of found.ruled_out)
    parts.push(element("p", "note", link(id), ` has the message of line ${line}, but ${why}.`));
  for (const note of found.notes) parts.push(element("p", "note", note));
  byId("answer").replaceChildren(...parts);
}

const MOST_WAIT_MS = 2000;
let search;
/** Show the failures whose whole message is in a text, by the search of the index, until Python answers. */
async function firstLook(text) {
  search ??= Promise.all([import("./search.mjs"), fetch("search.json").then((response) => response.json())]);
  const [{ makeSearch }, entries] = await search;
  const titles = new Map(entries.map((entry) => [entry.id, entry.title]));
  const { said } = makeSearch(entries)(text);
  if (byId("go").disabled && said.length && !byId("answer").childElementCount)
    byId("answer").append(
      element("p", "note", "At first sight, the message is that of:"),
      element("ul", "", ...said.slice(0, 6).map((id) => element("li", "", link(id), ` ${titles.get(id)}`))),
    );
}

async function answer() {
  byId("answer").replaceChildren();
  byId("go").disabled = true;
  try {
    const began = performance.now();
    if (!isLoaded) {
      // Python keeps this thread busy while it loads, so the first look comes before.
      const patience = new Promise((done) => setTimeout(done, MOST_WAIT_MS));
      await Promise.race([firstLook(byId("log").value).catch(() => (search = undefined)), patience]);
      await new Promise((done) => requestAnimationFrame(() => setTimeout(done))); // it is painted
    }
    const found = await match(byId("log").value);
    if (found.error) state.textContent = found.error;
    else {
      show(found);
      state.textContent = `Read in ${((performance.now() - began) / 1000).toFixed(1)} s, on this machine.`;
    }
  } catch (error) {
    state.textContent = `Python could not be loaded (${error.message}); run repros match on your machine.`;
  }
  byId("go").disabled = false;
}

async function example(id) {
  byId("log").value = await (await fetch(`failures/${id}.log`)).text();
  await answer();
}

byId("match").addEventListener("submit", (event) => {
  event.preventDefault();
  answer();
});
byId("file").addEventListener("change", async ({ target }) => {
  byId("log").value = await target.files[0].text();
  answer();
});
byId("example").addEventListener("change", ({ target }) => target.value && example(target.value));
const asked = new URLSearchParams(location.search).get("log");
const handed = sessionStorage.getItem("log"); // from the search of the index
sessionStorage.removeItem("log");
if (handed) {
  byId("log").value = handed;
  answer();
} else if (asked && /^RPR-\d{4}$/.test(asked)) example(asked);
