"""Scans: activation and gradient of every block, token by token.

>>> with coffer.open("run.mscan") as scan:
...     scan.stats(by="param")["param"]
['model.layers.0.mlp.up_proj']
"""

from __future__ import annotations

import json
import os
import threading
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, Optional, Tuple, Union

from . import _core
from ._arrays import data_frame
from ._open import as_input, pickled
from ._progress import Progress, callback
from ._transaction import Transaction

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

Path = Union[str, "os.PathLike[str]"]

__all__ = ["Scan", "Writer", "create", "append", "RECORD"]

RECORD = [("token_idx", "<u4"), ("param_id", "<u2"), ("block_idx", "<u2"), ("activation", "<u2"), ("grad_norm", "<u2")]
_BY = {"all": 0, "param": 1, "block": 2, "token": 3, "sequence": 4}
_METRICS = {"activation": 0, "grad_norm": 1}
_STATS = ("mean", "std", "min", "max", "zeros", "saturated")
_ALL = (1 << 64) - 1


class Scan:
    """The records of a scan as a structured array, with statistics and grids. Values are in real units unless raw."""

    def __init__(self, source: Any) -> None:
        self._source = source if isinstance(source, _core.Source) else _core.Source(as_input(source))
        self._scan = _core.Mscan(self._source)
        self._names = dict(self._scan.params())

    # ---- Facts ----

    @property
    def path(self) -> Optional[str]:
        return self._source.path

    @property
    def model_name(self) -> str:
        return self._scan.model_name

    @property
    def tokens(self) -> int:
        """The number of tokens of all sequences."""
        return self._scan.tokens

    @property
    def params(self) -> "Dict[int, str]":
        """The names of the parameters by id."""
        return dict(self._names)

    @property
    def sequences(self) -> "List[Dict[str, Any]]":
        keys = ("sequence_id", "num_tokens", "first_token", "source")
        return [dict(zip(keys, row)) for row in self._scan.sequences()]

    @property
    def metadata(self) -> Any:
        return json.loads(self._scan.metadata())

    def __len__(self) -> int:
        return len(self._scan)

    # ---- Records ----

    def __getitem__(self, key: Any) -> Any:
        """Records as a structured array with the raw integers; a view of the file where it is mapped."""
        import numpy as np

        if isinstance(key, str):
            return self[:][key]
        if isinstance(key, slice) and key.step in (None, 1):
            begin, end, _ = key.indices(len(self))
            count = max(end - begin, 0)
            if count == 0:
                return np.empty(0, RECORD)
            return np.frombuffer(self._scan.records(begin, count), RECORD)
        if isinstance(key, int):
            index = range(len(self))[key]
            return self[index:index + 1][0]
        return self[:][key]

    def values(self, metric: str = "activation", begin: int = 0, end: Optional[int] = None) -> "Array":
        """A metric of records [begin, end) in real units; raw integers as floats when the file has no scale."""
        import numpy as np

        records = self[begin:end]
        raw = records[metric].astype(np.float64)
        number = _METRICS[metric]
        scope = self._scan.scope(number)
        if scope == 1:
            scale, offset = self._scan.scale(number, 0, 0)
            return raw * scale + offset
        if scope == 2:
            scales = np.ones((65536, 2)) * (1.0, 0.0)
            for param in np.unique(records["param_id"]):
                scales[param] = self._scan.scale(number, int(param), 0) or (1.0, 0.0)
            picked = scales[records["param_id"]]
            return raw * picked[:, 0] + picked[:, 1]
        if scope == 3:
            starts = [row["first_token"] for row in self.sequences]
            which = np.searchsorted(starts, records["token_idx"], side="right") - 1
            rows = np.array([self._scan.scale(number, 0, i) or (1.0, 0.0) for i in range(len(starts))])
            return raw * rows[which, 0] + rows[which, 1]
        return raw

    # ---- Statistics ----

    def stats(self, by: str = "all", *, param: Optional[str] = None, tokens: "Tuple[int, Optional[int]]" = (0, None),
              sequence: Optional[int] = None, raw: bool = False, threads: int = 0, progress: Progress = None,
              frame: bool = False) -> Any:
        """Mean, deviation, range, zeros and saturated values of each group, as a dict of columns.

        by : "all", "param", "block", "token" or "sequence". param : a pattern of names. tokens : (begin, end). frame : a
        pandas.DataFrame instead.
        """
        import numpy as np

        if by not in _BY:
            raise ValueError(f"by is {by!r}; it can be {', '.join(_BY)}")
        with callback(progress, "stats") as step:
            rows, data = self._scan.stats(_BY[by], param, tokens[0], _ALL if tokens[1] is None else tokens[1],
                                          -1 if sequence is None else sequence, threads, step)
        whole = np.frombuffer(data, np.uint64).reshape(14, rows)
        real = np.frombuffer(data, np.float64).reshape(14, rows)
        result: "Dict[str, Any]" = {}
        if by == "param":
            result["param"] = [self._names.get(int(key), str(int(key))) for key in whole[0]]
        elif by != "all":
            result[by] = whole[0].astype(np.int64)
        result["count"] = whole[1].astype(np.int64)
        for metric, number in _METRICS.items():
            scale, offset = self._group_scales(number, by, whole[0], raw)
            for i, name in enumerate(_STATS):
                column = real[2 + number * 6 + i]
                if name in ("mean", "min", "max"):
                    column = column * scale + offset
                elif name == "std":
                    column = column * np.abs(scale)
                elif name in ("zeros", "saturated"):
                    column = column.astype(np.int64)
                result[f"{metric}_{name}"] = column
        return data_frame(result) if frame else result

    def _group_scales(self, metric: int, by: str, keys: "Array", raw: bool) -> "Tuple[Any, Any]":
        """The scale of each group; (1, 0) where the groups do not have one scale each."""
        import numpy as np

        scope = 0 if raw else self._scan.scope(metric)
        if scope == 1:
            return self._scan.scale(metric, 0, 0)
        if (scope, by) == (2, "param"):
            pairs = np.array([self._scan.scale(metric, int(key), 0) or (1.0, 0.0) for key in keys])
        elif (scope, by) == (3, "sequence"):
            pairs = np.array([self._scan.scale(metric, 0, int(key)) or (1.0, 0.0) for key in keys])
        elif scope == 0:
            return 1.0, 0.0
        else:
            raise ValueError("the groups mix values of several scales: group by param or sequence, or pass raw=True")
        return (pairs[:, 0], pairs[:, 1]) if len(pairs) else (1.0, 0.0)

    def scores(self, by: str = "param", *, scope: str = "global", param: Optional[str] = None,
               tokens: "Tuple[int, Optional[int]]" = (0, None), sequence: Optional[int] = None,
               threads: int = 0, frame: bool = False) -> Any:
        """z-scores as the first scanner defines them, and sps = z(activation) - z(grad_norm); scope: global or layer."""
        import numpy as np

        rows, data = self._scan.scores(_BY[by], {"global": 0, "layer": 1}[scope], param, tokens[0],
                                       _ALL if tokens[1] is None else tokens[1], -1 if sequence is None else sequence,
                                       threads)
        whole = np.frombuffer(data, np.uint64).reshape(6, rows)
        real = np.frombuffer(data, np.float64).reshape(6, rows)
        keys = [self._names.get(int(key), str(int(key))) for key in whole[0]] if by == "param" else whole[0].astype("i8")
        result = {by: keys, "count": whole[1].astype(np.int64), "z_activation": real[2], "z_grad_norm": real[3],
                  "sps": real[4], "integral_sps": real[5]}
        return data_frame(result) if frame else result

    def heatmap(self, rows: str = "block", metric: str = "activation", *, width: int = 1024, height: int = 512,
                tokens: "Tuple[int, Optional[int]]" = (0, None), param: Optional[str] = None, raw: bool = False,
                progress: Progress = None) -> "Array":
        """Mean values, rows ("param" or "block") down and tokens across; NaN for cells without records. Neighboring
        tokens and rows share a cell when there are more than width or height."""
        import numpy as np

        number = _METRICS[metric]
        if not raw and self._scan.scope(number) in (2, 3):
            raise ValueError("cells would mix values of several scales: pass raw=True, or use stats(by=\"param\")")
        with callback(progress, "heatmap") as step:
            found = self._scan.grid({"param": 0, "block": 1}[rows], number, width, height, tokens[0],
                                    _ALL if tokens[1] is None else tokens[1], 0, _ALL, param, step)
        grid = np.frombuffer(found[6], np.float64).reshape(found[0], found[1])
        if not raw and self._scan.scope(number) == 1:
            scale, offset = self._scan.scale(number, 0, 0)
            grid = grid * scale + offset
        return grid

    def matrix(self, rows: str = "param", cols: str = "token", metric: str = "activation") -> "Array":
        """The mean of every pair of row and column, as one array without sharing cells."""
        import numpy as np

        names = {"param": "param_id", "block": "block_idx", "token": "token_idx"}
        records = self[:]
        down = records[names[rows]].astype(np.int64)
        across = records[names[cols]].astype(np.int64)
        shape = (int(down.max()) + 1 if len(down) else 0, int(across.max()) + 1 if len(across) else 0)
        flat = down * max(shape[1], 1) + across
        size = shape[0] * shape[1]
        sums = np.bincount(flat, self.values(metric), size)
        counts = np.bincount(flat, minlength=size)
        with np.errstate(invalid="ignore"):
            return (sums / np.where(counts, counts, np.nan)).reshape(shape)

    # ---- Life ----

    @property
    def closed(self) -> bool:
        return self._scan.closed

    def close(self) -> None:
        self._scan.close()

    def __enter__(self) -> "Scan":
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __reduce__(self) -> Any:
        return pickled(self.path, "mscan", {})

    def __repr__(self) -> str:
        if self.closed:
            return "<closed Scan>"
        return (f"<Scan {self.path or 'in memory'}: {self.model_name or 'no model name'}, {len(self)} records of "
                f"{len(self._names)} parameters, {self.tokens} tokens>")

    def _repr_html_(self) -> str:
        from ._html import heat_picture

        mixed = self._scan.scope(_METRICS["activation"]) in (2, 3)
        return heat_picture(repr(self), self.heatmap(width=512, height=128, raw=mixed))


