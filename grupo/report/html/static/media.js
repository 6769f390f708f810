/* Images, videos and audio of messages: journals have references, the page or its server the files. */

const MEDIA_URL = /^data:(image\/(apng|bmp|gif|jpeg|png|webp)|audio\/wav);base64,/;
const MEDIA_KINDS = ["image", "video", "audio"];
const MEDIA = new Map();  // promises of addresses, by run and digest

/* The reference of a part, or undefined. */
function referenceOfPart(part) {
  const reference = MEDIA_KINDS.includes(part?.type) ? part[part.type] : undefined;
  return /^[0-9a-f]{32}$/.test(reference?.digest) ? reference : undefined;
}

async function loadMedia(run, digest) {
  if (!DATA.live) return $(`#media-${run}-${digest}`)?.textContent ?? "";
  const answer = await fetch(`run/${run}/media/${digest}`);
  return answer.ok ? (await answer.json()).url : "";
}

function mediaUrl(run, digest) {
  const key = `${run} ${digest}`;
  if (!MEDIA.has(key)) MEDIA.set(key, loadMedia(run, digest).catch(() => { MEDIA.delete(key); return ""; }));
  return MEDIA.get(key);
}

/* A picture, a moving picture or a player; a note if the file is missing. */
function mediaOf(reference, kind) {
  const label = `${kind} ${reference.digest.slice(0, 8)}`;
  const element = kind === "audio" ? el("audio", { class: "sound", controls: true, "aria-label": label })
    : el("img", { class: `sample ${kind}`, alt: label });
  mediaUrl(VIEW.run, reference.digest).then((url) => {
    if (MEDIA_URL.test(url)) element.src = url;
    else element.replaceWith(el("span", { class: "bad small" }, `${label}: the file is missing`));
  });
  return element;
}
