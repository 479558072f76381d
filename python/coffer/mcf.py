"""Models: named tensors in mcf, safetensors, GGUF, npy and npz files, and Hugging Face folders.

>>> with coffer.open("model.mcf") as model:
...     model["embed"]
array([[ 0. ,  0.5,  1. ],
       [ 1.5,  2. , -1. ]], dtype=float32)
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterable, Iterator, List, Optional, Sequence, Tuple, Union

from . import _arrays, _core
from ._editor import Editor, keys as _keys
from ._open import pickled
from ._progress import Progress, callback

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

Path = Union[str, "os.PathLike[str]"]

__all__ = ["Model", "QuantTensor", "Editor", "edit", "load_file", "save_file", "safe_open", "pack", "unpack", "quantize"]

_METHODS = {"fit": 0, "absmax": 1, "exact": 2}
_ACCESS = {"auto": 0, "mmap": 1, "read": 2, "direct": 3, "copy": 4}


class QuantTensor:
    """A quantized tensor: it is decoded when asked for.

    >>> with coffer.open("k4.mcf") as model:
    ...     model["head"].dequantize().shape
    (2, 256)
    """

    def __init__(self, model: "Model", index: int, dtype: str, shape: "Tuple[int, ...]", size: int) -> None:
        self._model, self._index = model, index
        self.quant_type, self.shape, self.nbytes = dtype, shape, size

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        count = 1
        for dim in self.shape:
            count *= dim
        return count

    @property
    def raw(self) -> "Array":
        """The stored bytes, as an array of uint8."""
        return self._model._bytes(self._index, self.nbytes)

    def dequantize(self, dtype: Any = "f32", out: "Optional[Array]" = None) -> "Array":
        """All elements as floats. out : an array to fill instead of a new one."""
        return self._model._decode(self._index, self.shape, dtype, out, 0, self.size)

    def rows(self, begin: int, end: int, dtype: Any = "f32", out: "Optional[Array]" = None) -> "Array":
        """Rows [begin, end) as floats; only their bytes are read."""
        begin, end, _ = slice(begin, end).indices(self.shape[0])
        width = self.size // self.shape[0] if self.shape[0] else 0
        count = max(end - begin, 0)
        return self._model._decode(self._index, (count, *self.shape[1:]), dtype, out, begin * width, count * width)

    def __array__(self, dtype: Any = None, copy: Optional[bool] = None) -> "Array":
        if copy is False:
            raise ValueError("a quantized tensor is decoded into new memory; copy=False is not possible")
        return self.dequantize("f32" if dtype is None else dtype)

    def __dlpack__(self, **options: Any) -> Any:
        """The decoded elements: torch.from_dlpack(model["w"]) is a float32 tensor."""
        return self.dequantize().__dlpack__(**options)

    def __dlpack_device__(self) -> "Tuple[int, int]":
        return 1, 0  # kDLCPU

    def __getitem__(self, key: Any) -> "Array":
        if isinstance(key, slice) and key.step in (None, 1):
            return self.rows(*key.indices(self.shape[0])[:2])
        if isinstance(key, int):
            row = range(self.shape[0])[key]
            return self.rows(row, row + 1)[0]
        return self.dequantize()[key]

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        return f"<QuantTensor {self.quant_type}{list(self.shape)}, {self.nbytes} bytes>"


class Model(Mapping):  # type: ignore[type-arg]
    """A mapping of names to tensors: read-only arrays over the file for plain types, QuantTensor for quantized ones.

    Arrays keep the file's memory alive: closing the model is safe at any time. verify : compare each tensor of an .mcf
    file with its checksums when it is first asked for; damage raises ChecksumError.
    """

    def __init__(self, path: Any, *, access: str = "auto", verify: bool = True) -> None:
        self._options: "Dict[str, Any]" = {"access": access} if access != "auto" else {}
        if not verify:
            self._options["verify"] = False
        self._verified: "set[int]" = set()
        self._source = path if isinstance(path, _core.Source) else None
        given = self._source if self._source is not None else os.fspath(path)
        self._tensors = _core.Tensors(given, _ACCESS[access])
        self._path = self._source.path if self._source is not None else given
        self._sections: "Optional[_core.Mcf]" = None

    # ---- The mapping ----

    def __getitem__(self, name: str) -> "Union[Array, QuantTensor]":
        return self._at(self._tensors.find(name))

    def _at(self, index: int) -> "Union[Array, QuantTensor]":
        _, dtype, shape, size, _, _, _ = self._tensors.info(index)
        kind = _arrays.dtype_of(dtype)
        if kind is None:
            return QuantTensor(self, index, dtype, shape, size)
        view = self._tensors.view(index)
        if view is not None:
            self._verify(index)
            return _arrays.over(view, kind, shape)
        out = _arrays.output(None, shape, kind)
        if size:
            self._tensors.read(index, out.view("u1").reshape(-1) if out.ndim else out.reshape(1).view("u1"), 0)
        out.flags.writeable = False
        return out

    def prefetch(self, names: "Optional[Iterable[str]]" = None) -> None:
        """Says which tensors will be read soon (default: all), so that a remote file sends them ahead, and nothing else."""
        chosen = range(len(self)) if names is None else map(self._tensors.find, names)
        self._tensors.prefetch(list(chosen))

    def _read_all(self, read: "Callable[[str], Any]") -> "Dict[str, Any]":
        """read(name) of every tensor, in the order of the file, which a remote one sends."""
        self.prefetch()
        places = {name: self._tensors.info(index)[5:] for index, name in enumerate(self)}
        found = {name: read(name) for name in sorted(places, key=lambda name: (places[name][0] or "", places[name][1] or 0))}
        return {name: found[name] for name in places}

    def _verify(self, index: int) -> None:
        if index not in self._verified and self._options.get("verify", True):
            self._tensors.verify(index)
            self._verified.add(index)

    def __iter__(self) -> Iterator[str]:
        return iter(self._tensors.names())

    def __len__(self) -> int:
        return len(self._tensors)

    def __contains__(self, name: object) -> bool:
        try:
            self._tensors.find(name)  # type: ignore[arg-type]
        except (KeyError, TypeError):
            return False
        return True

    # ---- Facts ----

    @property
    def path(self) -> Optional[str]:
        return self._path

    @property
    def kind(self) -> str:
        """The kind of file: "mcf", "safetensors", "gguf", "npz"."""
        return self._tensors.kind

    @property
    def metadata(self) -> "Dict[str, Any]":
        """The metadata of the file: ModelInfo, the keys of GGUF, __metadata__ of safetensors."""
        return self._tensors.metadata()

    def tensor_info(self, name: str) -> "Dict[str, Any]":
        """Type, shape, bytes and place of a tensor, without reading it."""
        found, dtype, shape, size, elements, file, offset = self._tensors.info(self._tensors.find(name))
        return {"name": found, "dtype": dtype, "shape": shape, "bytes": size, "elements": elements, "file": file,
                "offset": offset}

    def rows(self, name: str, begin: int, end: int, dtype: Any = None) -> "Array":
        """Rows [begin, end) of a tensor; only their bytes are read. dtype : the type of decoded elements (f32)."""
        tensor = self[name]
        if isinstance(tensor, QuantTensor):
            return tensor.rows(begin, end, "f32" if dtype is None else dtype)
        part = tensor[begin:end]
        return part if dtype is None else part.astype(_arrays.dtype_of(_arrays.name_of(dtype)))

    def raw(self, name: str) -> "Array":
        """The stored bytes of a tensor, as an array of uint8."""
        index = self._tensors.find(name)
        return self._bytes(index, self._tensors.info(index)[3])

    def stats(self, include: Optional[str] = None, exclude: Optional[str] = None, *, threads: int = 0,
              progress: Progress = None) -> "List[Dict[str, Any]]":
        """Minimum, maximum, mean, deviation, NaNs and a histogram of each tensor."""
        with callback(progress, "stats") as step:
            return self._tensors.stats(include, exclude, threads, step)

    # ---- Sections of an mcf file ----

    def _mcf(self) -> "_core.Mcf":
        if self._sections is None:
            if self.kind != "mcf":
                raise KeyError(f"a {self.kind} file has no sections")
            if self._source is None:
                self._source = _core.Source(self._path)
            self._sections = _core.Mcf(self._source)
        return self._sections

    @property
    def sections(self) -> "Dict[str, int]":
        """The sections of an mcf file by name, with their bytes."""
        return {name or f"0x{number:08x}": size for number, name, _, _, size in self._mcf().sections()}

    def section(self, name: str) -> bytes:
        """The bytes of a section: "config.json", "tokenizer.json"."""
        mcf = self._mcf()
        for number, found, _, _, _ in mcf.sections():
            if name in (found, f"0x{number:08x}"):
                return mcf.read_section(number)
        raise KeyError(name)

    @property
    def files(self) -> "Dict[str, int]":
        """The other files of the model's folder by name, with their bytes."""
        return dict(self._mcf().files())

    def file(self, name: str) -> bytes:
        """The bytes of one of them."""
        return self._mcf().read_file(name)

    def unpack(self, folder: Path, *, overwrite: bool = False, progress: Progress = None) -> "Dict[str, Any]":
        """Restores the folder that was packed."""
        if self._path is None:
            raise ValueError("a model in memory cannot be unpacked")
        return unpack(self._path, folder, overwrite=overwrite, progress=progress)

    @property
    def config(self) -> Any:
        """config.json, parsed."""
        return json.loads(self.section("config.json"))

    @property
    def tokenizer(self) -> Any:
        """tokenizer.json, parsed."""
        return json.loads(self.section("tokenizer.json"))

    def quality(self, name: str) -> "Optional[Dict[str, Any]]":
        """Clip bounds and error of a quantized tensor of an mcf file; None for a plain one."""
        row = self._mcf().quant(name)
        if row is None:
            return None
        return dict(zip(("activations", "min_clip", "max_clip", "snr_db", "max_error"), row))

    # ---- Reading ----

    def _bytes(self, index: int, size: int) -> "Array":
        view = self._tensors.view(index)
        if view is not None:
            return _arrays.over(view, _arrays.dtype_of("u8"), (size,))  # type: ignore[arg-type]
        out = _arrays.output(None, (size,), "u1")
        if size:
            self._tensors.read(index, out, 0)
        return out

    def _decode(self, index: int, shape: "Sequence[int]", dtype: Any, out: "Optional[Array]", first: int,
                count: int) -> "Array":
        name = _arrays.name_of(dtype)
        result = _arrays.output(out, shape, _arrays.dtype_of(name))
        if count:
            self._tensors.read_as(index, result, name, first, count)
        return result

    def intact(self) -> None:
        """Raises ChangedError when the file was cut while it was mapped: arrays may then have shown zeros."""
        self._tensors.intact()

    # ---- Life ----

    @property
    def closed(self) -> bool:
        return self._tensors.closed

    def close(self) -> None:
        """Closes the model; arrays that were taken from it stay valid."""
        self._tensors.close()

    def __enter__(self) -> "Model":
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __reduce__(self) -> Any:
        return pickled(self._path, "tensors", self._options)

    def __repr__(self) -> str:
        if self.closed:
            return f"<closed Model {self._path}>"
        return f"<Model {self._path or 'in memory'}: {self.kind}, {len(self)} tensors, {self._tensors.size} bytes>"

    def _repr_html_(self) -> str:
        from ._html import model_table

        return model_table(self)


