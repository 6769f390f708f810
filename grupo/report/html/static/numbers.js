/* Formatting of numbers and units. */

const isNumber = (x) => typeof x === "number" && Number.isFinite(x);

/* A number with this many significant digits; integers from 10,000 on in full. */
function number(x, digits = 3) {
  if (typeof x === "string") return x;
  if (!isNumber(x)) return "–";
  if (x === 0) return "0";
  if (Math.abs(x) >= 10000) return x.toLocaleString("en", { maximumFractionDigits: Math.max(0, digits - 5) });
  if (Math.abs(x) < 0.001) return x.toExponential(digits - 2).replace("e-", "e−").replace(/^-/, "−");
  return String(Number(x.toPrecision(digits))).replace(/^-/, "−");
}

const signed = (x) => (isNumber(x) && x > 0 ? "+" : "") + number(x);
const whole = (x) => (isNumber(x) ? Math.round(x).toLocaleString("en") : number(x));
const percent = (x, digits = 3) => (isNumber(x) ? `${Number((100 * x).toFixed(digits - 2))} %` : number(x));
const compact = (x, digits = 3) => x.toLocaleString("en", { notation: "compact", maximumSignificantDigits: digits });

/* Labels of an axis, with as few digits as tell them apart. */
function distinctLabels(values, format) {
  const labels = (digits) => values.map((x) => format(x, digits));
  for (let digits = 3; digits < 15; digits += 1) {
    if (new Set(labels(digits)).size === values.length) return labels(digits);
  }
  return labels(15);
}

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
