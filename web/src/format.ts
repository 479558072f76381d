/** Numbers and texts for people. */

const SIZES = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

export function bytes(value: number): string {
  let scaled = Math.abs(value);
  let unit = 0;
  while (scaled >= 1024 && unit < SIZES.length - 1) {
    scaled /= 1024;
    unit++;
  }
  const digits = unit === 0 || scaled >= 100 || Number.isInteger(scaled) ? 0 : scaled >= 10 ? 1 : 2;
  return `${value < 0 ? "−" : ""}${scaled.toFixed(digits)} ${SIZES[unit]}`;
}

export function count(value: number): string {
  return Math.round(value).toLocaleString("en-US").replace(/,/g, "\u202f").replace(/^-/, "−");
}

/** "1 sample", "2 samples". */
export function counted(value: number, word: string): string {
  return `${count(value)} ${word}${value === 1 ? "" : "s"}`;
}

export function signed(text: string, value: number): string {
  return value > 0 ? `+${text}` : text;
}

export function duration(microseconds: number): string {
  if (microseconds < 1000) return `${trim(microseconds, 3)} µs`;
  if (microseconds < 1e6) return `${trim(microseconds / 1000, 3)} ms`;
  if (microseconds < 120e6) return `${trim(microseconds / 1e6, 4)} s`;
  return `${trim(microseconds / 60e6, 4)} min`;
}

export function trim(value: number, digits: number): string {
  const rounded = Number(value.toPrecision(digits));
  const tiny = rounded !== 0 && Math.abs(rounded) < 1e-3;
  return (tiny ? rounded.toExponential().replace("e-", "e−") : String(rounded)).replace(/^-/, "−");
}

export function number(value: number): string {
  if (Number.isNaN(value)) return "NaN";
  if (Number.isSafeInteger(value)) return count(value);
  return trim(value, 6);
}

export function percent(part: number, whole: number): string {
  if (!(whole > 0)) return "";
  const share = (100 * part) / whole;
  return share >= 99.95 ? "100 %" : share >= 10 ? `${share.toFixed(1)} %` : share >= 0.01 ? `${share.toFixed(2)} %` : "< 0.01 %";
}

/** By the unit that the summary gives for a path. */
export function withUnit(value: number, unit: string | undefined): string {
  switch (unit) {
    case "bytes":
      return Number.isInteger(value) && value >= 1024 ? `${bytes(value)} (${count(value)})` : bytes(value);
    case "microseconds":
      return duration(value);
    case "flags":
      return `0x${value.toString(16)}`;
    default:
      return number(value);
  }
}

/** Text of a file without characters that reorder, hide or break what follows them. */
export function plain(text: string): string {
  // eslint-disable-next-line no-control-regex
  return text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g, (char) => {
    const code = char.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0");
    return `‹U+${code}›`;
  });
}

/** A file name for a shell, quoted where it must be. */
export function shell(text: string): string {
  const safe = plain(text);
  return /^[A-Za-z0-9_./+:@%=,-]+$/.test(safe) ? safe : `'${safe.replace(/'/g, "'\\''")}'`;
}

export function baseName(path: string): string {
  const parts = path.split("/").filter((part) => part !== "");
  return parts[parts.length - 1] ?? path;
}
