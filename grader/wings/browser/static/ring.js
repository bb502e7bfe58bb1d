// Rounds of a ring as an animation: each device's data has the colour of the device where it started.

const SVG = "http://www.w3.org/2000/svg";
const PALETTE = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#b8a800", "#7a7a7a"];
const SECONDS = 0.9;
const still = matchMedia("(prefers-reduced-motion: reduce)");

function drawn(name, about, inside, text) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(about)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  inside.append(made);
  return made;
}

function places(count) {
  const radius = Math.max(70, count * 15);
  const middle = radius + 44;
  return {
    size: 2 * middle,
    of: (i, inset = 0) => {
      const angle = (2 * Math.PI * i) / count - Math.PI / 2;
      return [middle + (radius - inset) * Math.cos(angle), middle + (radius - inset) * Math.sin(angle)];
    },
  };
}

// The device that a device's data came from in a round: the nearest one that held it before; itself if none did.
export function sender(rows, round, device) {
  const source = rows[round].held[device];
  const before = rows[round - 1].held;
  const count = before.length;
  const far = (other) => Math.min((other - device + count) % count, (device - other + count) % count);
  const had = before.map((held, other) => (held === source ? other : -1)).filter((other) => other >= 0);
  return had.length ? had.reduce((best, other) => (far(other) < far(best) ? other : best)) : device;
}

export function words(data, round) {
  const { name, line, held } = data.rows[round];
  const parts = held.map((source, i) => `${data.devices[i]} holds ${source === null ? "zeros" : `the data of ${data.devices[source]}`}`);
  return `${name}${line ? `, line ${line}` : ""}: ${parts.join("; ")}`;
}

export function animate(ring, pointAt) {
  const data = JSON.parse(ring.dataset.rounds);
  const rows = data.rows;
  const { size, of } = places(data.devices.length);
  const stage = Object.assign(document.createElement("div"), { className: "stage" });
  const svg = drawn("svg", { width: size, height: size, viewBox: `0 0 ${size} ${size}`, role: "img", fill: "currentColor", "font-size": 12 }, stage);
  const arrows = drawn("g", { stroke: "currentColor", "stroke-opacity": 0.5, fill: "none" }, svg);
  data.devices.forEach((name, i) => {
    const [x, y] = of(i);
    drawn("circle", { cx: x, cy: y, r: 22, fill: "none", stroke: "currentColor", "stroke-opacity": 0.6 }, svg);
    const [tx, ty] = of(i, -33);
    drawn("text", { x: tx, y: ty + 4, "text-anchor": "middle", "font-weight": "bold" }, svg, name);
  });
  const chips = data.devices.map(() => {
    const chip = drawn("g", {}, svg);
    drawn("circle", { r: 16, stroke: "currentColor" }, chip);
    drawn("text", { y: 4, "text-anchor": "middle" }, chip, "");
    return chip;
  });
  const player = makePlayer(rows.length - 1);
  ring.prepend(stage, player.bar);
  const state = { round: 0, frame: 0, playing: false };

  function draw(round, part) {
    arrows.replaceChildren();
    chips.forEach((chip, device) => {
      const source = rows[round].held[device];
      const from = round > 0 && source !== null ? sender(rows, round, device) : device;
      const [a, b] = [of(from), of(device)];
      const [x, y] = [a[0] + (b[0] - a[0]) * part, a[1] + (b[1] - a[1]) * part];
      chip.setAttribute("transform", `translate(${x.toFixed(1)} ${y.toFixed(1)})`);
      chip.dataset.holds = source === null ? "zeros" : data.devices[source];
      const [circle, text] = chip.children;
      circle.setAttribute("fill", source === null ? "none" : PALETTE[source % PALETTE.length]);
      circle.setAttribute("fill-opacity", 0.35);
      text.textContent = source === null ? "0s" : data.devices[source];
      if (from !== device) drawn("path", { d: `M${a.map(Math.round).join(" ")}L${b.map(Math.round).join(" ")}` }, arrows);
    });
    svg.setAttribute("aria-label", words(data, round));
  }

  function go(round, moves) {
    cancelAnimationFrame(state.frame);
    state.round = round;
    player.scrub.value = String(round);
    player.scrub.setAttribute("aria-valuetext", rows[round].name);
    player.said.textContent = words(data, round);
    pointAt(rows[round].line);
    if (!moves || still.matches || round === 0) {
      draw(round, 1);
      return;
    }
    const began = performance.now();
    const step = (now) => {
      const part = Math.min((now - began) / (SECONDS * 1000), 1);
      draw(round, part * part * (3 - 2 * part));
      if (part < 1) state.frame = requestAnimationFrame(step);
    };
    state.frame = requestAnimationFrame(step);
  }

  function play(on) {
    state.playing = on;
    player.play.textContent = on ? "Pause" : "Play";
    clearTimeout(state.next);
    if (on) {
      go(state.round >= rows.length - 1 ? 0 : state.round + 1, true);
      state.next = setTimeout(again, 1500);
    }
  }

  function again() {
    if (!ring.isConnected || state.round >= rows.length - 1) play(false);
    else play(true);
  }

  player.back.addEventListener("click", () => { play(false); go(Math.max(state.round - 1, 0), false); });
  player.on.addEventListener("click", () => { play(false); go(Math.min(state.round + 1, rows.length - 1), true); });
  player.play.addEventListener("click", () => play(!state.playing));
  player.scrub.addEventListener("input", () => { play(false); go(Number(player.scrub.value), false); });
  draw(0, 1);
  player.said.textContent = words(data, 0);
}

function makePlayer(most) {
  const bar = Object.assign(document.createElement("div"), { className: "player" });
  const button = (text, name) => {
    const made = Object.assign(document.createElement("button"), { type: "button", textContent: text });
    made.setAttribute("aria-label", name);
    return made;
  };
  const back = button("◀", "Round back");
  const play = Object.assign(document.createElement("button"), { type: "button", textContent: "Play" });
  const on = button("▶", "Round forward");
  const scrub = Object.assign(document.createElement("input"), { type: "range", min: 0, max: most, value: 0, step: 1 });
  scrub.setAttribute("aria-label", "Round");
  const said = document.createElement("output");
  bar.append(back, play, on, scrub, said);
  return { bar, back, play, on, scrub, said };
}
