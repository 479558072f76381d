"""Memory traces: every allocation of a program, with stacks.

>>> with coffer.open("run.mlyze") as trace:
...     trace.totals()["peak_bytes"]
96
"""

from __future__ import annotations

import json
import os
import tempfile
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Tuple, Union

from . import _core
from ._arrays import data_frame
from ._open import as_input, pickled
from ._progress import Progress, callback

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

__all__ = ["Trace", "TYPES"]

TYPES = {0: "alloc", 1: "free", 2: "gc", 3: "marker", 4: "object", 5: "reference", 6: "snapshot", 7: "thread", 8: "rss"}
_MEASURES = {"peak": 0, "live": 1, "total": 2, "temporary": 3}
_ROW = ("stack_id", "allocs", "bytes", "peak_allocs", "peak_bytes", "live_allocs", "live_bytes", "oldest_us",
        "newest_us", "temporary_allocs", "temporary_bytes", "growth_bytes_per_s", "growth_fit")
_ALL = (1 << 64) - 1
Moment = Union[int, str, None]


class Trace:
    """A trace. Files of heaptrack and other profilers are converted into a temporary trace first; notes lists what that
    trace does not keep."""

    def __init__(self, source: Any) -> None:
        given = source if isinstance(source, _core.Source) else _core.Source(as_input(source))
        self._path = given.path
        self.notes: "List[str]" = []
        self._source = given if given.identify() == "mlyze" else _converted(given, self.notes)
        self._trace = _core.Mlyze(self._source)

    # ---- Facts ----

    @property
    def path(self) -> Optional[str]:
        return self._path

    @property
    def metadata(self) -> Any:
        return json.loads(self._trace.metadata())

    def __len__(self) -> int:
        """The number of events."""
        return self._trace.event_count()

    def stack(self, stack_id: int) -> "List[Tuple[Optional[str], Optional[str], int]]":
        """The frames of a stack, outermost first: (function, file, line)."""
        return self._trace.stack(stack_id)

    def _event(self, moment: Moment, default: int) -> int:
        if moment is None:
            return default
        return moment if isinstance(moment, int) else self._trace.moment(moment)

    # ---- Events ----

    def events(self, begin: Moment = None, end: Moment = None) -> "Dict[str, Array]":
        """Events as columns: time (us), address, size, id, thread, type. begin, end : event numbers, times ("1.5s")
        or markers."""
        import numpy as np

        first, last = self._event(begin, 0), self._event(end, _ALL)
        columns: "Dict[str, List[Array]]" = {name: [] for name in ("time", "address", "size", "id", "thread", "type")}
        kinds = {"thread": "<u2", "type": "u1"}
        for index in range(self._trace.block_count()):
            start, count, *raw = self._trace.block(index)
            if start + count <= first or start >= last:
                continue
            part = slice(max(first - start, 0), min(count, last - start))
            for (name, list_), data in zip(columns.items(), raw):
                list_.append(np.frombuffer(data, kinds.get(name, "<u8"))[part])
        return {name: np.concatenate(parts) if parts else np.empty(0, kinds.get(name, "<u8"))
                for name, parts in columns.items()}

    # ---- Answers ----

    def _stats(self, window: "Tuple[Moment, Moment]", growth: int, measure: int, progress: Progress) -> Any:
        with callback(progress, "trace") as step:
            return self._trace.stats(self._event(window[0], 0), self._event(window[1], _ALL), growth, 0, measure, step)

    def totals(self, window: "Tuple[Moment, Moment]" = (None, None)) -> "Dict[str, int]":
        """Numbers of the whole trace: events, peak_bytes, live_bytes_at_end, lost_events."""
        return self._stats(window, 0, -1, None)[0]

    def stacks(self, window: "Tuple[Moment, Moment]" = (None, None), *, growth_windows: int = 0,
               progress: Progress = None, frame: bool = False) -> Any:
        """One dict for each stack that allocated. frame : a pandas.DataFrame instead, here and in the other answers."""
        rows = self._stats(window, growth_windows, -1, progress)[1]
        return _table([dict(zip(_ROW, row), stack=self._trace.stack(row[0])) for row in rows], frame, (*_ROW, "stack"))

    def _largest(self, name: str, limit: int, window: "Tuple[Moment, Moment]", frame: bool) -> Any:
        column = f"{name}_bytes"
        rows = [row for row in self.stacks(window) if row[column]]
        return _table(sorted(rows, key=lambda row: -row[column])[:limit], frame, (*_ROW, "stack"))

    def peak(self, limit: int = 20, window: "Tuple[Moment, Moment]" = (None, None), *, frame: bool = False) -> Any:
        """The stacks that held memory when most was live, the largest first."""
        return self._largest("peak", limit, window, frame)

    def leaks(self, limit: int = 20, window: "Tuple[Moment, Moment]" = (None, None), *, frame: bool = False) -> Any:
        """The stacks whose memory was not freed at the end."""
        return self._largest("live", limit, window, frame)

    def temporaries(self, limit: int = 20, window: "Tuple[Moment, Moment]" = (None, None), *, frame: bool = False) -> Any:
        """The stacks whose memory was freed right after it was allocated."""
        return self._largest("temporary", limit, window, frame)

    def flame(self, measure: str = "peak", window: "Tuple[Moment, Moment]" = (None, None), *, frame: bool = False) -> Any:
        """The tree of a flame graph: {"name", "file", "line", "bytes", "allocs", "children"}. frame : one row for each
        node, with its depth and the row of its parent."""
        if measure not in _MEASURES:
            raise ValueError(f"measure is {measure!r}; it can be {', '.join(_MEASURES)}")
        tree = self._stats(window, 0, _MEASURES[measure], None)[2]
        return _table(_flat(tree), True, ("depth", "parent", "name", "file", "line", "bytes", "allocs")) if frame else tree

    def timeline(self, width: int = 512, *, begin_us: int = 0, end_us: Optional[int] = None, exact: bool = False,
                 progress: Progress = None, frame: bool = False) -> Any:
        """Live memory over time, as columns."""
        import numpy as np

        with callback(progress, "timeline") as step:
            _, count, data = self._trace.timeline(width, begin_us, _ALL if end_us is None else end_us, exact, step)
        table = np.frombuffer(data, np.uint64).reshape(5, count)
        columns = dict(zip(("time_us", "live_bytes", "live_allocs", "high_bytes", "events"), table))
        return _table(columns, True, tuple(columns)) if frame else columns

    def diff(self, other: "Trace", measure: str = "peak", *, max_shown: int = 20, progress: Progress = None,
             frame: bool = False) -> Any:
        """What grew, shrank, is new or gone in another trace. frame : one row for each of these stacks, with its kind."""
        if measure not in _MEASURES:
            raise ValueError(f"measure is {measure!r}; it can be {', '.join(_MEASURES)}")
        with callback(progress, "diff") as step:
            found = self._trace.diff(other._trace, _MEASURES[measure], max_shown, step)
        if not frame:
            return found
        rows = [{"kind": kind, **row} for kind in ("grew", "shrank", "new", "gone") for row in found[kind]]
        return _table(rows, True, ("kind", "change_bytes", "bytes_a", "bytes_b", "allocs_a", "allocs_b", "frames"))

    # ---- Life ----

    @property
    def closed(self) -> bool:
        return self._trace.closed

    def close(self) -> None:
        self._trace.close()

    def __enter__(self) -> "Trace":
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __reduce__(self) -> Any:
        return pickled(self.path, "mlyze", {})

    def __repr__(self) -> str:
        if self.closed:
            return "<closed Trace>"
        totals = self.totals()
        return (f"<Trace {self.path or 'in memory'}: {totals['events']} events, {totals['peak_bytes']} bytes at the "
                f"peak, {totals['live_bytes_at_end']} live at the end>")

    def _repr_html_(self) -> str:
        from ._html import timeline_picture

        return timeline_picture(repr(self), self.timeline(256))


def _table(rows: Any, frame: bool, columns: "Tuple[str, ...]") -> Any:
    return data_frame(rows, columns) if frame else rows


def _flat(tree: "Dict[str, Any]") -> "List[Dict[str, Any]]":
    """The nodes of a flame graph, parents before their children."""
    rows: "List[Dict[str, Any]]" = []
    waiting = [(tree, -1, 0)]
    while waiting:
        node, parent, depth = waiting.pop()
        rows.append({"depth": depth, "parent": parent, **{key: node[key] for key in node if key != "children"}})
        waiting.extend((child, len(rows) - 1, depth + 1) for child in reversed(node["children"]))
    return rows


def _converted(source: Any, notes: "List[str]") -> Any:
    """A trace of ours with the content of another profiler's file. Nothing is left of the temporary file once it is open,
    and what a killed process left is removed by the next call."""
    found, made = _core.convert_temporary(source, "mlyze", os.path.join(tempfile.gettempdir(), "coffer-trace.mlyze"))
    notes.extend(text for _, _, _, text in found[0])
    return made
