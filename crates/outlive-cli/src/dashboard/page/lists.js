// Lists, numbers for people, and elements made from text only.

function h(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

function put(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

const rate = value => value <= 0 ? "-" : value < 100 ? value.toFixed(1) : value.toFixed(0);
const count = value => value ? String(value) : "-";

function bytes(value) {
  for (const unit of ["B", "kB", "MB", "GB"]) {
    if (value < 999.95) return `${unit === "B" ? Math.round(value) : value.toFixed(1)} ${unit}`;
    value /= 1000;
  }
  return `${value.toFixed(1)} TB`;
}

function span(ns) {
  for (const unit of ["ns", "µs", "ms"]) {
    if (ns < 999.5) return `${ns < 10 && unit !== "ns" ? ns.toFixed(1) : Math.round(ns)} ${unit}`;
    ns /= 1000;
  }
  return `${ns.toFixed(1)} s`;
}

const up = s => s < 120 ? `${s.toFixed(0)} s` : s < 7200 ? `${(s / 60).toFixed(0)} min`
                                                         : `${(s / 3600).toFixed(0)} h`;

// Children of `parent`, one for each item; those that stay are used again.
function keep(parent, items, keyOf, make, update) {
  const had = new Map([...parent.children].map(child => [child.dataset.key, child]));
  const children = items.map(item => {
    const key = keyOf(item), child = had.get(key) || make(item);
    child.dataset.key = key;
    update(child, item);
    return child;
  });
  const same = children.length === parent.children.length &&
    children.every((child, i) => child === parent.children[i]);
  if (!same) parent.replaceChildren(...children);
}

// Columns: head, text of a row, and whether it is a number.
function list(table, columns, items, keyOf, classOf, choose) {
  if (!table.tHead) {
    const cells = columns.map(([head, , number]) =>
      h("th", number ? { class: "number" } : {}, head));
    table.append(h("thead", {}, h("tr", {}, ...cells)), h("tbody"));
  }
  const make = item => {
    const row = h("tr");
    for (const [, , number] of columns) row.append(h("td", number ? { class: "number" } : {}));
    if (choose) row.addEventListener("click", () => choose(item));
    return row;
  };
  keep(table.tBodies[0], items, keyOf, make, (row, item) => {
    row.className = classOf(item);
    columns.forEach(([, text], i) => {
      const cell = row.children[i], said = text(item);
      if (said instanceof Element) cell.replaceChildren(said);
      else put(cell, said), cell.title = i ? "" : said;
    });
  });
}

// A line of the last rates.
function spark(values) {
  const width = 90, height = 16, most = Math.max(1e-9, ...values);
  const points = values.map((value, i) => {
    const x = (i + 60 - values.length) * width / 59, y = height - 1 - value / most * (height - 2);
    return `${x.toFixed(1)},${y.toFixed(1)}`;
  });
  const line = svg("polyline", { points: points.join(" ") });
  return svg("svg", { width, height, viewBox: `0 0 ${width} ${height}` }, line);
}

// Bars of a latency histogram.
function bars(latency) {
  const { buckets } = latency, wide = 38, high = 92;
  const first = Math.max(0, buckets.findIndex(([, n]) => n > 0) - 1), shown = buckets.slice(first);
  const most = Math.max(...shown.map(([, n]) => n));
  const width = Math.max(3, shown.length) * wide;
  const root = svg("svg", { id: "latency", width, height: high + 34 });
  shown.forEach(([upper, n], i) => {
    const tall = n / most * (high - 16), x = i * wide + 3;
    root.append(svg("rect", { x, y: high - tall, width: wide - 6, height: tall }));
    const label = svg("text", { x: x + wide / 2 - 3, y: high + 13, "text-anchor": "middle" });
    label.textContent = span(upper).replace(" ", "");
    root.append(label);
    if (n) {
      const text = svg("text",
        { class: "count", x: x + wide / 2 - 3, y: high - tall - 3, "text-anchor": "middle" });
      text.textContent = n;
      root.append(text);
    }
  });
  const under = svg("text", { x: 3, y: high + 28 });
  under.textContent = "up to";
  root.append(under);
  return root;
}
