/* Formatting of numbers and units. */

const isNumber = (x) => typeof x === "number" && Number.isFinite(x);

function number(x) {
  if (typeof x === "string") return x;
  if (!isNumber(x)) return "–";
  if (x === 0) return "0";
  if (Math.abs(x) >= 10000) return Math.round(x).toLocaleString("en");
  if (Math.abs(x) < 0.001) return x.toExponential(1).replace("e-", "e−").replace(/^-/, "−");
  return String(Number(x.toPrecision(3))).replace(/^-/, "−");
}

const signed = (x) => (isNumber(x) && x > 0 ? "+" : "") + number(x);
const whole = (x) => (isNumber(x) ? Math.round(x).toLocaleString("en") : number(x));
const percent = (x) => (isNumber(x) ? `${Number((100 * x).toFixed(1))} %` : number(x));

function clock(seconds) {
  if (!isNumber(seconds)) return number(seconds);
  if (seconds < 60) return `${number(seconds)} s`;
  const s = Math.round(seconds), h = Math.floor(s / 3600), m = Math.floor((s % 3600) / 60);
  return h ? `${h} h ${m} min` : `${m} min ${s % 60} s`;
}

function withUnit(x, unit) {
  if (!isNumber(x)) return number(x);
  if (unit === "fraction") return percent(x);
  if (unit === "s") return clock(x);
  return unit && unit !== "1" && unit !== "reward" ? `${number(x)} ${unit}` : number(x);
}

function when(seconds) {
  return new Date(1000 * seconds).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "short" });
}

const mean = (xs) => (xs.length ? xs.reduce((a, b) => a + b, 0) / xs.length : NaN);
const spread = (xs) => Math.sqrt(mean(xs.map((x) => (x - mean(xs)) ** 2)));
const plural = (n, noun) => `${whole(n)} ${noun}${n === 1 ? "" : "s"}`;
