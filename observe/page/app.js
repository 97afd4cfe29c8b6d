"use strict";
// The page asks for /v1/status every two seconds and shows it. All text is set as text, never as markup: names and
// error texts come from other machines.
const every = 2000;
const byId = (id) => document.getElementById(id);
let before = null; // the status that rates are measured against

function element(tag, text) {
  const e = document.createElement(tag);
  if (text instanceof Node) e.append(text); else e.textContent = text === undefined || text === null ? "–" : String(text);
  return e;
}

function table(id, heads, rows) {
  const t = byId(id);
  t.replaceChildren();
  t.closest("section").hidden = rows.length === 0;
  const line = (tag, cells) => { const r = document.createElement("tr"); cells.forEach((c) => r.append(element(tag, c))); t.append(r); };
  line("th", heads);
  rows.forEach((r) => line("td", r));
}

function bytes(n) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let i = 0;
  while (n >= 1024 && i < units.length - 1) { n /= 1024; i++; }
  return `${n.toFixed(i ? 1 : 0)} ${units[i]}`;
}

const duration = (s) => s === undefined ? "–" : s < 60 ? `${s.toFixed(1)} s` : s < 3600 ? `${(s / 60).toFixed(1)} min` : `${(s / 3600).toFixed(1)} h`;
const count = (n) => n.toLocaleString("en");

function rate(status, step, field) {
  const old = before && before.steps[step];
  const dt = before ? status.uptime_seconds - before.uptime_seconds : 0;
  return old && dt > 0 ? `${Math.round((status.steps[step][field] - old[field]) / dt)}/s` : "–";
}

function bar(percent) {
  const p = document.createElement("progress");
  p.max = 100;
  p.value = percent;
  p.title = `${percent}%`;
  return p;
}

function now(status) {
  const holding = status.watermarks.filter((w) => w.holding_back).map((w) => `${w.topic}[${w.partition}]`);
  const delays = status.watermarks.filter((w) => !w.idle && w.delay_seconds !== undefined).map((w) => w.delay_seconds);
  const facts = [
    ["Lag", `${count(status.lag_records)} records`],
    ["Watermark behind", delays.length ? duration(Math.max(...delays)) : "–"],
    ["Held back by", holding.slice(0, 3).join(", ") || "–"],
    ["Last commit", status.commits.last_at ? `${duration(status.commits.last_age_seconds)} ago` : "none yet"],
    ["Commit took", duration(status.commits.last_took_seconds)],
    ["Commits", `${count(status.commits.ok)} ok, ${count(status.commits.aborted + status.commits.fenced + status.commits.failed)} not`],
    ["State", bytes(status.stores.reduce((n, s) => n + s.bytes, 0))],
    ["Disk free", status.disk_free_bytes === undefined ? "–" : bytes(status.disk_free_bytes)],
  ];
  byId("now").replaceChildren(...facts.map(([name, value]) => { const d = document.createElement("div"); d.append(element("dt", name), element("dd", value)); return d; }));
}

function show(status, restore) {
  document.title = `${status.application_id} – ${status.state}`;
  byId("name").textContent = status.application_id;
  byId("state").textContent = status.state;
  byId("state").className = "badge " + (!status.live ? "bad" : status.ready ? "good" : "");
  byId("facts").textContent = `${status.instance} · version ${status.version} · topology ${status.topology} · ${status.guarantee} · up ${duration(status.uptime_seconds)}`;
  const err = status.last_error;
  byId("error").hidden = !err;
  if (err) byId("error").textContent = `${err.at} ${err.code} ${err.message}${err.error ? ": " + err.error : ""}`;
  now(status);
  table("steps", ["Step", "In", "Out", "In/s", "Out/s", "Late", "Filtered", "Dropped", "Dead letters"],
    Object.keys(status.steps).sort().map((n) => { const s = status.steps[n];
      return [n, count(s.in), count(s.out), rate(status, n, "in"), rate(status, n, "out"), s.late, s.filtered, s.dropped, s.dead_lettered]; }));
  table("restore", ["Store", "Task", "Done", "Remaining", "Rate", "ETA", "Local state"],
    restore.restores.map((r) => [r.store, r.task, r.state === "done" ? "done" : bar(r.percent), count(r.remaining), `${count(r.rate_per_second)}/s`, duration(r.eta_seconds), r.reused ? "reused" : "rebuilt"]));
  table("watermarks", ["Source", "Partition", "Newest event", "Watermark", "Behind", "Lag", ""],
    status.watermarks.map((w) => [w.source, w.partition, w.max_event_time, w.watermark, duration(w.delay_seconds), count(w.lag_records), w.holding_back ? "holds time back" : w.idle ? "idle" : ""]));
  table("stores", ["Store", "Task", "Keys", "Size", "Cache hits"],
    status.stores.map((s) => { const n = s.cache_hits + s.cache_misses; return [s.store, s.task, count(s.keys), bytes(s.bytes), n ? `${Math.round(s.cache_hits * 100 / n)}%` : "–"]; }));
  byId("tasks").textContent = status.tasks.map((t) => `${t.task} ${t.state}`).join(", ") || "none";
}

async function get(path) {
  const r = await fetch(path, { headers: { Accept: "application/json" }, cache: "no-store" });
  if (!r.ok) throw new Error(`${path} answered ${r.status}`);
  return r.json();
}

async function refresh() {
  try {
    const [status, restore] = await Promise.all([get("/v1/status"), get("/v1/restore")]);
    show(status, restore);
    before = status;
  } catch (e) {
    byId("state").textContent = "no answer";
    byId("state").className = "badge bad";
    byId("facts").textContent = e.message;
  }
  setTimeout(refresh, every);
}

refresh();