# ---- Writing ----

class Writer(Transaction):
    """Writes sequences of records. The file appears when the `with` block ends without an exception.

    >>> with coffer.mscan.create("new.mscan", model_name="tiny") as writer:
    ...     layer = writer.param("model.layers.0.mlp.up_proj")
    ...     records = np.zeros(2, coffer.mscan.RECORD)
    ...     records["token_idx"] = [0, 1]
    ...     writer.sequence(records, num_tokens=2, source="two tokens")
    """

    def __init__(self, path: Path, *, append: bool = False, overwrite: bool = False, model_name: str = "",
                 block_size: int = 0, activation: "Optional[Tuple[float, float]]" = None,
                 grad_norm: "Optional[Tuple[float, float]]" = None,
                 extra: "Optional[Mapping[str, Any]]" = None) -> None:
        self._lock = threading.Lock()
        text = None if extra is None else json.dumps(dict(extra))
        self._writer = _core.MscanWriter(os.fspath(path), append, overwrite, model_name, block_size, activation,
                                         grad_norm, text)

    def param(self, name: str) -> int:
        """The id of a parameter, which is added if it is new."""
        return self._writer.add_param(name)

    def sequence(self, records: Any, num_tokens: int, source: Optional[str] = None) -> None:
        """Adds a sequence; token_idx counts from its first token. Threads may share a writer."""
        with self._lock:
            self.begin(source)
            self.put(records)
            self.end(num_tokens)

    def begin(self, source: Optional[str] = None) -> None:
        self._writer.begin_sequence(source)

    def put(self, records: Any) -> None:
        """Adds records, an array of dtype RECORD, to the sequence that was begun."""
        import numpy as np

        self._writer.put_records(np.ascontiguousarray(records, RECORD).view("u1"))

    def end(self, num_tokens: int) -> None:
        self._writer.end_sequence(num_tokens)

    def commit(self) -> None:
        with self._lock:
            self._writer.commit()

    def discard(self) -> None:
        self._writer.discard()


def create(path: Path, **options: Any) -> Writer:
    """A writer for a new scan."""
    return Writer(path, **options)


def append(path: Path) -> Writer:
    """A writer that appends sequences to a scan."""
    return Writer(path, append=True)
