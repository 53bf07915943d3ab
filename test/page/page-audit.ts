/** What a page is judged by, as programs that run inside it: contrast, and what the keyboard reaches. */

/**
 * Every visible text, line of a curve and mark whose colour stands too little out from what lies
 * behind it: 4.5 to 1 for text, 3 to 1 for large text and lines. Nothing here is half transparent.
 */
export const CONTRAST_FAULTS = `(() => {
  const rgb = (color) => (color.match(/[\\d.]+/g) ?? []).map(Number);
  const luminance = (color) => {
    const [r, g, b] = rgb(color).slice(0, 3).map((part) => {
      const share = part / 255;
      return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const color = getComputedStyle(at).backgroundColor;
      if (rgb(color)[3] !== 0) return color;
    }
    return 'rgb(255, 255, 255)';
  };
  const contrast = (a, b) => {
    const [high, low] = [luminance(a), luminance(b)].sort((x, y) => y - x);
    return (high + 0.05) / (low + 0.05);
  };
  const faults = new Set();
  const judge = (element, color, least, what) => {
    const ratio = contrast(color, behind(element));
    if (ratio < least) faults.add(what + ': ' + ratio.toFixed(2) + ' of ' + least);
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement;
    if (node.data.trim() === '' || element.closest('script') || !element.checkVisibility()) continue;
    const { color, fontSize, fontWeight } = getComputedStyle(element);
    const size = parseFloat(fontSize);
    const isLarge = size >= 24 || (size >= 18.66 && Number(fontWeight) >= 700);
    judge(element, color, isLarge ? 3 : 4.5, element.className + ' ' + node.data.trim());
  }
  for (const line of document.querySelectorAll('polyline')) {
    if (line.checkVisibility()) judge(line, getComputedStyle(line).stroke, 3, 'line');
  }
  return [...faults];
})()`;

/** A name for each element that takes the focus, in the order of the document. */
export const FOCUSABLE = `(() => {
  window.nameOf = (element) => element.tagName + ' ' + (element.textContent ?? '').trim();
  return [...document.querySelectorAll('a[href], button, summary, input, [tabindex="0"]')]
    .filter((element) => element.checkVisibility())
    .map(window.nameOf);
})()`;

/** The focused element's name; with a note where nothing shows that it is focused. */
export const FOCUSED = `(() => {
  const element = document.activeElement;
  if (!element || element === document.body) return null;
  const { outlineStyle, outlineWidth } = getComputedStyle(element);
  const isShown = outlineStyle !== 'none' && parseFloat(outlineWidth) >= 2;
  return window.nameOf(element) + (isShown ? '' : ' (the focus is not visible)');
})()`;
