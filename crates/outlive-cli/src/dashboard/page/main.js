// Asks for the state again and again and shows it.

const at = id => document.getElementById(id);
const page = { chosen: null, paused: false, rates: new Map(), inView: new Set(), shown: null };

const seen = "IntersectionObserver" in window ? new IntersectionObserver(changes => {
  for (const { target, isIntersecting } of changes) {
    if (isIntersecting) page.inView.add(target.dataset.key);
    else page.inView.delete(target.dataset.key);
  }
}) : null;

function choose(name) {
  page.chosen = page.chosen === name ? null : name;
  if (page.shown) show(page.shown);
}

const wanted = () => at("filter").value.trim().toLowerCase();
const fits = name => name.toLowerCase().includes(wanted());

function totals(state) {
  const of = life => state.nodes.filter(n => n.life === life).length;
  const sum = what => state.topics.reduce((all, topic) => all + topic[what], 0);
  const parts = [
    ["nodes", of("alive"), ""], ["stopped", of("stopped"), "slow"],
    ["deaths", state.deaths, "bad"], ["topics", state.topics.length, ""],
    ["messages/s", rate(sum("hz")), ""], ["traffic/s", bytes(sum("bytes_per_s")), ""],
    ["memory", bytes(sum("memory_bytes")), ""], ["lost", sum("lost"), "slow"],
  ];
  keep(at("totals"), parts, ([name]) => name, () => h("div", {}, h("b"), " ", h("span")),
    (box, [name, value, mood]) => {
      box.className = value ? mood : "";
      put(box.children[0], String(value)), put(box.children[1], name);
    });
}

function log(state) {
  const make = () => h("li", {}, h("time"), h("span"));
  keep(at("log"), [...state.events].reverse(), event => String(event.id), make, (line, event) => {
    line.className = event.kind;
    const time = new Date(event.time_ms);
    put(line.children[0], time.toLocaleTimeString("en-GB"));
    put(line.children[1], event.text);
  });
  if (!state.events.length) at("log").replaceChildren(h("li", { class: "none" }, "nothing yet"));
}

function images(state) {
  const topics = state.topics.filter(topic => topic.image && fits(topic.name));
  at("images-card").hidden = !topics.length;
  const make = () => {
    const figure = h("figure", {}, h("div", { class: "frame" }, h("span")),
      h("figcaption", {}, h("b"), h("span")));
    if (seen) setTimeout(() => seen.observe(figure));
    return figure;
  };
  keep(at("images"), topics, topic => topic.name, make, (figure, topic) => {
    if (!seen) page.inView.add(topic.name);
    const [frame, caption] = figure.children;
    const watched = state.watched && state.watched[topic.name];
    const picture = watched && watched.picture;
    put(caption.children[0], topic.name);
    const form = picture ? `${picture.width}×${picture.height} ${picture.format} · ` : "";
    put(caption.children[1], `${form}${rate(topic.hz)} Hz`);
    const image = frame.querySelector("img");
    if (!picture) {
      // What it shows is no longer what is sent.
      if (image && watched && watched.error) frame.replaceChildren(h("span"));
      const why = !state.watched ? "pictures are off (--no-subscribe)"
        : watched && (watched.error || watched.picture_error) || "no picture yet";
      if (!frame.querySelector("img")) put(frame.children[0], why);
    } else if (!image || (image.complete && image.dataset.number !== String(picture.number))) {
      const shown = image || h("img", { alt: "" });
      shown.dataset.number = picture.number;
      shown.src = `/api/image?topic=${encodeURIComponent(topic.name)}&n=${picture.number}`;
      if (!image) frame.replaceChildren(shown);
    }
  });
  const here = new Set(topics.map(topic => topic.name));
  for (const name of page.inView) if (!here.has(name)) page.inView.delete(name);
}

function detail(state) {
  const topic = state.topics.find(t => t.name === page.chosen);
  at("detail-card").hidden = !topic;
  if (!topic) return;
  put(at("detail-name"), topic.name);
  const part = (head, ...children) => h("div", {}, h("h3", {}, head), ...children);
  const lines = texts => h("ul", {}, ...texts.map(text => h("li", {}, text)));
  const watched = state.watched && state.watched[topic.name], times = watched && watched.latency;
  const none = !state.watched ? "off (--no-subscribe)"
    : watched && watched.error || "no message yet";
  const why = watched && watched.unstamped && !watched.error
    ? "its messages have no time stamps" : none;
  const latency = times
    ? part(`Latency, stamp to receive here: p50 ${span(times.p50_ns)}, ` +
        `p99 ${span(times.p99_ns)}, ` +
        `max ${span(times.max_ns)} of the last ${times.samples}`, bars(times))
    : part("Latency, stamp to receive here", h("p", { class: "none" }, why));
  const sent = watched && watched.message;
  const message = sent
    ? part(`Message ${sent.seq} of ${sent.node}.${sent.port}, ${bytes(sent.bytes)}`,
        h("table", {}, ...sent.rows.map(([name, value]) =>
          h("tr", {}, h("td", {}, name), h("td", {}, value)))))
    : part("Message", h("p", { class: "none" }, none));
  message.className = "message";
  const publishers = topic.publishers.map(p => {
    const state = p.closed ? "left" : p.life;
    return `${p.node}.${p.port} ${p.name}: ${state}, ${rate(p.hz)} Hz, ` +
      `${bytes(p.bytes_per_s)}/s, ${p.messages} messages, ${bytes(p.memory_bytes)}`;
  });
  const readers = topic.readers.map(r => {
    const notes = [r.life, r.reliable && "reliable", r.waiting && "asleep", `lag ${r.lag}`,
      r.lost && `lost ${r.lost}`, r.held.length && `holds ${r.held.join(", ")}`];
    return `${r.node}.${r.port} ${r.name}: ${notes.filter(Boolean).join(", ")}`;
  });
  at("detail").replaceChildren(message, latency,
    part("Type", lines([topic.type_name, topic.encoding, `depth ${topic.depth}`])),
    part("Publishers", lines(publishers)), part("Readers", lines(readers)));
}

