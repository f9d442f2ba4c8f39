"use strict";
// The browser of answers: the list of them at the left, one of them at the right. The index is unpacked when the page is
// opened, the texts when they are looked at. All that a model, an extractor or a corpus wrote goes in as text, never as
// markup. The address names the answer (#request=ID) or what is sought (#task=...&attribute=...&value=...).
(async () => {
  const AROUND = 6;  // rows of the list that are made beyond what is seen
  const MOST_MARKS = 50;
  const MOST_OPEN = 9;  // filters that are open from the start, on a wide screen
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
  const plain = (name) => name.replaceAll("_", " ");

  const [browser, said, list, panel, form] = ["browser", "said", "list", "answer", "filters"].map((id) => document.getElementById(id));
  const data = await unpack(document.getElementById("index"));
  const { clips } = data;
  const packs = [...document.querySelectorAll("script.pack")];
  const opened = new Map();
  const openPack = (pack) => {
    if (!opened.has(pack)) opened.set(pack, unpack(packs[pack]));
    return opened.get(pack);
  };
  const textOf = async (answer) => {
    const pack = data.starts.findLastIndex((start) => start <= answer);
    return (await openPack(pack))[answer - data.starts[pack]];
  };

  // One control for each thing to filter by. keep(answer, chosen) says whether an answer stays.
  const filters = new Map();
  const fields = make("div", { className: "fields" });
  const choice = (name, options, keep) => {
    const select = make("select", {}, make("option", { value: "", textContent: "all" }));
    for (const [value, text] of options) select.append(make("option", { value, textContent: shown(text) }));
    fields.append(make("label", {}, shown(plain(name)), select));
    filters.set(name, { control: select, keep });
    return select;
  };
  const numbered = (texts) => texts.map((text, number) => [String(number), text]);
  const words = make("input", { type: "search", autocomplete: "off" });
  let matching = new Set();
  filters.set("text", {
    control: words,
    before: async (sought) => {
      const found = new Set();
      for (const pack of packs.keys()) {
        for (const [place, [, text]] of (await openPack(pack)).entries()) {
          if (text.toLowerCase().includes(sought.toLowerCase())) found.add(data.starts[pack] + place);
        }
      }
      matching = found;
    },
    keep: (answer) => matching.has(answer),
  });
  choice("task", numbered(data.tasks), (answer, chosen) => data.task[answer] === Number(chosen));
  for (const [dimension, groups] of Object.entries(clips.groups)) {
    const names = [...new Set(groups)].filter((name) => name !== null).sort();
    choice(dimension, names.map((name) => [name, name]), (answer, chosen) => groups[data.clip[answer]] === chosen);
  }
  choice("outcome", numbered(data.outcomes), (answer, chosen) => data.outcome[answer] === Number(chosen));
  const attribute = choice("attribute", numbered(data.attributes.map(plain)), (answer, chosen) =>
    data.values[answer].some(([name]) => name === Number(chosen)));
  const value = make("input", { type: "search", autocomplete: "off" });
  const offered = make("datalist", { id: "offered" });
  value.setAttribute("list", "offered");
  fields.append(make("label", {}, "value has", value), offered);
  let sought = new Set();
  filters.set("value", {
    control: value,
    before: (part) => {
      const exact = part.length > 2 && part.startsWith('"') && part.endsWith('"') ? part.slice(1, -1) : null;
      const fits = exact === null ? (word) => word.toLowerCase().includes(part.toLowerCase()) : (word) => word === exact;
      sought = new Set([...data.words.keys()].filter((number) => fits(data.words[number])));
    },
    keep: (answer) => data.values[answer].some(([name, ...found]) =>
      (attribute.value === "" || name === Number(attribute.value)) && found.some((word) => sought.has(word))),
  });
  const offer = () => {
    const counts = new Map();
    for (const cells of data.values) {
      for (const [name, ...found] of cells) {
        if (attribute.value === "" || name === Number(attribute.value)) {
          for (const word of found) counts.set(word, (counts.get(word) ?? 0) + 1);
        }
      }
    }
    const common = [...counts].sort(([a, i], [b, j]) => j - i || a - b).slice(0, 100);
    offered.replaceChildren(...common.map(([word, count]) => make("option", { value: data.words[word], textContent: `${count} times` })));
  };
  const drawer = make("details", { open: fields.children.length <= MOST_OPEN && matchMedia("(min-width: 56.01rem)").matches }, make("summary"), fields);
  form.append(make("label", {}, "text has", words), drawer);

  // The list: of thousands of answers only the rows that are seen are made.
  let kept = [];
  let at = 0;  // place in `kept` of the answer that is shown
  const rows = make("div");
  rows.setAttribute("role", "presentation");
  list.append(rows);
  let height = 56;
  // What is compared, and of an answer's own view the other columns too.
  const groupsOf = (clip) => clips.compared.map((name) => clips.groups[name]?.[clip] ?? null).filter((name) => name !== null);
  const row = (place) => {
    const answer = kept[place];
    const outcome = data.outcomes[data.outcome[answer]];
    const read = data.values[answer].flatMap(([, ...found]) => found.map((word) => data.words[word])).filter((word) => !word.startsWith("("));
    const about = [data.tasks[data.task[answer]], ...groupsOf(data.clip[answer])].join(", ");
    const option = make("div", { id: `row-${place}` },
      make("span", {}, make("bdi", { textContent: shown(read.join("; ")) || `(${outcome === "ok" ? "no value read" : outcome})` })),
      make("span", {}, make("bdi", { textContent: shown(outcome === "ok" ? about : `${outcome}: ${about}`) })));
    option.style.top = `${place * height}px`;
    option.setAttribute("role", "option");
    option.setAttribute("aria-selected", String(place === at));
    option.setAttribute("aria-setsize", kept.length);
    option.setAttribute("aria-posinset", place + 1);
    option.addEventListener("click", () => choose(place));
    return option;
  };
  const draw = () => {
    const first = Math.max(Math.floor(list.scrollTop / height) - AROUND, 0);
    const last = Math.min(Math.ceil((list.scrollTop + list.clientHeight) / height) + AROUND, kept.length);
    const places = Array.from({ length: Math.max(last - first, 0) }, (_, number) => first + number);
    if (kept.length && !places.includes(at)) places.push(at);  // the chosen row is always there to be named
    rows.style.height = `${kept.length * height}px`;
    rows.replaceChildren(...places.map(row));
    if (kept.length) list.setAttribute("aria-activedescendant", `row-${at}`);
    else list.removeAttribute("aria-activedescendant");
  };
  list.addEventListener("scroll", () => requestAnimationFrame(draw));

  // The answer.
  const clipOf = (number) => {
    const path = clips.file[number];
    const facts = Object.entries(clips.groups).filter(([, groups]) => groups[number] !== null).map(([name, groups]) => [name, `${plain(name)} ${groups[number]}`]);
    const told = facts.filter(([name]) => clips.compared.includes(name)).map(([, words]) => words);
    const rest = facts.filter(([name]) => !clips.compared.includes(name)).map(([, words]) => words);
    const about = make("p", { className: "soft" }, make("bdi", { textContent: shown([clips.id[number], ...told].join(", ")), title: shown(rest.join(", ")) }));
    if (data.sound === null) return [about, make("p", { className: "soft" }, `clip: ${shown(path)}`)];
    const address = [data.sound, ...path.split("/")].map((part, place) => place ? encodeURIComponent(part) : part.split("/").map(encodeURIComponent).join("/")).join("/");
    const audio = make("audio", { controls: true, preload: "none", src: address });
    audio.setAttribute("aria-label", `clip ${clips.id[number]}`);
    const trouble = make("p", { className: "soft", hidden: true, textContent: `The clip is not where it was: ${shown(path)}` });
    audio.addEventListener("error", () => { audio.hidden = true; trouble.hidden = false; });
    return [about, audio, trouble];
  };
  // Where the answer has the words that were read, letter for letter, or but for their case.
  const placesOf = (text, written) => {
    const literal = written.replace(/[\\^$.*+?()[\]{}|/-]/g, "\\$&");
    const search = (flags) => [...text.matchAll(new RegExp(`(?<![\\p{L}\\p{N}])${literal}(?![\\p{L}\\p{N}])`, flags))];
    const exact = search("gu");
    const whole = exact.length ? exact : search("giu");
    return whole.slice(0, MOST_MARKS).map((match) => [match.index, match.index + match[0].length]);
  };
  const marked = (text, found) => {
    const parts = [];
    let done = 0;
    for (const [from, to, name] of found.sort(([a], [b]) => a - b)) {
      if (from < done) continue;
      parts.push(shown(text.slice(done, from)), make("mark", { textContent: shown(text.slice(from, to)), title: `read as ${name}` }));
      done = to;
    }
    return [...parts, shown(text.slice(done))];
  };
  const view = async (answer) => {
    const [request, text, raw] = await textOf(answer);
    const readings = make("dl", { className: "facts" });
    const found = [];
    data.values[answer].forEach(([name, ...read], place) => {
      const called = plain(data.attributes[name]);
      const canonical = read.map((word) => data.words[word]).join("; ");
      const written = raw[place].join("; ");
      const here = raw[place].filter((part) => part).map((part) => placesOf(text, part).map(([from, to]) => [from, to, called]));
      found.push(...here.flat());
      const told = written && written !== canonical ? `${canonical} (written: ${written})` : canonical;
      const elsewhere = here.some((places) => !places.length) ? [" ", make("small", { textContent: "not word for word in the answer" })] : [];
      readings.append(make("dt", { textContent: shown(called) }), make("dd", {}, make("bdi", { textContent: shown(told) }), ...elsewhere));
    });
    const body = make("div", { className: "text", dir: "auto" }, ...(text ? marked(text, found) : ["(no text)"]));
    const spoken = clips.text[data.clip[answer]];
    const link = make("a", { href: `#request=${encodeURIComponent(request)}`, textContent: `request ${request}` });
    const step = (label, key, by) => {
      const button = make("button", { type: "button", disabled: !(at + by in kept) }, label, " ", make("kbd", { textContent: key }));
      button.addEventListener("click", () => choose(at + by));
      return button;
    };
    return [request, [
      make("div", { className: "steps" }, `${at + 1} of ${kept.length}`, step("Earlier", "k", -1), step("Later", "j", 1)),
      make("h3", {}, make("bdi", { textContent: shown(`${data.tasks[data.task[answer]]}, ${data.outcomes[data.outcome[answer]]}`) })),
      ...clipOf(data.clip[answer]),
      ...(spoken ? [make("p", {}, "said: ", make("bdi", { textContent: shown(spoken) }))] : []),
      body, readings, make("p", { className: "soft" }, link),
    ]];
  };

  let turn = 0;
  const show = async (address) => {
    const mine = ++turn;
    if (!kept.length) {
      panel.replaceChildren(make("p", { textContent: "No answer fits these filters." }));
      return;
    }
    const [request, parts] = await view(kept[at]);
    if (mine !== turn) return;  // another answer was chosen meanwhile
    panel.replaceChildren(...parts);
    panel.scrollTop = 0;
    if (address) history.replaceState(null, "", `#request=${encodeURIComponent(request)}`);
  };
  const choose = (place, address = true) => {
    at = Math.min(Math.max(place, 0), Math.max(kept.length - 1, 0));
    const top = at * height;
    if (top < list.scrollTop) list.scrollTop = top;
    else if (top + height > list.scrollTop + list.clientHeight) list.scrollTop = top + height - list.clientHeight;
    draw();
    return show(address);
  };
  let filtering = 0;
  const filter = async (chosen = null) => {
    const mine = ++filtering;
    const active = [...filters.values()].filter(({ control }) => control.value !== "");
    for (const { before, control } of active) await before?.(control.value);
    if (mine !== filtering) return;  // more was typed meanwhile
    kept = [...data.task.keys()].filter((answer) => active.every(({ keep, control }) => keep(answer, control.value)));
    const hidden = active.filter(({ control }) => control !== words).length;
    drawer.firstChild.textContent = hidden ? `Filters (${hidden} in use)` : "Filters";
    const total = data.task.length;
    said.textContent = kept.length === total ? `${total} answers` : kept.length ? `${kept.length} of ${total} answers` : "no such answer";
    list.hidden = kept.length === 0;
    list.scrollTop = 0;
    await choose(chosen === null ? 0 : kept.indexOf(chosen), false);
  };

  // The address.
  const numberOf = async (request) => {
    for (const pack of packs.keys()) {
      const place = (await openPack(pack)).findIndex(([id]) => id === request);
      if (place >= 0) return data.starts[pack] + place;
    }
    return null;
  };
  const follow = async () => {
    const asked = new URLSearchParams(location.hash.slice(1));
    const request = asked.get("request");
    if (request === null && ![...asked.keys()].some((name) => filters.has(name) && asked.get(name))) return false;
    let answer = null;
    for (const { control } of filters.values()) control.value = "";
    if (request !== null) {
      answer = await numberOf(request);
    } else {
      for (const [name, text] of asked) {
        const control = filters.get(name)?.control;
        if (control instanceof HTMLSelectElement) control.value = [...control.options].find((option) => option.textContent === shown(plain(text)) || option.textContent === shown(text))?.value ?? "";
        else if (control) control.value = text;
      }
      offer();
    }
    await filter(answer);
    if (request !== null && answer === null) said.textContent = `This run has no request ${request}; ${data.task.length} answers`;
    browser.scrollIntoView({ block: "start" });
    return true;
  };
  addEventListener("hashchange", follow);
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("a.find");
    if (link && link.hash === location.hash) follow();  // the address stays as it is, so that nothing else would follow
  });

  // The keyboard: j, k and the arrows where the answers have the focus, or nothing has it; / wherever nobody types.
  const typing = (element) => element.matches("input, select, textarea, audio");
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || typing(event.target)) return;
    if (event.key === "/") {
      event.preventDefault();
      browser.scrollIntoView({ block: "nearest" });
      words.focus();
      return;
    }
    const inside = browser.contains(event.target);
    const by = { j: 1, k: -1 }[event.key] ?? (event.target === list ? { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10, Home: -Infinity, End: Infinity }[event.key] : undefined);
    if (by === undefined || !kept.length || !(inside || event.target === document.body)) return;
    event.preventDefault();
    choose(at + by);
    if (!inside) browser.scrollIntoView({ block: "nearest" });
  });

  let wait;
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", () => { clearTimeout(wait); wait = setTimeout(filter, 80); });
  attribute.addEventListener("change", offer);
  browser.hidden = false;
  document.getElementById("keys").hidden = false;
  height = 3.5 * parseFloat(getComputedStyle(document.documentElement).fontSize);
  addEventListener("resize", draw);
  offer();
  if (!await follow()) await filter();
})();