# ---- As safetensors does it ----

def _framework(name: str) -> str:
    if name in ("np", "numpy"):
        return "np"
    if name in ("pt", "torch", "pytorch"):
        return "pt"
    raise ValueError(f"framework is {name!r}; it can be \"np\" or \"pt\"")


def _mapping_for(framework: str) -> str:
    """Tensors of torch may be written to, whatever their memory is."""
    return "copy" if framework == "pt" else "auto"


def _to(model: Model, name: str, framework: str, device: str = "cpu") -> Any:
    if framework == "np":
        value = model[name]
        return value.dequantize() if isinstance(value, QuantTensor) else value
    from .torch import _tensor

    return _tensor(model, name, device)


def load_file(path: Path, *, framework: str = "np") -> "Dict[str, Any]":
    """All tensors by name; framework "np" or "pt". Quantized ones are decoded to float32."""
    kind = _framework(framework)
    with Model(path, access=_mapping_for(kind)) as model:
        return model._read_all(lambda name: _to(model, name, kind))


def _texts(metadata: "Optional[Mapping[str, str]]") -> "Dict[str, str]":
    for key, value in (metadata or {}).items():
        if not isinstance(key, str) or not isinstance(value, str):
            raise TypeError(f"metadata maps texts to texts; {key!r} is mapped to {value!r}")
    return dict(metadata or {})


