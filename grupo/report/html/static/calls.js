/* Calls of tools, laid out over the parts they were written with, and what the world answered. */

function callOf({ name, arguments: given, error }) {
  if (error !== undefined) return el("div", { class: "bad" }, error);
  return el("div", {}, el("b", {}, name), given.length
    ? el("dl", {}, given.map(([key, text]) => [el("dt", {}, key), el("dd", {}, text)])) : null);
}

function callsSaid(count, wrong) {
  if (count > 1) return `${count} calls${wrong ? `, ${wrong} malformed` : ""}`;
  return count ? `${wrong ? "malformed " : ""}call` : "the call goes on";
}

function callBox(said, parts, { measure }) {
  const wrong = said.filter((call) => call.error !== undefined).length;
  return el("div", { class: wrong ? "call wrong" : "call" }, el("span", { class: "role" }, callsSaid(said.length, wrong)), said.map(callOf),
    el("details", { open: wrong > 0 || measure !== "plain" }, el("summary", {}, "as written"), el("div", { class: "written" }, parts)));
}

/* The parts of an action in their order, those that make up calls in boxes. */
function boxed({ call_spans: spans = [] }, parts, look) {
  const found = [];
  let done = 0;
  for (const { item_range: [begin, end], calls } of spans) {
    found.push(...parts.slice(done, begin), callBox(calls, parts.slice(begin, end), look));
    done = end;
  }
  return [...found, ...parts.slice(done)];
}

/* What the world said before an action: to calls, their answers. */
function worldOf({ observation: world, answered_calls: answers }, turn, { told }) {
  if (world === undefined || (!turn && told !== undefined)) return null;  // what all are told stands above them
  const label = answers ? `the tool${answers > 1 ? "s" : ""} answered` : turn ? "the world" : "the prompt it was given";
  return el("div", { class: answers ? "world answer" : "world" }, el("span", { class: "role" }, label),
    answers ? messages(unnamed(world), failuresMarked) : messages(world));
}

const unnamed = (world) => (typeof world === "string" ? world : [world].flat().map((m) => (m.role === "tool" ? { ...m, role: "" } : m)));

/* A world of tools says what is wrong with a call in a line of its own. */
const failuresMarked = (text) => text.split(/(?<=\n)/).map((line) => (line.startsWith("error:") ? el("span", { class: "bad" }, line) : line));
