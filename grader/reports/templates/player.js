// Pictures that move, for the page of `watch --browser`, notebooks and the documentation: the rounds of a ring
// or a pipeline ([data-rounds]) and pictures shown one at a time ([data-steps]). Without this script each is a table or a list.
(() => {
  const SVG = "http://www.w3.org/2000/svg";
  const SECONDS = 0.9;
  const WAIT = 1500; // milliseconds from round to round
  const still = matchMedia("(prefers-reduced-motion: reduce)");

  function drawn(name, about, inside, text) {
    const made = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(about)) made.setAttribute(key, value);
    if (text !== undefined) made.textContent = text;
    inside.append(made);
    return made;
  }

  function element(name, about, style = {}, ...inside) {
    const made = Object.assign(document.createElement(name), about);
    Object.assign(made.style, style);
    made.append(...inside);
    return made;
  }

  // The buttons and the slider. `show(at, moves)` draws a frame and returns it in words.
  function player(unit, names, show) {
    const button = (text, name) => {
      const made = element("button", { type: "button", textContent: text }, { border: "1px solid", borderRadius: "6px", padding: ".2rem .7rem", minHeight: "2rem" });
      if (name) made.setAttribute("aria-label", name);
      return made;
    };
    const [back, play, on] = [button("◀", `${unit} back`), button("Play"), button("▶", `${unit} forward`)];
    const most = names.length - 1;
    const scrub = element("input", { type: "range", min: 0, max: most, value: 0, step: 1 }, { flex: "1 1 8rem", minWidth: "6rem", minHeight: "2rem" });
    scrub.setAttribute("aria-label", unit);
    const said = element("output", {}, { flexBasis: "100%", fontSize: ".9rem", minHeight: "1.6em" });
    const bar = element("div", { className: "player" }, { display: "flex", flexWrap: "wrap", alignItems: "center", gap: ".5rem", margin: ".4rem 0" }, back, play, on, scrub, said);
    const state = { at: 0, playing: false, next: 0 };

    function go(at, moves) {
      state.at = Math.min(Math.max(at, 0), most);
      scrub.value = String(state.at);
      scrub.setAttribute("aria-valuetext", names[state.at]);
      said.textContent = show(state.at, moves && !still.matches);
    }

    function run(playing) {
      state.playing = playing;
      play.textContent = playing ? "Pause" : "Play";
      clearTimeout(state.next);
      if (!playing) return;
      go(state.at >= most ? 0 : state.at + 1, true);
      state.next = setTimeout(() => run(bar.isConnected && state.at < most), WAIT);
    }

    const step = (at, moves) => { run(false); go(at, moves); };
    back.addEventListener("click", () => step(state.at - 1, false));
    on.addEventListener("click", () => step(state.at + 1, true));
    play.addEventListener("click", () => run(!state.playing));
    scrub.addEventListener("input", () => step(Number(scrub.value), false));
    scrub.setAttribute("aria-valuetext", names[0]);
    said.textContent = show(0, false);
    return bar;
  }

  // rounds of a ring or a pipeline: equal data have equal colours

  function places(count, inLine) {
    if (inLine) return { width: 72 * count + 16, height: 88, of: (i, inset = 0) => [44 + 72 * i, 55 + inset] };
    const radius = Math.max(70, count * 15);
    const middle = radius + 44;
    return {
      width: 2 * middle,
      height: 2 * middle,
      of: (i, inset = 0) => {
        const angle = (2 * Math.PI * i) / count - Math.PI / 2;
        return [middle + (radius - inset) * Math.cos(angle), middle + (radius - inset) * Math.sin(angle)];
      },
    };
  }

  // From the edge of one device to the edge of another, with a head.
  function arrow([ax, ay], [bx, by]) {
    const far = Math.hypot(bx - ax, by - ay);
    const [ux, uy] = [(bx - ax) / far, (by - ay) / far];
    const point = (along, across) => `${(ax + ux * along - uy * across).toFixed(1)} ${(ay + uy * along + ux * across).toFixed(1)}`;
    const tip = far - 23;
    return `M${point(23, 0)}L${point(tip, 0)}M${point(tip - 7, -4)}L${point(tip, 0)}L${point(tip - 7, 4)}`;
  }

  function words(data, round) {
    const { name, line, kinds } = data.rows[round];
    const parts = kinds.map((kind, i) => `${data.devices[i]} ${data.kinds[kind].said}`);
    return `${name}${line ? `, line ${line}` : ""}: ${parts.join("; ")}`;
  }

  function rings(ring) {
    const data = JSON.parse(ring.dataset.rounds);
    const { width, height, of } = places(data.devices.length, data.inLine);
    const stage = element("div", { className: "stage" }, { maxWidth: "100%", overflowX: "auto" });
    const svg = drawn("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", fill: "currentColor", "font-size": 12 }, stage);
    Object.assign(svg.style, { display: "block", maxWidth: "100%", height: "auto" });
    const arrows = drawn("g", { stroke: "currentColor", "stroke-opacity": 0.8, "stroke-width": 1.5, fill: "none" }, svg);
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
    let frame = 0;

    function draw(round, part) {
      arrows.replaceChildren();
      chips.forEach((chip, device) => {
        const row = data.rows[round];
        const cell = data.kinds[row.kinds[device]];
        const from = row.sources[device].length ? row.sources[device] : [device];
        const [a, b] = [of(from[0]), of(device)];
        const [x, y] = [a[0] + (b[0] - a[0]) * part, a[1] + (b[1] - a[1]) * part];
        chip.setAttribute("transform", `translate(${x.toFixed(1)} ${y.toFixed(1)})`);
        chip.dataset.holds = cell.text;
        const [circle, text] = chip.children;
        circle.setAttribute("fill", cell.colour === null ? "none" : data.colours[cell.colour % data.colours.length]);
        circle.setAttribute("fill-opacity", 0.35);
        circle.setAttribute("stroke-dasharray", cell.used ? "none" : "3 3");
        text.textContent = cell.text;
        text.setAttribute("font-size", cell.text.length > 4 ? 9 : 12);
        for (const source of from.filter((other) => other !== device)) drawn("path", { d: arrow(of(source), b) }, arrows);
      });
    }

    function show(round, moves) {
      cancelAnimationFrame(frame);
      svg.setAttribute("aria-label", words(data, round));
      if (ring.isConnected) ring.dispatchEvent(new CustomEvent("round", { bubbles: true, detail: data.rows[round].line }));
      if (!moves || round === 0) {
        draw(round, 1);
        return words(data, round);
      }
      const began = performance.now();
      const step = (now) => {
        const part = Math.min(Math.max(now - began, 0) / (SECONDS * 1000), 1);
        draw(round, part * part * (3 - 2 * part));
        if (part < 1) frame = requestAnimationFrame(step);
      };
      frame = requestAnimationFrame(step);
      return words(data, round);
    }

    const unit = data.inLine ? "Tick" : "Round";
    const summary = element("summary", { textContent: `All ${unit.toLowerCase()}s as a table` });
    const table = element("details", { open: true }, {}, summary, ...ring.childNodes);
    ring.replaceChildren(stage, player(unit, data.rows.map((row) => row.name), show), table);
  }

  // pictures one at a time

  function steps(box) {
    const pictures = [...box.children];
    const names = pictures.map((picture) => picture.dataset.name);
    const show = (at) => {
      pictures.forEach((picture, i) => { picture.hidden = i !== at; });
      return `${at + 1} of ${pictures.length}: ${names[at]}`;
    };
    pictures.forEach((picture) => { picture.querySelector("[data-heading]").hidden = true; });
    box.prepend(player("Picture", names, show));
  }

  function enliven(root) {
    for (const [kind, make] of [["rounds", rings], ["steps", steps]]) {
      for (const one of root.querySelectorAll(`[data-${kind}]:not([data-live])`)) {
        one.dataset.live = "1";
        make(one);
      }
    }
  }

  window.enlivenPictures = enliven;
  enliven(document);
})();
