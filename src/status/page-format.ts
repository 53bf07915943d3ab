/** The page's script, part 1 of 9: values as text. */
export const PAGE_FORMAT_SCRIPT: string = `
const NOTHING = '–';
const grouped = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });
const oneDigit = new Intl.NumberFormat('en', {
  minimumFractionDigits: 1,
  maximumFractionDigits: 1,
});
const compact = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 });
const threeDigits = new Intl.NumberFormat('en', { maximumSignificantDigits: 3 });

const isNumber = (value) => typeof value === 'number' && Number.isFinite(value);

function countText(value) {
  return isNumber(value) ? grouped.format(value) : NOTHING;
}

function rateText(perSecond) {
  if (!isNumber(perSecond)) return NOTHING;
  const isSmall = perSecond > 0 && perSecond < 10;
  return (isSmall ? oneDigit : grouped).format(perSecond) + ' /s';
}

function latencyText(ms) {
  if (!isNumber(ms)) return NOTHING;
  if (ms < 1) return threeDigits.format(ms * 1000) + ' µs';
  return ms < 1000 ? threeDigits.format(ms) + ' ms' : threeDigits.format(ms / 1000) + ' s';
}

function ageText(ms) {
  if (!isNumber(ms)) return 'none yet';
  if (ms < 1000) return grouped.format(ms) + ' ms ago';
  return ms < 60000 ? oneDigit.format(ms / 1000) + ' s ago' : durationText(ms / 1000) + ' ago';
}

function durationText(seconds) {
  if (!isNumber(seconds)) return NOTHING;
  const units = [['d', 86400], ['h', 3600], ['min', 60], ['s', 1]];
  const first = Math.min(3, units.findIndex((unit) => seconds >= unit[1]) >>> 0);
  let rest = Math.floor(seconds);
  return units.slice(first, first + 2).map(([name, size]) => {
    const amount = Math.floor(rest / size);
    rest -= amount * size;
    return [amount, name];
  }).filter(([amount], place) => place === 0 || amount > 0).flat().join(' ');
}

/** A scale's end: in steps, so that it does not move with each value. */
function roundedUp(value) {
  if (!(value > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return power * [1, 1.5, 2, 3, 4, 5, 6, 8, 10].find((step) => step * power >= value * 0.999999);
}

function bytesText(bytes) {
  if (!isNumber(bytes)) return NOTHING;
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let unit = 0;
  while (bytes >= 1024 && unit < units.length - 1) {
    bytes /= 1024;
    unit++;
  }
  return threeDigits.format(bytes) + ' ' + units[unit];
}

function settingText(value) {
  if (value === null || value === undefined) return 'not set';
  if (value === '') return '(empty)';
  if (Array.isArray(value)) return value.length > 0 ? value.join(', ') : '(none)';
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}
`;