def save_file(tensors: "Mapping[str, Any]", path: Path, metadata: "Optional[Mapping[str, str]]" = None, *,
              overwrite: bool = False) -> None:
    """Writes arrays or torch tensors to an .mcf file, or to a .safetensors file when the path has that extension.

    >>> coffer.mcf.save_file({"w": np.ones((2, 2), "f4")}, "new.mcf", {"license": "MIT"})
    """
    target = os.fspath(path)
    texts = _texts(metadata)
    if target.endswith(".safetensors"):
        from ._safetensors import save

        save({name: _stored(value) for name, value in tensors.items()}, target, texts, overwrite)
        return
    writer = _core.McfWriter(target, overwrite, 0)
    try:
        if texts:
            writer.set_info(None, texts)
        for name, value in tensors.items():
            dtype, shape, data = _stored(value)
            if dtype == "bool":
                raise TypeError(f"{name}: an .mcf file has no type for bool; convert it to uint8, or save a .safetensors file")
            writer.add(name, dtype, shape, data)
        writer.commit()
    finally:
        writer.discard()


def _stored(value: Any) -> "Tuple[str, Tuple[int, ...], Any]":
    """Element type, shape and bytes of an array or a torch tensor."""
    if hasattr(value, "detach"):
        from .torch import to_stored

        return to_stored(value)
    import numpy as np

    array = np.ascontiguousarray(value)
    if array.dtype.byteorder == ">":
        array = array.astype(array.dtype.newbyteorder("<"))
    return _arrays.name_of(array.dtype), np.shape(value), array.reshape(-1).view("u1")


