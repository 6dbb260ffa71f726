"use strict";
const $ = (id) => document.getElementById(id);
const ui = { sort: "rank", descending: false, rank: null, paused: false, last: null };

// Texts are set as text, never as markup: names of programs may be anything.
function make(name, attributes = {}, ...children) {
  const svg = ["path", "circle", "text", "g"].includes(name);
  const node = svg ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children.map((child) => (child instanceof Node ? child : String(child))));
  return node;
}

function short(value) {
  let prefix = 0;
  while (value >= 999.5 && prefix < 4) [value, prefix] = [value / 1000, prefix + 1];
  const digits = prefix === 0 && Number.isInteger(value) ? 0 : value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
  return (value.toFixed(digits) + " " + ["", "k", "M", "G", "T"][prefix]).trim();
}
const known = (value, show) => (value === null || value === undefined ? "-" : show(value));
function bytes(value) {
  const number = short(value);
  return number + (number.includes(" ") ? "B" : " B");
}
const rate = (value) => known(value, (v) => bytes(v) + "/s");
function clock(seconds) {
  const two = (n) => String(Math.floor(n) % 60).padStart(2, "0");
  return `${Math.floor(seconds / 3600)}:${two(seconds / 60)}:${two(seconds)}`;
}
const load = (part) => (part === null || part < 0.005 ? "idle" : part < 0.5 ? "low" : part < 0.8 ? "middle" : "high");
const plural = (count, name) => `${count} ${name}${count === 1 ? "" : "s"}`;

function fill(table, headings, rows) {
  const head = make("tr", {}, ...headings);
  table.replaceChildren(make("thead", {}, head), make("tbody", {}, ...rows));
}
const th = (name, left) => make("th", left ? { class: "left" } : {}, name);
const td = (text, kind = "") => make("td", kind ? { class: kind } : {}, text);

function showHead(data) {
  const { job, size, hosts } = data;
  const parts = [`job ${job.id}`];
  if (job.program) parts.push(job.program);
  parts.push(size ? `${plural(size, "rank")} on ${plural(hosts, "host")}` : "no rank has joined yet");
  if (job.running_s !== null) parts.push(clock(job.running_s));
  $("job").textContent = parts.join(" · ");
  const full = known(data.limit.bytes_per_s, (v) => bytes(v) + "/s");
  $("limit").textContent = hosts === 1 ? "One host, so no links."
    : data.limit.bytes_per_s === null ? "No rates are known yet."
    : data.limit.origin === "link_model" ? `100 % is ${full}, the bandwidth of the link model ${job.link_model}.`
    : `100 % is ${full}, the largest rate seen so far.`;
}

function showLinks(data) {
  const heads = [th("link", true), th("state", true), th("to the right"), th("to the left"), th("resent"), th("damaged"),
    th("dropped")];
  const flow = ({ bytes_per_s, utilisation }) => {
    const full = make("i");
    full.style.width = `${100 * Math.min(utilisation ?? 0, 1)}%`;
    return make("td", {}, rate(bytes_per_s), make("span", { class: "bar " + load(utilisation) }, full),
      make("span", { class: "percent" }, known(utilisation, (part) => `${Math.round(100 * part)} %`)));
  };
  const count = (events) => td(short(events.total), events.new ? "new" : events.total ? "" : "zero");
  fill($("links"), heads, data.links.map((link) => make("tr", {}, td(link.link, "left"),
    td(link.up ? "up" : "down", link.up ? "left" : "left down"), ...link.directions.map(flow),
    count(link.resent), count(link.damaged), count(link.dropped))));
}

// Hosts on a circle, host 0 at the top, the right neighbour next in clockwise order; two lanes between neighbours.
function showRing(data) {
  const count = data.hosts;
  const size = Math.min(760, Math.max(360, 26 * count)), middle = size / 2, radius = middle - 64;
  const node = Math.max(9, Math.min(20, (2.2 * radius) / Math.max(count, 1)));
  const at = (turn, r) => [middle + r * Math.sin(turn), middle - r * Math.cos(turn)];
  const turn = (host) => (2 * Math.PI * host) / Math.max(count, 1);
  const parts = [];
  for (const link of data.links) {
    const from = turn(link.ends[0]), to = from + turn(1);
    // Outside: to the right. Inside: to the left.
    link.directions.forEach((direction, side) => {
      const r = radius + (side === 0 ? 4 : -4);
      const [a, b] = [at(from, r), at(to, r)];
      const path = make("path", {
        class: link.up ? load(direction.utilisation) : "down",
        d: `M ${a.join(" ")} A ${r} ${r} 0 ${count === 1 ? 1 : 0} 1 ${b.join(" ")}`,
      });
      parts.push(path);
      if (count <= 12 && (link.up || side === 0)) {
        const [x, y] = at((from + to) / 2, radius + (side === 0 ? 34 : -36));
        const label = link.up ? rate(direction.bytes_per_s) : "down";
        parts.push(make("text", { class: link.up ? "rate" : "rate down", x, y }, label));
      }
    });
  }
  for (let host = 0; host < count; host++) {
    const [cx, cy] = at(turn(host), count === 1 ? 0 : radius);
    parts.push(make("circle", { cx, cy, r: node }), make("text", { x: cx, y: cy }, host));
  }
  $("ring").setAttribute("viewBox", `0 0 ${size} ${size}`);
  $("ring").replaceChildren(...parts);
}

