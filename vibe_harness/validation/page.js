// The judge's page. What a model wrote enters it as text only. A judgment shows once the server has it on disk.
"use strict";

const SAYS = { unknown: "left open by the answer", none: "not in the answer" };
const by = (id) => document.getElementById(id);
const waiting = []; // keys pressed while one is at work
const working = () => document.body.getAttribute("aria-busy") === "true";
let shown = null; // the response on the page, as the server gave it
let chosen = 0; // index into its claims

function make(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

async function ask(path, posted) {
  const how = posted && { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(posted) };
  let answer;
  try {
    answer = await fetch(path, how);
  } catch {
    throw new Error("Not stored: the program behind this page has stopped. Start it again and open the new address; what was judged before is kept.");
  }
  if (answer.ok) return answer.json();
  const told = await answer.json().catch(() => ({ error: `${answer.status} ${answer.statusText}` }));
  throw new Error(`Not stored: ${told.error}`);
}

function tell(progress) {
  const whole = new Intl.NumberFormat("en");
  by("count").textContent = `${progress.judge}: ${whole.format(progress.judged)} of ${whole.format(progress.total)} judged`;
  by("bar").max = Math.max(progress.total, 1);
  by("bar").value = progress.judged;
  shown.progress = progress;
}

async function show(index, choose = (claims) => Math.max(claims.findIndex((claim) => !claim.verdict), 0)) {
  shown = await ask(`response/${index}`);
  waiting.length = 0; // a key pressed before a response was seen is no judgment of it
  by("done").hidden = true;
  by("answer").hidden = by("read").hidden = false;
  by("where").textContent = `Response ${index + 1} of ${shown.progress.responses}, task ${shown.task}`;
  by("prompt").textContent = shown.prompt;
  by("text").scrollTop = 0;
  tell(shown.progress);
  by("claims").replaceChildren(...shown.claims.map(card));
  select(choose(shown.claims));
}

function finish() {
  by("answer").hidden = by("read").hidden = true;
  by("done").hidden = false;
  by("where").textContent = "";
  by("said").textContent = "All judged, thank you";
  by("done").focus();
}

function card(claim, index) {
  const twins = shown.claims.filter((other) => other.attribute === claim.attribute);
  const number = twins.length > 1 ? `, reading ${twins.indexOf(claim) + 1} of ${twins.length}` : "";
  const node = make("div", { class: `claim ${claim.verdict ?? ""}`, role: "group", tabindex: "-1", "aria-labelledby": `claim-${index}` });
  const title = make("h3", { id: `claim-${index}` }, make("span", {}, claim.attribute + number));
  title.append(make("span", { class: "verdict" }, { right: "✓ right", wrong: "✗ wrong" }[claim.verdict] ?? ""));
  node.append(title, values(claim, index));
  if (claim.raw.join("\n") !== claim.values.join("\n")) node.append(make("p", { class: "about" }, `written as: ${claim.raw.join("; ")}`));
  const about = [claim.description, claim.allowed && `one of: ${claim.allowed.join(", ")}`].filter(Boolean).join("; ");
  if (about) node.append(make("p", { class: "about" }, about));
  const answers = make("div", { class: "answers" });
  for (const [verdict, key, words] of [["right", "r", "Right"], ["wrong", "w", "Wrong"]]) {
    const button = make("button", { type: "button", "aria-pressed": String(claim.verdict === verdict) }, words);
    button.addEventListener("click", () => pressed(key, index));
    answers.append(button);
  }
  node.append(answers);
  node.addEventListener("click", () => { if (chosen !== index) select(index, false); });
  return node;
}

function values(claim, index) {
  const list = make("ul", { class: "says" });
  if (claim.reading !== "value") list.append(make("li", { class: "nothing" }, SAYS[claim.reading]));
  else if (claim.values.length === 1) list.append(make("li", { dir: "auto" }, claim.values[0]));
  else {
    claim.values.forEach((value, place) => {
      const wrong = claim.wrong_items.includes(value);
      const button = make("button", { type: "button", "aria-pressed": String(wrong), title: "Mark this item as wrong" });
      button.append(make("kbd", {}, String(place + 1)), " ", make("bdi", {}, value));
      button.addEventListener("click", () => pressed(String(place + 1), index));
      list.append(make("li", {}, button));
    });
  }
  return list;
}

function select(index, focus = true) {
  chosen = index;
  const claim = shown.claims[index];
  [...by("claims").children].forEach((node, place) => node.setAttribute("aria-current", String(place === index)));
  by("text").replaceChildren(...shown.text.map(([words, items]) =>
    items.length ? make("mark", { class: items.includes(claim.item) ? "now" : "" }, words) : words));
  by("text").querySelector(".now")?.scrollIntoView({ block: "nearest" });
  by("claims").children[index].scrollIntoView({ block: "nearest" });
  if (focus) by("claims").children[index].focus({ preventScroll: true });
  by("said").textContent = `${claim.attribute}: ${claim.values.join(", ") || SAYS[claim.reading]}`;
}

function redraw(index) {
  by("claims").children[index].replaceWith(card(shown.claims[index], index));
  select(chosen);
}

async function judge(verdict) {
  const claim = shown.claims[chosen];
  tell(await ask("judgment", { item: claim.item, verdict, wrong_items: claim.wrong_items }));
  claim.verdict = verdict;
  redraw(chosen);
  const open = (from, to) => shown.claims.findIndex((other, place) => place >= from && place < to && !other.verdict);
  const next = [open(chosen, shown.claims.length), open(0, chosen)].find((place) => place >= 0);
  if (next !== undefined) select(next);
  else if (shown.progress.open === null) finish();
  else await show(shown.progress.open);
}

async function mark(place) {
  const claim = shown.claims[chosen];
  const value = claim.values[place];
  if (claim.values.length < 2 || value === undefined) return;
  const marked = claim.wrong_items.includes(value) ? claim.wrong_items.filter((other) => other !== value) : [...claim.wrong_items, value];
  if (claim.verdict) tell(await ask("judgment", { item: claim.item, verdict: claim.verdict, wrong_items: marked }));
  claim.wrong_items = marked; // without a verdict yet it is stored with it
  redraw(chosen);
}

async function undo() {
  const { undone, index } = await ask("undo", {});
  if (undone === null) by("said").textContent = "Nothing to undo";
  else await show(index, (claims) => claims.findIndex((claim) => claim.item === undone));
}

async function move(step) {
  const next = chosen + step;
  if (!by("done").hidden) await show(shown.index, () => chosen);
  else if (shown.claims[next]) select(next);
  else if (shown.index + step >= 0 && shown.index + step < shown.progress.responses)
    await show(shown.index + step, (claims) => (step > 0 ? 0 : claims.length - 1));
}

const KEYS = { r: () => judge("right"), w: () => judge("wrong"), u: undo, n: () => move(1), p: () => move(-1) };

async function pressed(key, index = null) {
  waiting.push([key, index]);
  if (working()) return;
  document.body.setAttribute("aria-busy", "true");
  try {
    while (waiting.length) {
      const [next, claim] = waiting.shift();
      if (!by("done").hidden && !"unp".includes(next)) continue;
      if (claim !== null && claim !== chosen) select(claim);
      await (KEYS[next] ?? (() => mark(Number(next) - 1)))();
      by("trouble").hidden = true;
    }
  } catch (error) {
    waiting.length = 0;
    by("trouble").textContent = error.message;
    by("trouble").hidden = false;
  } finally {
    document.body.setAttribute("aria-busy", "false");
  }
}

document.addEventListener("keydown", (event) => {
  if (!by("shortcuts").checked || event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
  const typed = event.key.toLowerCase();
  const key = /^[\x20-\x7e]$/.test(typed) ? typed : event.code.replace("Key", "").toLowerCase(); // other alphabets
  if (!(key in KEYS) && !/^[1-9]$/.test(key)) return;
  event.preventDefault();
  if (shown) pressed(key);
});
for (const button of document.querySelectorAll("[data-key]"))
  button.addEventListener("click", () => { if (shown) pressed(button.dataset.key); });

(async () => {
  try {
    const progress = await ask("progress");
    await show(progress.open ?? 0);
    if (progress.open === null) finish();
  } catch (error) {
    by("trouble").textContent = error.message;
    by("trouble").hidden = false;
  }
})();
