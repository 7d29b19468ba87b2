// Finds failures by words, the likeliest first: messages as they were pasted, beginnings of words, other words for the
// same, and words that are misspelt.
import MiniSearch from "./minisearch.mjs";

const WEIGHTS = { messages: 4, title: 3, symptom: 2, also: 1, rest: 1 };
const COMMON = new Set("a an and are as at be been but by did do does for from has have i if in is it its me my of on or so than that the then there this to was when which will with".split(" "));
const ENOUGH = 4; // words that a failure shares with a long text, such as a traceback, to be shown for it
const WEAKEST = 0.25; // of the best score, below which a failure that lacks words is not shown
const AS_GOOD = 0.5; // the same where others have the whole message: a pasted line may lack the words that tell
const MESSAGE = 3; // words that make a message; fewer are words like others
const SAID = 10; // how much a whole message outweighs its words, and one with the same numbers the others

// A number with its decimals is one word; CamelCase is one word, and its parts.
const words = (text) => text.match(/\d+(?:\.\d+)+|[\p{L}\p{N}]+/gu) ?? [];
const parts = (word) => word.split(/(?<=\p{Ll})(?=\p{Lu})|(?<=\p{Lu})(?=\p{Lu}\p{Ll})/u);
const pairs = (text) => words(text).map((word, place, all) => word + (all[place + 1] ?? "")); // batch norm: batchnorm
const british = (word) => word.replace(/is(?=(?:e[drs]?|ers|ing|ations?)$)/, "iz");
const stem = (word) => british(word).replace(/^(.{4,}?)(?:ings?|ed|es|e|s)$/, "$1");

/** Return a message as words alone. */
const plain = (text) => ` ${words(text.toLowerCase()).join(" ")} `;
/** Return it with numbers as signs: devices, ranks and addresses are others in every run. */
const outline = (text) => plain(text).replace(/(?<= )(?:0x)?\d\S*/g, "#");

/** Return ids with the words that their failures share with a text; none if a failure has its whole message. */
function answer(found, said) {
  const shared = said.size ? [] : [...new Set(found.slice(0, 5).flatMap(({ queryTerms }) => queryTerms))];
  return Object.assign(found.map(({ id }) => id), { shared, said: [...said.keys()] });
}

/** Return a function from words to the ids of failures; `entries` is the content of search.json. */
export function makeSearch(entries) {
  const index = new MiniSearch({
    fields: Object.keys(WEIGHTS),
    extractField: (entry, name) => [entry[name]].flat().join(" "),
    tokenize: (text, field) => [...words(text).flatMap((word) => [word, ...parts(word)]), ...(field === "title" ? pairs(text) : [])],
    processTerm: (word) => [...new Set([word.toLowerCase(), stem(word.toLowerCase())])],
  });
  index.addAll(entries);
  const messages = entries.flatMap(({ id, messages }) =>
    messages
      .map((message) => message.replace(/^\S+: /, ""))
      .filter((message) => words(message).length >= MESSAGE)
      .map((message) => [id, plain(message), outline(message)]),
  );

  function find(terms, said, options) {
    return index.search(terms.join(" "), {
      boost: WEIGHTS,
      boostDocument: (id) => said.get(id) ?? 1,
      tokenize: words,
      processTerm: (word) => stem(word.toLowerCase()),
      prefix: (term, place, all) => term.length > 2 || place === all.length - 1,
      ...options,
    });
  }

  /** Return the failures whose whole message is in a text, with their weights: more if its numbers are the same. */
  function sayers(text) {
    const [exact, rough] = [plain(text), outline(text)];
    const said = new Map();
    for (const [id, message, shape] of messages) {
      if (exact.includes(message)) said.set(id, SAID * SAID);
      else if (rough.includes(shape) && !said.has(id)) said.set(id, SAID);
    }
    return said;
  }

  return (query) => {
    const all = [...new Set(words(query))];
    const telling = all.filter((word) => !COMMON.has(word.toLowerCase()));
    const terms = telling.length ? telling : all;
    const said = sayers(query);
    for (const fuzzy of said.size ? [] : [false, 0.2]) {
      const found = find(terms, said, { combineWith: "AND", fuzzy });
      if (found.length) return answer(found, said);
    }
    const found = find(terms, said, { combineWith: "OR" });
    const shares = ({ queryTerms }) => queryTerms.length >= Math.min(terms.length / 2, ENOUGH);
    const byWords = ({ id, score }) => score / (said.get(id) ?? 1);
    const best = Math.max(...found.map(byWords));
    const weakest = said.size ? AS_GOOD : WEAKEST;
    const near = found.filter((one) => said.has(one.id) || (shares(one) && byWords(one) >= weakest * best));
    return answer(near, said);
  };
}
