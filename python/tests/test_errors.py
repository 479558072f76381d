import os
import pickle

import numpy as np
import pytest

import coffer
from conftest import VECTORS


def test_a_missing_file_is_a_FileNotFoundError():
    with pytest.raises(FileNotFoundError) as caught:
        coffer.open("nothing.mcf")
    assert caught.value.filename == "nothing.mcf" and caught.value.code == "io"


def test_a_folder_and_a_foreign_file_are_named():
    os.mkdir("empty")
    with pytest.raises((coffer.FormatError, OSError)):
        coffer.open("empty")
    with open("text.txt", "w") as file:
        file.write("hello")
    with pytest.raises(coffer.NotRecognisedError) as caught:
        coffer.open("text.txt")
    assert caught.value.code == "not-recognised" and caught.value.path == "text.txt" and "text.txt" in str(caught.value)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_an_unreadable_file_is_a_PermissionError(model):
    os.chmod(model, 0)
    with pytest.raises(PermissionError):
        coffer.open(model)


def test_damage_has_a_code_and_an_offset():
    with pytest.raises(coffer.FormatError) as caught:
        coffer.open(VECTORS / "mlyze" / "meta-past-end.mlyze")
    assert caught.value.code == "out-of-bounds" and isinstance(caught.value.offset, int)


def test_wrong_arguments_are_TypeErrors_and_ValueErrors(model):
    for given in (None, 3, ["a"], object()):
        with pytest.raises(TypeError):
            coffer.open(given)
    with pytest.raises(ValueError):
        coffer.open(model, mode="w")
    with pytest.raises(ValueError):
        coffer.mcf.quantize(model, "x.mcf", "k5")


@pytest.mark.parametrize("kind", sorted(name for name, found in vars(coffer._core).items() if isinstance(found, type)))
def test_an_object_that_was_never_opened_raises(kind):
    found = getattr(coffer._core, kind)
    try:
        one = found.__new__(found)
    except TypeError:
        return  # a view: only files make them
    for name in [name for name in dir(found) if not name.startswith("__")] + ["__len__", "__getitem__"]:
        for args in ((), (0,), ("a",), (0, 0), (b"", 0), (0, 0, 0)):
            try:
                value = getattr(one, name, None)
                value(*args) if callable(value) else None
            except (ValueError, TypeError, KeyError, RuntimeError):
                pass


def test_check_lists_findings():
    report = coffer.check(VECTORS / "mscan" / "trailing-bytes.mscan")
    assert not report.ok and report.warnings == 1 and report.findings[0].code == "trailing-bytes"
    assert coffer.check(VECTORS / "mscan" / "two-sequences.mscan").ok
    assert "trailing-bytes" in str(list(report)[0])


def test_repair_keeps_the_original_and_reports(folder):
    damaged = (VECTORS / "mscan" / "trailing-bytes.mscan").read_bytes()
    (folder / "x.mscan").write_bytes(damaged)
    report = coffer.repair("x.mscan", "y.mscan")
    assert len(report) and coffer.open("y.mscan") is not None
    in_place = coffer.repair("x.mscan")
    assert in_place.original and open(in_place.original, "rb").read() == damaged


def test_diff_convert_info_and_ls_know_every_kind(model, matrix):
    assert len(coffer.convert(model, "model.safetensors")) == 0
    assert coffer.diff(model, "model.safetensors", tolerance=0)["tensors"] is not None
    coffer.convert(matrix, "m.npy")
    np.testing.assert_array_equal(np.load("m.npy"), np.arange(12.0).reshape(3, 4))
    assert coffer.info(matrix)["format"] == "pycauset" and coffer.info("model.safetensors")["format"] == "safetensors"
    assert [row["name"] for row in coffer.ls(model)] == ["embed", "scale"]
    assert ("mcf", "safetensors") in coffer.conversions()
    with pytest.raises(FileExistsError):
        coffer.convert(matrix, "m.npy")


def test_a_progress_function_sees_the_work_and_may_stop_it(folder):
    coffer.mcf.save_file({"x": np.zeros(1 << 20)}, "big.mcf")
    steps = []
    assert coffer.check("big.mcf", full=True, progress=lambda done, total: steps.append((done, total))).ok
    assert steps and steps[-1][0] <= steps[-1][1]

    def stop(done, total):
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        coffer.convert("big.mcf", "big.safetensors", progress=stop)
    assert sorted(os.listdir(".")) == ["big.mcf"]


def test_opening_10000_times_does_not_grow_the_process(model):
    def resident():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * 4096

    def open_often(times):
        for _ in range(times):
            with coffer.open(model) as file:
                file["embed"]

    open_often(500)
    before = resident()
    open_often(10000)
    assert resident() - before < 4 << 20


def test_urls_are_opened_by_fsspec(model, matrix):
    fsspec = pytest.importorskip("fsspec")
    memory = fsspec.filesystem("memory")
    for path in (model, matrix):
        with open(path, "rb") as file:
            memory.pipe(f"/{path}", file.read())
        assert np.asarray(coffer.open(f"memory://{path}")["embed"] if path == model else coffer.open(f"memory://{path}")).size
    with pytest.raises(FileNotFoundError):
        coffer.open("memory://nothing.mcf")


def test_progress_is_a_bar_of_tqdm_or_nothing(model, monkeypatch, capsys):
    pytest.importorskip("tqdm")
    assert coffer.check(model, full=True, progress=True).ok
    assert "check" in capsys.readouterr().err
    monkeypatch.setitem(__import__("sys").modules, "tqdm.auto", None)
    assert coffer.check(model, full=True, progress=True).ok


def test_files_of_a_server_are_opened_by_their_address(model, dataset, matrix, server):
    with coffer.open(f"{server}/{model}") as file:
        np.testing.assert_array_equal(file["embed"], coffer.open(model)["embed"])
    with coffer.open(f"{server}/{dataset}") as data:
        assert data[3, "text"] == "caption 3" and data.column("label").sum() == 300
        assert pickle.loads(pickle.dumps(data))[4, "label"] == 4
    with coffer.open(f"{server}/{matrix}") as file:
        assert file[2, 3] == 11.0
    with pytest.raises(OSError):
        coffer.open(f"{server}/nothing.mcf")
    with pytest.raises(ValueError, match="only a file with a path"):
        coffer.open(f"{server}/{model}", "r+")