function tables(state) {
  for (const topic of state.topics) {
    const rates = page.rates.get(topic.name) || [];
    if (state !== page.shown) rates.push(topic.hz), rates.splice(0, rates.length - 60);
    page.rates.set(topic.name, rates);
  }
  const mood = item => item.mood === "good" ? "" : item.mood;
  const live = p => p.life !== "dead" && !p.closed;
  const topicClass = topic => mood(topic) + (topic.name === page.chosen ? " chosen" : "");
  list(at("topics"), [
    ["topic", t => t.name], ["type", t => t.type_name], ["Hz", t => rate(t.hz), true],
    ["lately", t => spark(page.rates.get(t.name))],
    ["bytes/s", t => t.bytes_per_s > 0 ? bytes(t.bytes_per_s) : "-", true],
    ["messages", t => count(t.messages), true], ["memory", t => bytes(t.memory_bytes), true],
    ["lag", t => count(t.lag), true], ["lost", t => count(t.lost), true],
    ["publishers", t => count(t.publishers.filter(live).length), true],
    ["readers", t => count(t.readers.filter(r => r.life !== "dead").length), true],
    ["state", t => t.state || "-"],
  ], state.topics.filter(t => fits(t.name)), t => t.name, topicClass, t => choose(t.name));
  const names = all => all.length ? all.join(", ") : "-";
  list(at("nodes"), [
    ["node", n => `${n.id} ${n.name}`], ["pid", n => String(n.pid), true], ["state", n => n.life],
    ["up", n => n.life === "dead" ? "-" : up((state.at_ns - n.started_ns) / 1e9), true],
    ["publishes", n => names(n.publishes)], ["reads", n => names(n.reads)],
    ["holds", n => count(n.holds), true], ["locks", n => names(n.locks)],
    ["memory", n => bytes(n.memory_bytes), true],
  ], state.nodes.filter(n => fits(n.name)), n => String(n.id),
  n => n.life === "dead" ? "bad" : n.life === "stopped" ? "slow" : "");
  const some = (name, columns, items, classOf) => {
    const shown = items.filter(item => fits(item.name));
    at(name + "-card").hidden = !shown.length;
    list(at(name), columns, shown, item => item.name, classOf);
  };
  const node = id => id === null ? "-" : String(id);
  some("queues", [
    ["queue", q => q.name], ["type", q => q.type], ["consumer", q => node(q.consumer), true],
    ["producers", q => count(q.lanes.filter(l => l.state === "alive").length), true],
    ["unread", q => count(q.unread), true], ["memory", q => bytes(q.memory_bytes), true],
  ], state.queues, q => q.consumer === null ? "slow" : "");
  some("services", [
    ["service", s => s.name], ["server", s => node(s.server), true],
    ["clients", s => count(s.clients.length), true], ["unread", s => count(s.unread), true],
  ], state.services, s => s.server === null ? "slow" : "");
  const holder = l => l.holder ? `${l.holder[0]} ${l.holder[1]}` : "-";
  some("locks", [
    ["lock", l => l.name], ["kind", l => l.kind], ["state", l => l.state], ["holder", holder],
    ["waits", l => l.waiters ? "yes" : "-"], ["users", l => count(l.users), true],
  ], state.locks, mood);
}

function alarm(text) {
  at("alarm").hidden = !text;
  put(at("alarm"), text || "");
}

function show(state) {
  put(at("domain"), state.domain);
  alarm(state.error);
  totals(state);
  log(state);
  drawGraph(state, wanted(), choose);
  images(state);
  detail(state);
  tables(state);
  page.shown = state;
}

function question() {
  const query = new URLSearchParams();
  const names = page.shown ? new Set(page.shown.topics.map(topic => topic.name)) : new Set();
  if (names.has(page.chosen)) query.append("time", page.chosen);
  for (const name of [...page.inView].slice(0, 20)) query.append("see", name);
  return query.size ? "/api/state?" + query : "/api/state";
}

async function tick() {
  let pause = 500;
  if (!document.hidden && !page.paused) {
    try {
      const answer = await fetch(question());
      if (!answer.ok) throw new Error(await answer.text());
      const state = await answer.json();
      pause = Math.min(5000, state.every_ms);
      show(state);
    } catch (error) {
      alarm("no answer from 'outlive dashboard': " + error.message);
      pause = 1000;
    }
  }
  setTimeout(tick, pause);
}

at("pause").addEventListener("click", () => {
  page.paused = !page.paused;
  put(at("pause"), page.paused ? "go on" : "pause");
});
at("filter").addEventListener("input", () => page.shown && show(page.shown));
at("detail-close").addEventListener("click", () => choose(page.chosen));
tick();
