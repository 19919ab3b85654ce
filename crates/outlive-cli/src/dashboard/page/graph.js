// The graph: layers from those who send to those who receive, drawn anew only when it changes.

const SVG = "http://www.w3.org/2000/svg";
const BOX = { width: 140, height: 38, gapX: 44, gapY: 12, margin: 8 };
const VERTICES_MAX = 240;

function svg(name, attributes, ...children) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

// Vertices and edges of a state. Text is text: nothing here becomes markup.
function graphOf(state, wanted) {
  const vertices = new Map(), edges = new Map();
  const vertex = (key, kind, name) => vertices.set(key, { key, kind, name });
  const edge = (from, to, of = {}) => {
    const key = from + "\n" + to;
    if (vertices.has(from) && vertices.has(to)) edges.set(key, { key, from, to, ...of });
  };
  // What only this page has is not of the robot.
  const others = state.nodes.filter(node => node.id !== state.own);
  for (const node of others) vertex("n" + node.id, "node", node.name);
  for (const topic of state.topics) vertex("t" + topic.name, "topic", topic.name);
  for (const queue of state.queues) vertex("q" + queue.name, "queue", queue.name);
  for (const service of state.services) vertex("s" + service.name, "service", service.name);
  for (const topic of state.topics) {
    for (const p of topic.publishers) {
      if (!p.closed) edge("n" + p.node, "t" + topic.name, { bytes: p.bytes_per_s, life: p.life });
    }
    for (const r of topic.readers) {
      const slow = r.lost > 0 || r.lag * 2 > topic.depth;
      edge("t" + topic.name, "n" + r.node, { bytes: topic.bytes_per_s, life: r.life, slow });
    }
  }
  for (const queue of state.queues) {
    for (const lane of queue.lanes) {
      if (lane.state !== "closed") edge("n" + lane.node, "q" + queue.name, { life: lane.state });
    }
    if (queue.consumer !== null) edge("q" + queue.name, "n" + queue.consumer);
  }
  for (const service of state.services) {
    // As the answers go.
    if (service.server !== null) edge("n" + service.server, "s" + service.name);
    for (const client of service.clients) edge("s" + service.name, "n" + client);
  }
  // What a dead node did, when its files are gone already.
  for (const node of state.nodes.filter(n => n.life === "dead")) {
    for (const name of node.publishes) edge("n" + node.id, "t" + name, { life: "dead" });
    for (const name of node.reads) edge("t" + name, "n" + node.id, { life: "dead" });
  }
  if (wanted) {
    const near = new Set();
    const fits = key => vertices.get(key).name.toLowerCase().includes(wanted);
    for (const key of vertices.keys()) if (fits(key)) near.add(key);
    for (const { from, to } of edges.values()) {
      if (fits(from)) near.add(to);
      if (fits(to)) near.add(from);
    }
    for (const key of [...vertices.keys()]) if (!near.has(key)) vertices.delete(key);
  }
  const left = [...vertices.keys()].slice(VERTICES_MAX);
  for (const key of left) vertices.delete(key);
  for (const [key, { from, to }] of edges) {
    if (!vertices.has(from) || !vertices.has(to)) edges.delete(key);
  }
  return { vertices, edges, left: left.length };
}

// Gives every vertex a layer and a place: longest paths, with the edges that close a circle left
// out; then each layer in the order of its neighbours.
function layOut({ vertices, edges }) {
  const out = new Map(), into = new Map();
  for (const key of vertices.keys()) out.set(key, []), into.set(key, []);
  for (const { from, to } of edges.values()) out.get(from).push(to), into.get(to).push(from);
  const state = new Map(), order = [], forward = new Map();
  for (const key of vertices.keys()) forward.set(key, []);
  const roots = [...vertices.keys()].sort((a, b) => into.get(a).length - into.get(b).length);
  for (const root of roots) {
    if (state.has(root)) continue;
    const path = [[root, 0]];
    state.set(root, 1);
    while (path.length) {
      const top = path[path.length - 1], [key, at] = top;
      const next = out.get(key)[at];
      if (next === undefined) {
        state.set(key, 2), order.push(key), path.pop();
        continue;
      }
      top[1] += 1;
      if (state.get(next) === 1) continue;
      forward.get(key).push(next);
      if (!state.has(next)) state.set(next, 1), path.push([next, 0]);
    }
  }
  order.reverse();
  const layer = new Map();
  for (const key of order) layer.set(key, 0);
  for (const key of order) {
    for (const next of forward.get(key)) {
      layer.set(next, Math.max(layer.get(next), layer.get(key) + 1));
    }
  }
  // A sender stands next to what it sends to, not at the far left.
  for (const key of [...order].reverse()) {
    if (into.get(key).length === 0 && forward.get(key).length) {
      layer.set(key, Math.min(...forward.get(key).map(next => layer.get(next))) - 1);
    }
  }
  const layers = [];
  for (const key of vertices.keys()) (layers[layer.get(key)] ||= []).push(key);
  for (let i = 0; i < layers.length; i += 1) layers[i] ||= [];
  const place = new Map();
  const number = () => layers.forEach(keys => keys.forEach((key, i) => place.set(key, i)));
  const near = key => [...into.get(key), ...out.get(key)].filter(other => other !== key);
  number();
  for (let sweep = 0; sweep < 10; sweep += 1) {
    for (const keys of sweep % 2 ? [...layers].reverse() : layers) {
      const middle = key => {
        const places = near(key).map(other => place.get(other) / layers[layer.get(other)].length);
        return places.length ? places.reduce((a, b) => a + b) / places.length
                             : place.get(key) / keys.length;
      };
      const middles = new Map(keys.map(key => [key, middle(key)]));
      keys.sort((a, b) => middles.get(a) - middles.get(b));
      keys.forEach((key, i) => place.set(key, i));
    }
  }
  // Heights: near the neighbours, in order, never on each other.
  const step = BOX.height + BOX.gapY, y = new Map();
  layers.forEach(keys => keys.forEach((key, i) => y.set(key, i * step)));
  for (let sweep = 0; sweep < 20; sweep += 1) {
    for (const keys of sweep % 2 ? [...layers].reverse() : layers) {
      const aim = keys.map(key => {
        const others = near(key);
        const sum = others.reduce((a, other) => a + y.get(other), 0);
        return others.length ? sum / others.length : y.get(key);
      });
      keys.forEach((key, i) => {
        y.set(key, i ? Math.max(aim[i], y.get(keys[i - 1]) + step) : aim[i]);
      });
      const shift = keys.reduce((a, key, i) => a + aim[i] - y.get(key), 0) / (keys.length || 1);
      keys.forEach(key => y.set(key, y.get(key) + shift));
    }
  }
  const least = Math.min(0, ...y.values());
  const spots = new Map();
  for (const key of vertices.keys()) {
    const x = BOX.margin + layer.get(key) * (BOX.width + BOX.gapX);
    spots.set(key, { x, y: BOX.margin + y.get(key) - least });
  }
  const width = layers.length * (BOX.width + BOX.gapX) - BOX.gapX + 2 * BOX.margin;
  const height = Math.max(0, ...[...spots.values()].map(s => s.y)) + BOX.height + BOX.margin;
  return { spots, width: Math.max(width, BOX.width), height };
}