const order = ["in_mpi", "computing", "waiting", "blocked", "stopped", "ended"];
const columns = [
  ["rank", (line) => line.rank],
  ["host", (line) => line.host],
  ["state", (line) => order.indexOf(line.state.activity) + line.state.since_s / 1e6],
  ["messages/s", (line) => line.msgs_per_s, short],
  ["out", (line) => line.out_per_s, rate],
  ["in", (line) => line.in_per_s, rate],
  ["unexpected", (line) => line.state.unexpected_bytes, bytes],
  ["age", (line) => line.age_s, (age) => (age < 100 ? age.toFixed(1) + " s" : clock(age))],
];

function showRanks(data) {
  const heads = columns.map(([name]) => {
    const arrow = ui.sort !== name ? "" : ui.descending ? " ▼" : " ▲";
    const head = make("th", { class: name === "state" ? "sorts left wide" : "sorts" }, name + arrow);
    head.onclick = () => {
      ui.descending = ui.sort === name ? !ui.descending : !["rank", "host"].includes(name);
      ui.sort = name;
      show(ui.last);
    };
    return head;
  });
  const value = columns.find(([name]) => name === ui.sort)[1];
  const sign = ui.descending ? -1 : 1;
  const lines = [...data.ranks].sort((a, b) => sign * ((value(a) ?? -1) - (value(b) ?? -1)) || a.rank - b.rank);
  fill($("ranks"), heads, lines.map((line) => {
    const row = make("tr", { class: line.rank === ui.rank ? "chosen" : "" }, ...columns.map(([name, of, form]) =>
      name === "state" ? td(line.doing, "left text " + line.state.activity)
        : td(form ? known(of(line), form) : of(line))));
    row.onclick = () => {
      ui.rank = ui.rank === line.rank ? null : line.rank;
      history.replaceState(null, "", ui.rank === null ? location.pathname : `#rank=${ui.rank}`);
      ask();
    };
    return row;
  }));
}

function showDetail(data) {
  const detail = data.detail;
  $("detail-part").hidden = !detail;
  if (!detail) return;
  const line = data.ranks.find((line) => line.rank === detail.rank);
  $("detail-title").textContent =
    `Rank ${detail.rank} on host ${line.host}${line.pid === null ? "" : `, process ${line.pid}`}: ${line.doing}`;
  fill($("counters"), [th("counter", true), th("total"), th("per second")], detail.counters.map((counter) => {
    const name = td(counter.name, "left");
    name.title = counter.meaning;
    return make("tr", {}, name, td(short(counter.total)), td(known(counter.per_s, short)));
  }));
  const heads = ["to rank", "host", "hops", "messages/s", "rate", "messages", "bytes"].map((name) => th(name));
  fill($("peers"), heads, detail.peers.map((peer) => make("tr", {}, td(peer.rank), td(peer.host),
    td(peer.distance + (peer.relayed ? ", relayed" : "")), td(known(peer.msgs_per_s, short)), td(rate(peer.bytes_per_s)),
    td(short(peer.msgs)), td(bytes(peer.bytes)))));
}

function show(data) {
  ui.last = data;
  for (const part of [showHead, showLinks, showRing, showRanks, showDetail]) part(data);
}

function status(name, text) {
  $("status").className = name;
  $("status").textContent = text;
}

// The chosen rank is in the address, so that it stays when the page is loaded again.
const chosen = /^#rank=(\d+)$/.exec(location.hash);
if (chosen) ui.rank = Number(chosen[1]);

let timer = null;
async function ask() {
  clearTimeout(timer);
  let pause = 2;
  try {
    const answer = await fetch("data" + (ui.rank === null ? "" : `?rank=${ui.rank}`), { cache: "no-store" });
    if (!answer.ok) throw new Error(await answer.text());
    const data = await answer.json();
    pause = data.interval_s;
    show(data);
    status(data.ended ? "ended" : ui.paused ? "paused" : "live", data.ended ? "the job has ended" : ui.paused ? "paused" : "live");
  } catch (error) {
    status("lost", error instanceof TypeError ? "no answer: has ntbring top ended?" : error.message);
  }
  clearTimeout(timer);
  if (!ui.paused) timer = setTimeout(ask, 1000 * pause);
}

$("pause").onclick = () => {
  ui.paused = !ui.paused;
  $("pause").textContent = ui.paused ? "go on" : "pause";
  if (ui.paused) {
    clearTimeout(timer);
    status("paused", "paused");
  } else ask();
};
ask();
