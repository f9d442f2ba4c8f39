"use strict";
// The browser of answers. The index is unpacked when the page is opened, the texts when they are looked at. All that a
// model, an extractor or a corpus wrote goes in as text, never as markup.
(async () => {
  const PER_PAGE = 20;
  const unpack = async (element) => {
    const bytes = Uint8Array.from(atob(JSON.parse(element.textContent)), (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
    return JSON.parse(await new Response(stream).text());
  };
  const make = (tag, properties = {}, ...children) => {
    const element = Object.assign(document.createElement(tag), properties);
    element.append(...children);
    return element;
  };
  // Control letters and marks that turn the direction of text are shown, not obeyed.
  const shown = (text) => text
    .replace(/[\u0000-\u0008\u000b-\u001f]/g, (letter) => String.fromCharCode(0x2400 + letter.charCodeAt(0)))
    .replace(/[\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, (letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, "0")}`);

  const said = document.getElementById("said");
  const list = document.getElementById("list");
  const data = await unpack(document.getElementById("index"));
  const packs = [...document.querySelectorAll("script.pack")];
  const opened = new Map();
  const textOf = async (answer) => {
    let pack = data.starts.findLastIndex((start) => start <= answer);
    if (!opened.has(pack)) opened.set(pack, unpack(packs[pack]));
    return (await opened.get(pack))[answer - data.starts[pack]];
  };

  // One control for each thing to filter by. keep(answer, chosen) says whether an answer stays.
  const form = document.getElementById("filters");
  const filters = [];
  const choice = (label, options, keep) => {
    const select = make("select", {}, make("option", { value: "", textContent: "all" }));
    for (const [value, text] of options) select.append(make("option", { value, textContent: shown(text) }));
    form.append(make("label", {}, label, select));
    filters.push({ control: select, keep });
    return select;
  };
  const numbered = (texts) => texts.map((text, number) => [String(number), text]);
  const { clips } = data;
  choice("task", numbered(data.tasks), (answer, chosen) => data.task[answer] === Number(chosen));
  for (const [dimension, groups] of Object.entries(clips.groups)) {
    const names = [...new Set(groups)].filter((name) => name !== null).sort();
    choice(dimension.replaceAll("_", " "), names.map((name) => [name, name]), (answer, chosen) => groups[data.clip[answer]] === chosen);
  }
  choice("outcome", numbered(data.outcomes), (answer, chosen) => data.outcome[answer] === Number(chosen));
  const attribute = choice("attribute", numbered(data.attributes.map((name) => name.replaceAll("_", " "))), (answer, chosen) =>
    data.values[answer].some(([name]) => name === Number(chosen)));
  const value = make("input", { type: "search", autocomplete: "off" });
  const offered = make("datalist", { id: "offered" });
  value.setAttribute("list", "offered");
  form.append(make("label", {}, "value has", value), offered);
  let sought = new Set();
  filters.push({
    control: value,
    before: (words) => { sought = new Set(numbered(data.words).filter(([, word]) => word.toLowerCase().includes(words.toLowerCase())).map(([number]) => Number(number))); },
    keep: (answer) => data.values[answer].some(([name, ...words]) =>
      (attribute.value === "" || name === Number(attribute.value)) && words.some((word) => sought.has(word))),
  });
  const offer = () => {
    const counts = new Map();
    for (const cells of data.values) {
      for (const [name, ...words] of cells) {
        if (attribute.value === "" || name === Number(attribute.value)) {
          for (const word of words) counts.set(word, (counts.get(word) ?? 0) + 1);
        }
      }
    }
    const common = [...counts].sort(([a, i], [b, j]) => j - i || a - b).slice(0, 100);
    offered.replaceChildren(...common.map(([word, count]) => make("option", { value: data.words[word], textContent: `${count} times` })));
  };

  const clipOf = (number) => {
    const path = clips.file[number];
    const facts = [clips.id[number], ...Object.entries(clips.groups).filter(([, groups]) => groups[number] !== null).map(([name, groups]) => `${name} ${groups[number]}`)];
    const about = make("p", { className: "soft" }, make("bdi", { textContent: shown(facts.join(", ")) }));
    if (data.sound === null) return [about, make("p", { className: "soft" }, `clip: ${shown(path)}`)];
    const address = [data.sound, ...path.split("/")].map((part, place) => place ? encodeURIComponent(part) : part.split("/").map(encodeURIComponent).join("/")).join("/");
    const audio = make("audio", { controls: true, preload: "none", src: address });
    audio.setAttribute("aria-label", `clip ${clips.id[number]}`);
    const trouble = make("p", { className: "soft", hidden: true, textContent: `The clip is not where it was: ${shown(path)}` });
    audio.addEventListener("error", () => { audio.hidden = true; trouble.hidden = false; });
    return [about, audio, trouble];
  };
  const card = async (answer) => {
    const [request, text, raw] = await textOf(answer);
    const readings = make("dl", { className: "facts" });
    data.values[answer].forEach(([name, ...words], place) => {
      const canonical = words.map((word) => data.words[word]).join("; ");
      const written = raw[place].join("; ");
      const told = written && written !== canonical ? `${canonical} (written: ${written})` : canonical;
      readings.append(make("dt", { textContent: data.attributes[name].replaceAll("_", " ") }), make("dd", {}, make("bdi", { textContent: shown(told) })));
    });
    const words = make("div", { className: "text", dir: "auto", tabIndex: 0, textContent: shown(text) || "(no text)" });
    words.setAttribute("role", "group");
    words.setAttribute("aria-label", `answer ${request}`);
    const spoken = clips.text[data.clip[answer]];
    return make("article", {},
      make("h3", { textContent: `${data.tasks[data.task[answer]]}, ${data.outcomes[data.outcome[answer]]}` }),
      ...clipOf(data.clip[answer]),
      ...(spoken ? [make("p", {}, "said: ", make("bdi", { textContent: shown(spoken) }))] : []),
      words, readings, make("p", { className: "soft", textContent: `request ${request}` }));
  };

  let kept = [];
  let first = 0;
  let turn = 0;
  const back = document.getElementById("back");
  const on = document.getElementById("on");
  const show = async () => {
    const mine = ++turn;
    const cards = await Promise.all(kept.slice(first, first + PER_PAGE).map(card));
    if (mine !== turn) return;  // another choice was made meanwhile
    list.replaceChildren(...cards);
    const last = Math.min(first + PER_PAGE, kept.length);
    said.textContent = kept.length ? `${first + 1} to ${last} of ${kept.length} answers` : "no such answer";
    back.disabled = first === 0;
    on.disabled = last === kept.length;
  };
  const filter = () => {
    const active = filters.filter(({ control }) => control.value !== "");
    for (const { before, control } of active) before?.(control.value);
    kept = [...data.task.keys()].filter((answer) => active.every(({ keep, control }) => keep(answer, control.value)));
    first = 0;
    return show();
  };
  const turnBy = (step) => async () => { first += step; await show(); said.scrollIntoView(); };
  back.addEventListener("click", turnBy(-PER_PAGE));
  on.addEventListener("click", turnBy(PER_PAGE));
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", filter);
  attribute.addEventListener("change", offer);
  form.hidden = false;
  document.getElementById("pages").hidden = false;
  offer();
  await filter();
})();