_SAFE_NAMES = {"bool": "BOOL", "f8_e4m3": "F8_E4M3", "f8_e5m2": "F8_E5M2"}


class _Slice:
    """safetensors' slice: shape and type without reading, parts by indexing."""

    def __init__(self, file: "safe_open", name: str) -> None:
        self._file, self._name = file, name

    def get_shape(self) -> "List[int]":
        return list(self._file._model.tensor_info(self._name)["shape"])

    def get_dtype(self) -> str:
        found = self._file._model.tensor_info(self._name)["dtype"]
        return _SAFE_NAMES.get(found, found.upper())

    def __getitem__(self, key: Any) -> Any:
        value = self._file._model[self._name]
        if self._file._framework == "np":
            return value[key]
        if isinstance(value, QuantTensor):
            from .torch import from_numpy

            return from_numpy(value[key]).to(self._file._device)
        return _to(self._file._model, self._name, "pt", self._file._device)[key]


class safe_open:
    """safetensors' safe_open for every kind of model file.

    >>> with coffer.mcf.safe_open("model.mcf", framework="np") as file:
    ...     file.keys()
    ['embed', 'head']
    """

    def __init__(self, filename: Path, framework: str = "np", device: str = "cpu") -> None:
        self._framework = _framework(framework)
        if self._framework == "np" and str(device) != "cpu":
            raise ValueError(f"device is {device!r}; NumPy arrays are on the cpu")
        self._device = device
        self._model = Model(filename, access=_mapping_for(self._framework))

    def keys(self) -> "List[str]":
        return sorted(self._model)

    def offset_keys(self) -> "List[str]":
        """The names in the order of their bytes in the file."""
        infos = [self._model.tensor_info(name) for name in self._model]
        return [info["name"] for info in sorted(infos, key=lambda info: info["offset"] or 0)]

    def metadata(self) -> "Optional[Dict[str, str]]":
        """The texts that were saved with the tensors; None without any."""
        return _keys(self._model) or None

    def get_tensor(self, name: str) -> Any:
        return _to(self._model, name, self._framework, self._device)

    def get_slice(self, name: str) -> Any:
        """Shape and type of a tensor without reading it, and parts of it by indexing."""
        if name not in self._model:
            raise KeyError(name)
        return _Slice(self, name)

    def __enter__(self) -> "safe_open":
        return self

    def __exit__(self, *exc: object) -> None:
        self._model.close()