// As much of the end of a text as there is room for: the end tells long names apart.
function fit(element, text) {
  if (element.dataset.whole === text) return;
  element.dataset.whole = element.textContent = text;
  const letters = [...text];
  while (letters.length > 1 && element.getComputedTextLength() > BOX.width - 22) {
    letters.shift();
    element.textContent = "…" + letters.join("");
  }
}

const drawing = { signature: null, boxes: new Map(), lines: new Map() };

function drawGraph(state, wanted, choose) {
  const graph = graphOf(state, wanted), root = document.getElementById("graph");
  const signature = [...graph.vertices.keys(), "", ...graph.edges.keys()].join("\0");
  if (signature !== drawing.signature) {
    const { spots, width, height } = layOut(graph);
    drawing.signature = signature;
    drawing.boxes.clear(), drawing.lines.clear();
    root.setAttribute("viewBox", `0 0 ${width} ${height}`);
    root.setAttribute("width", width), root.setAttribute("height", height);
    const lines = svg("g", {}), boxes = svg("g", {});
    for (const { key, from, to } of graph.edges.values()) {
      const a = spots.get(from), b = spots.get(to);
      const forward = b.x > a.x;
      const x1 = a.x + BOX.width, y1 = a.y + BOX.height / 2, x2 = b.x, y2 = b.y + BOX.height / 2;
      const bend = forward ? Math.max(30, (x2 - x1) / 2) : 60;
      const curve = `C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}`;
      const line = svg("path", { d: `M${x1} ${y1} ${curve}` });
      drawing.lines.set(key, line);
      lines.append(line);
    }
    for (const { key, kind, name } of graph.vertices.values()) {
      const spot = spots.get(key), round = kind === "node" ? 4 : BOX.height / 2;
      const title = svg("title", {}), sub = svg("text", { class: "sub", x: 11, y: 30 });
      const label = svg("text", { x: 11, y: 16 });
      const box = svg("g", { transform: `translate(${spot.x} ${spot.y})` }, title,
        svg("rect", { width: BOX.width, height: BOX.height, rx: round }), label, sub);
      if (kind === "topic") box.addEventListener("click", () => choose(name));
      drawing.boxes.set(key, { box, label, sub, title, name });
      boxes.append(box);
    }
    root.replaceChildren(lines, boxes);
    for (const { label, name } of drawing.boxes.values()) fit(label, name);
  }
  const say = (key, classes, sub, title) => {
    const drawn = drawing.boxes.get(key);
    if (!drawn) return;
    drawn.box.setAttribute("class", "box " + classes);
    fit(drawn.sub, sub), drawn.title.textContent = title;
  };
  for (const n of state.nodes) {
    const life = n.life === "alive" ? `pid ${n.pid}` : `${n.life}, pid ${n.pid}`;
    const holds = n.holds ? `, holds ${n.holds}` : "";
    say("n" + n.id, "node " + n.life, life + holds, `${n.id} ${n.name}: ${n.life}`);
  }
  for (const t of state.topics) {
    const traffic = t.hz > 0 ? `${rate(t.hz)} Hz, ${bytes(t.bytes_per_s)}/s` : t.state || "idle";
    const said = [t.name, t.type_name, traffic, t.state].filter(Boolean).join("\n");
    say("t" + t.name, "topic " + t.mood, traffic, said);
  }
  for (const q of state.queues) say("q" + q.name, "queue", `queue · ${q.unread} unread`, q.name);
  for (const s of state.services) {
    say("s" + s.name, "service", s.server === null ? "service, no server" : "service", s.name);
  }
  for (const { key, bytes: amount, life, slow } of graph.edges.values()) {
    const line = drawing.lines.get(key);
    const worst = life === "dead" ? "bad" : life === "stopped" || slow ? "slow" : "";
    line.setAttribute("class", worst || (amount === 0 ? "idle" : ""));
    const width = 1 + Math.min(4, Math.max(0, Math.log10((amount || 0) / 1e4 + 1)));
    line.setAttribute("stroke-width", width.toFixed(1));
  }
  const note = graph.left ? `${graph.left} more are not drawn: filter` : "";
  document.getElementById("graph-note").textContent = note;
}
