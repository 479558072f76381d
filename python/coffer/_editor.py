"""Changes to the metadata of an .mcf file: all of them in one commit."""

from __future__ import annotations

import copy
import json
import os
from collections.abc import MutableMapping
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterator, Optional, Union

from . import _core
from ._progress import Progress, callback
from ._transaction import Transaction

if TYPE_CHECKING:
    from .mcf import Model

_ABSENT = object()
_FIELDS = ("model_name", "base_model", "arch", "vocab_size", "hidden_size", "layer_count", "head_count", "head_count_kv",
           "context_length", "train_context", "rope_type", "rope_freq_base", "rope_scale")


class Changes(MutableMapping):  # type: ignore[type-arg]
    """The values of a file and the changes to them: assign to change, `del` to remove."""

    def __init__(self, names: "list[str]", read: "Callable[[str], Any]", write: "Callable[[str, Any], None]",
                 missing: str) -> None:
        self._names, self._read, self._write, self._missing = names, read, write, missing
        self._values: "Dict[str, Any]" = {}

    def __getitem__(self, name: str) -> Any:
        if name in self._values:
            return self._values[name]
        if name not in self._names:
            raise KeyError(self._missing.format(name=name))
        return self._read(name)

    def __setitem__(self, name: str, value: Any) -> None:
        self._write(name, value)
        self._values[name] = value
        if name not in self._names:
            self._names.append(name)

    def __delitem__(self, name: str) -> None:
        if name not in self._names:
            raise KeyError(self._missing.format(name=name))
        self._write(name, None)
        self._names.remove(name)
        self._values.pop(name, None)

    def __iter__(self) -> "Iterator[str]":
        return iter(list(self._names))

    def __len__(self) -> int:
        return len(self._names)

    def __repr__(self) -> str:
        return f"<{', '.join(self._names) or 'empty'}>"


class Editor(Transaction):
    """Changes the metadata of an .mcf file. The end of the `with` block writes all changes in one atomic commit; an
    exception leaves the file as it was. No other program can write to the file meanwhile.

    >>> with coffer.mcf.edit("model.mcf") as edit:
    ...     edit.config = {"model_type": "llama"}
    ...     edit.config["hidden_size"] = 3
    ...     edit.info["kv.general.license"] = "MIT"
    ...     edit.files["README.md"] = "# A model"
    >>> coffer.open("model.mcf").config["hidden_size"]
    3
    """

    def __init__(self, path: "Union[str, os.PathLike[str]]") -> None:
        from .mcf import Model

        self.path = os.fspath(path)
        self._editor = _core.McfEditor(self.path)
        try:
            self._model = Model(self.path)
        except BaseException:
            self._editor.discard()
            raise
        self._parsed: "Dict[str, Any]" = {}
        self._stored: "Dict[str, Any]" = {}
        model, editor = self._model, self._editor
        self.sections = Changes(list(model.sections), model.section, self._set_section, "the file has no section {name}")
        self.files = Changes(list(model.files), model.file, lambda name, value: editor.set_file(name, _bytes(value)),
                             "the file has no {name} among its other files")
        self.info = Changes(list(_facts(model)), lambda name: _facts(model)[name], self._set_info,
                            "ModelInfo has no {name}; keys of its table begin with kv.")

    # ---- JSON sections ----

    @property
    def config(self) -> Any:
        """config.json, parsed: change it in place or assign to it; None removes it."""
        return self._json("config.json")

    @config.setter
    def config(self, value: Any) -> None:
        self._parsed["config.json"] = value

    @property
    def tokenizer(self) -> Any:
        """tokenizer.json, parsed: change it in place or assign to it; None removes it."""
        return self._json("tokenizer.json")

    @tokenizer.setter
    def tokenizer(self, value: Any) -> None:
        self._parsed["tokenizer.json"] = value

    def _json(self, name: str) -> Any:
        if name not in self._parsed:
            self._stored[name] = json.loads(self._model.section(name))
            self._parsed[name] = copy.deepcopy(self._stored[name])
        return self._parsed[name]

    def _set_section(self, name: str, value: Any) -> None:
        if isinstance(value, (dict, list)):
            value = json.dumps(value, indent=2, ensure_ascii=False)
        self._editor.set_section(name, _bytes(value))
        self._parsed.pop(name, None)
        self._stored.pop(name, None)

    # ---- ModelInfo ----

    def _set_info(self, name: str, value: Any) -> None:
        kind: "Optional[str]" = None
        if name.startswith("kv.") and value is not None:
            if isinstance(value, bool) or not isinstance(value, (int, float, str)):
                raise TypeError(f"{name}: a value is a string, a float or an integer, not {type(value).__name__}")
            kind = "u32" if isinstance(value, int) else "f32" if isinstance(value, float) else "string"
        self._editor.set_info(name, None if value is None else str(value), kind)

    # ---- The end ----

    def checksums(self, *, threads: int = 0, progress: Progress = None) -> None:
        """Adds checksums of all tensors, or computes them again after a check of the old ones."""
        with callback(progress, "checksums") as step:
            self._editor.set_checksums(threads, step)

    def commit(self) -> None:
        """Writes all changes; nothing when they equal what the file has."""
        for name, value in self._parsed.items():
            if value is None:
                if name in self.sections:
                    self._editor.set_section(name, None)
            elif value != self._stored.get(name, _ABSENT):
                self._editor.set_section(name, _bytes(json.dumps(value, indent=2, ensure_ascii=False)))
        self._model.close()
        self._editor.commit()

    def discard(self) -> None:
        """Leaves the file as it was."""
        self._model.close()
        self._editor.discard()

    def __repr__(self) -> str:
        return f"<Editor {self.path}>"


def _bytes(value: Any) -> "Optional[bytes]":
    return value.encode() if isinstance(value, str) else None if value is None else bytes(value)


def _facts(model: "Model") -> "Dict[str, Any]":
    """ModelInfo as the editor names it: fields, and kv.KEY for the keys of its table."""
    return {name if name in _FIELDS else f"kv.{name}": value for name, value in model.metadata.items()}


def keys(model: "Model") -> "Dict[str, str]":
    """The keys that the writer of an .mcf file gave, as text, without the fields that every file has."""
    return {name: str(value) for name, value in model.metadata.items() if name not in _FIELDS}
