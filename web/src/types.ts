/** The chunk "summary": what `coffer info --json` and `coffer check --json` print, and what a page needs besides. */
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
export type JsonMap = { [key: string]: Json };

export interface Finding {
  code: string;
  severity: "note" | "warning" | "error";
  offset: number | null;
  text: string;
}

export interface FileSummary {
  name: string;
  title: string;
  info: JsonMap;
  units: Record<string, string>;
  details: string[];
  /** Missing while a server checks the file. */
  findings?: Finding[];
  not_verified?: string | null;
  errors?: number;
  warnings?: number;
  error?: string;
}

export interface Summary {
  version: number;
  coffer: string;
  page: string;
  files: FileSummary[];
  diff?: JsonMap;
  diff_error?: string;
  diff_units?: Record<string, string>;
  view_error?: string;
  view: JsonMap;
  notes: string[];
}
