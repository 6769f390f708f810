/* Texts whose contrast with their background is below WCAG's 4.5 : 1. */
const channel = (c) => (c <= 0.04045 * 255 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4);
const luminance = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
const colour = (text) => text.match(/[\d.]+/g).map(Number);

function backgroundOf(element) {
  for (let e = element; e; e = e.parentElement) {
    const background = colour(getComputedStyle(e).backgroundColor);
    if (background.length < 4 || background[3] === 1) return background;
  }
  return [255, 255, 255];
}

function contrast(element) {
  const luminances = [colour(getComputedStyle(element).color), backgroundOf(element)].map(luminance);
  return (Math.max(...luminances) + 0.05) / (Math.min(...luminances) + 0.05);
}

const hasText = (e) => [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
return [...document.querySelectorAll("main *, header *")]
  .filter((e) => e.checkVisibility() && hasText(e) && contrast(e) < 4.5)
  .map((e) => [contrast(e), e.className, e.textContent.slice(0, 30)]);