# ---- Making models ----

def edit(path: Path) -> Editor:
    """Changes config, tokenizer, sections, ModelInfo and other files of an .mcf file in one commit: see Editor."""
    return Editor(path)


def pack(inputs: "Union[Path, Sequence[Path]]", out: Path, *, cast: Optional[str] = None,
         model_name: Optional[str] = None, align: int = 0, overwrite: bool = False, threads: int = 0,
         progress: Progress = None) -> "Dict[str, Any]":
    """Packs a Hugging Face folder, or other model files, into one .mcf file. The result has "files" (found, packed, left
    out) and "notes", what was converted."""
    given = [inputs] if isinstance(inputs, (str, os.PathLike)) else list(inputs)
    with callback(progress, "pack") as step:
        notes, report = _core.pack_model([os.fspath(item) for item in given], os.fspath(out), {
            "cast": cast, "name": model_name, "align": align, "overwrite": overwrite, "threads": threads}, step)
    return {**report, "notes": [text for _, _, _, text in notes[0]]}


def unpack(path: Path, folder: Path, *, overwrite: bool = False, progress: Progress = None) -> "Dict[str, Any]":
    """Restores the folder that was packed into an .mcf file. The result lists the files, and those that are not byte
    for byte as they were."""
    with callback(progress, "unpack") as step:
        return _core.unpack_model(os.fspath(path), os.fspath(folder), {"overwrite": overwrite}, step)


def rules_of(type: "Union[str, Mapping[str, str], None]") -> "List[Tuple[Optional[str], str]]":
    """Patterns of names with their types; None matches all matrices."""
    return [(None, type)] if isinstance(type, str) else list((type or {}).items())


def choice_of(type: "Union[str, Mapping[str, str], None]") -> "Dict[str, Any]":
    """The options for a type: rules, or a mixture by its name in llama.cpp."""
    if isinstance(type, str) and _core.quantize_preset(type) is not None:
        return {"preset": type}
    return {"rules": rules_of(type)}


def quantize(path: Path, out: Path, type: "Union[str, Mapping[str, str], None]" = "k4", *, method: str = "fit",
             weights: Optional[Path] = None, hessian: Optional[Path] = None, damping: float = 0.0,
             target_bpw: float = 0.0, max_size: int = 0, min_snr: float = 0.0, max_error: float = 0.0,
             requantize: bool = False, overwrite: bool = False, dry_run: bool = False, threads: int = 0,
             progress: Progress = None) -> "Dict[str, Any]":
    """Quantizes a model. type : one for all matrices, or a dict of patterns of names to types, of which the last
    that matches counts; names of llama.cpp such as Q4_K_M mean mixtures. The targets need type=None or patterns:
    target_bpw and max_size (bytes) bound the size, min_snr (dB) and max_error (relative) the quality. weights : a file
    with the importance of columns. hessian : a file of coffer.torch.calibrate; damping : the share of the mean moment
    that is added to each (0 = 0.01). The result lists each tensor with its size and error."""
    if method not in _METHODS:
        raise ValueError(f"method is {method!r}; it can be {', '.join(_METHODS)}")
    with callback(progress, "quantize") as step:
        return _core.quantize(os.fspath(path), os.fspath(out), {
            **choice_of(type), "method": _METHODS[method], "weights": weights, "hessian": hessian, "damping": damping,
            "target_bpw": target_bpw, "max_size": max_size, "min_snr": min_snr, "max_error": max_error,
            "requantize": requantize, "overwrite": overwrite, "dry_run": dry_run, "threads": threads}, step)
