// The page of `shardlings watch --browser`: shows what the server sends, links pictures with lines.
// All HTML here comes from the server, which escapes what learners write.

const all = (what, inside = document) => [...inside.querySelectorAll(what)];
const heard = document.getElementById("heard");

async function act(what, value = "") {
  await fetch("act", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ do: what, value }),
  });
}

// what the server sends

const last = {};

function show(name, html) {
  const region = document.querySelector(`[data-region="${name}"]`);
  if (!region || last[name] === html) return;
  const first = last[name] === undefined;
  last[name] = html;
  if (first && region.innerHTML.trim() === html.trim()) return;
  const focused = region.contains(document.activeElement) ? document.activeElement : null;
  const open = all("details", region).map((one) => one.open);
  region.innerHTML = html;
  all("details", region).forEach((one, i) => { if (open[i] !== undefined && open.length) one.open = open[i]; });
  if (focused) refocus(region, focused);
  enhance(region);
  if (name === "head") heard.textContent = region.querySelector(".standing").textContent;
}

function refocus(region, before) {
  const kind = before.dataset.do ? `[data-do="${before.dataset.do}"]` : before.id ? `#${before.id}` : null;
  const same = kind && region.querySelector(`${kind}:enabled`);
  if (same) same.focus();
  else {
    region.tabIndex = -1;
    region.focus();
  }
}

function listen() {
  const events = new EventSource("events");
  const ended = document.getElementById("ended");
  events.onopen = () => { ended.hidden = true; };
  events.onerror = () => { ended.hidden = false; };
  events.onmessage = (event) => {
    for (const [name, html] of Object.entries(JSON.parse(event.data))) show(name, html);
    document.documentElement.dataset.ready = "1";
  };
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("button[data-do]");
  if (button) act(button.dataset.do);
});
document.addEventListener("change", (event) => {
  const choice = event.target.closest("select[data-do]");
  if (choice) act(choice.dataset.do, choice.value);
});

// pictures and lines

function enhance(region) {
  window.enlivenPictures(region);
  all(".stops", region).forEach(stops);
  all(".laid", region).forEach(timeline);
  mark(region);
  const started = region.querySelector(".code .over") || firstOfFunction(region);
  if (started) scrollTo(started);
  scrollable(region);
}

function firstOfFunction(region) {
  return all(".code [data-line]", region).find((line) => /^def /.test(line.querySelector("code").textContent));
}

// The keyboard can focus a box that scrolls, so the box needs a name.
function scrollable(region) {
  for (const box of all(".picture, .wide, .prose pre, .stage", region)) {
    if (box.scrollWidth <= box.clientWidth) {
      for (const name of ["tabindex", "role", "aria-label"]) box.removeAttribute(name);
      continue;
    }
    box.tabIndex = 0;
    box.setAttribute("role", "group");
    box.setAttribute("aria-label", box.querySelector("figcaption")?.textContent.trim() || "Scrolls sideways");
  }
}

const fileOf = (element) => element.dataset.file ?? element.closest("[data-file]")?.dataset.file ?? "";

// To find a line of a notebook, the cell's name is needed. A single file needs no name.
function at(region, file, line) {
  const cells = all(".code pre", region);
  const alone = cells.length === 1;
  return (element) => element.dataset.line === String(line) && (alone || !file || fileOf(element) === file);
}

function mark(region) {
  const marked = region.querySelector("[data-marked]")?.dataset.marked || "";
  for (const place of marked.split("|").filter(Boolean)) {
    const [, file, line] = place.match(/^(.*):(\d+)$/);
    all("[data-line]", region).filter(at(region, file, line)).forEach((one) => one.classList.add("over"));
  }
}

function point(region, file, line) {
  all(".here", region).forEach((one) => one.classList.remove("here"));
  if (line === null || line === undefined || line === "") return;
  const found = all("[data-line]", region).filter(at(region, file, line));
  found.forEach((one) => one.classList.add("here"));
  const shown = found.find((one) => one.closest(".code"));
  if (shown) scrollTo(shown);
}

function scrollTo(line) {
  const box = line.closest(".code");
  if (line.offsetTop < box.scrollTop || line.offsetTop + line.offsetHeight > box.scrollTop + box.clientHeight)
    box.scrollTop = line.offsetTop - box.clientHeight / 3;
}

const program = document.querySelector('[data-region="program"]');

// Mark everything that belongs to a device, a picture, a bar or a line of the source, and show its text.
function visit(one) {
  if (one.dataset.part === undefined) point(program, fileOf(one), one.dataset.line);
  else {
    all(".here", program).forEach((other) => other.classList.remove("here"));
    all("[data-part]", one.closest("figure")).filter((other) => other.dataset.part === one.dataset.part)
      .forEach((other) => other.classList.add("here"));
  }
  const place = one.closest(".walk")?.querySelector(".read");
  const text = one.querySelector("title, figcaption")?.textContent;
  if (place && text) place.textContent = text;
}

program.addEventListener("pointerover", (event) => {
  const one = event.target.closest("[data-part], [data-line]");
  if (one) visit(one);
});
program.addEventListener("round", (event) => point(program, "", event.detail));

// Arrow keys go from device to device, from picture to picture, and from bar to bar.
function stops(box) {
  box.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    const found = all("[data-part], [data-line]", box);
    if (!step || !found.length || event.target !== box) return;
    event.preventDefault();
    const now = Number(box.dataset.stop ?? (step > 0 ? -1 : found.length)) + step;
    box.dataset.stop = String((now + found.length) % found.length);
    const one = found[Number(box.dataset.stop)];
    visit(one);
    one.querySelector("rect").scrollIntoView({ block: "nearest", inline: "center" });
  });
}

// the timeline: to zoom, fetch a wider timeline from the server

function timeline(laid) {
  const box = laid.querySelector(".scroll");
  const width = laid.querySelector("svg").viewBox.baseVal.width;
  const buttons = document.createElement("div");
  buttons.className = "zoom";
  for (const [text, name, factor] of [["+", "Zoom in", 2], ["−", "Zoom out", 0.5], ["1:1", "Whole timeline", 0]]) {
    const button = Object.assign(document.createElement("button"), { type: "button", textContent: text });
    button.setAttribute("aria-label", name);
    button.addEventListener("click", () => zoom(laid, factor, width));
    buttons.append(button);
  }
  box.before(buttons);
  box.addEventListener("keydown", (event) => {
    if (event.key === "+" || event.key === "-") zoom(laid, event.key === "+" ? 2 : 0.5, width);
  });
}

async function zoom(laid, factor, width) {
  const before = Number(laid.dataset.zoom);
  const now = factor ? Math.min(Math.max(before * factor, 1), 16) : 1;
  if (now === before) return;
  laid.dataset.zoom = String(now);
  const answer = await fetch(`timeline?width=${width * now}`);
  if (!answer.ok || !laid.isConnected || laid.dataset.zoom !== String(now)) return;
  const box = laid.querySelector(".scroll");
  const middle = (box.scrollLeft + box.clientWidth / 2) / box.scrollWidth;
  box.innerHTML = await answer.text();
  box.scrollLeft = middle * box.scrollWidth - box.clientWidth / 2;
  mark(program);
}

all("[data-region]").forEach((region) => enhance(region));
new ResizeObserver(() => all("[data-region]").forEach(scrollable)).observe(document.body);
listen();
