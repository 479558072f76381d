"""Arrays are views of the file: no copies, read-only, and valid after everything else is gone."""

import gc
import multiprocessing
import os
import pickle
import subprocess
import sys
import threading

import numpy as np
import pytest

import coffer


def _python(code, **more):
    """The output of a program that runs in another process."""
    where = {**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(coffer.__file__))}
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, env=where, **more)
    assert done.returncode == 0, done.stderr
    return done.stdout


def _base(array):
    while isinstance(array, np.ndarray) and array.base is not None:
        array = array.base
    return array


@pytest.mark.parametrize("name, take", [
    ("model", lambda file: file["embed"]), ("scan", lambda file: file[:]), ("scan", lambda file: file["activation"]),
    ("matrix", lambda file: file[:]), ("matrix", lambda file: file[::2, 1:]), ("matrix", lambda file: np.asarray(file)),
])
def test_arrays_are_views_that_outlive_the_file(request, name, take):
    file = coffer.open(request.getfixturevalue(name))
    one, other = take(file), take(file)
    assert np.shares_memory(one, other) and not one.flags.writeable and not one.flags.owndata
    assert not isinstance(_base(one), np.ndarray)  # the owner is the mapping
    with pytest.raises(ValueError):
        one[...] = 0
    with pytest.raises(ValueError):
        one.flags.writeable = True
    before = one.tobytes()
    file.close()
    with pytest.raises(ValueError, match="closed"):
        take(file)
    del file, other
    gc.collect()
    assert one.tobytes() == before


def test_views_stay_valid_when_the_file_is_replaced_or_removed(matrix, folder):
    with coffer.open(matrix) as file:
        view = file[:]
    coffer.pycauset.write(matrix, np.zeros((3, 4)), overwrite=True)
    np.testing.assert_array_equal(view, np.arange(12.0).reshape(3, 4))
    (folder / matrix).unlink()
    np.testing.assert_array_equal(view, np.arange(12.0).reshape(3, 4))


@pytest.mark.parametrize("access", ["mmap", "read"])
def test_access_without_a_mapping_gives_the_same_arrays(model, access):
    with coffer.open(model, access=access) as file:
        np.testing.assert_array_equal(file["embed"], [[0, 1, 2], [3, 4, 5]])
        assert not file["embed"].flags.writeable


@pytest.fixture
def all_files(model, dataset, scan, matrix):
    with open("stacks.txt", "w") as file:
        file.write("main;grow 96\n")
    coffer.convert("stacks.txt", "run.mlyze", from_="collapsed")
    return [model, dataset, scan, matrix, "run.mlyze"]


def _fact(file):
    if isinstance(file, coffer.mlyze.Trace):
        return file.totals()["peak_bytes"]
    if isinstance(file, coffer.mldf.Dataset):
        return int(file.column("label").sum())
    if isinstance(file, coffer.mscan.Scan):
        return int(file["activation"].sum())
    return float(np.asarray(file["embed"] if isinstance(file, coffer.mcf.Model) else file).sum())


def test_every_handle_is_pickled_forked_and_shared_by_threads(all_files):
    for path in all_files:
        file = coffer.open(path)
        expected = _fact(file)
        assert _fact(pickle.loads(pickle.dumps(file))) == expected
        for method in ("fork",):
            with multiprocessing.get_context(method).Pool(1) as pool:
                assert pool.apply(_fact, (file,)) == expected
        found = []
        threads = [threading.Thread(target=lambda: found.extend(_fact(file) for _ in range(20))) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found == [expected] * 80, path


def test_opening_every_kind_of_file_often_does_not_grow_the_process(all_files):
    code = f"""
import coffer, resource
files = {all_files!r}
def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096
def often(times):
    for _ in range(times):
        for path in files:
            coffer.open(path).close()
often(100)
before = resident()
often(2000)
print(resident() - before)
"""
    assert int(_python(code)) < 2 << 20


def test_writers_can_be_shared_by_threads(folder):
    with coffer.mldf.create("t.mldf", {"label": "int", "text": "text"}) as writer:
        def work(first):
            for i in range(first, first + 200):
                writer.add({"label": i, "text": str(i)})

        threads = [threading.Thread(target=work, args=(first,)) for first in range(0, 800, 200)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    with coffer.open("t.mldf") as data:
        assert sorted(data.column("label")) == list(range(800))
        assert all(sample["text"] == str(sample["label"]) for sample in data)
    assert coffer.check("t.mldf", full=True).ok


# ---- Notebooks ----

HOSTILE = "<script>alert(1)</script>&\"'><img src=x onerror=alert(2)>"


def test_hostile_names_are_escaped_in_notebooks(folder):
    coffer.mcf.save_file({HOSTILE: np.zeros(3)}, "m.mcf", {HOSTILE: HOSTILE})
    with coffer.mldf.create("s.mldf", {HOSTILE.replace(".", ""): "text", "n": "int"}) as writer:
        writer.add({HOSTILE.replace(".", ""): HOSTILE, "n": 1})
    with coffer.mscan.create("r.mscan", model_name=HOSTILE) as writer:
        writer.param(HOSTILE)
        writer.sequence(np.zeros(1, coffer.mscan.RECORD), 1, HOSTILE)
    with open("stacks.txt", "w") as file:
        file.write("<script>alert(1)</script>;<img/src=x/onerror=alert(2)> 96\n")
    coffer.convert("stacks.txt", "t.mlyze", from_="collapsed")
    coffer.pycauset.write("<script>alert(1)<s>.pycauset", np.eye(2), metadata={"properties": {"label": HOSTILE}})
    for path in ("m.mcf", "s.mldf", "r.mscan", "t.mlyze", "<script>alert(1)<s>.pycauset"):
        text = coffer.open(path)._repr_html_()
        assert "<script" not in text and "onerror" not in text.replace("&lt;img src=x onerror=", "").replace(
            "&lt;img/src=x/onerror=", ""), path
        _well_formed(text)


def _well_formed(text):
    """Every element that is opened is closed: parsed strictly, as XML."""
    import xml.etree.ElementTree

    closed = text.replace("<br>", "<br/>")
    while "<img " in closed:
        begin = closed.index("<img ")
        end = closed.index(">", begin)
        closed = closed[:begin] + "<picture " + closed[begin + 5:end] + "/>" + closed[end + 1:]
    xml.etree.ElementTree.fromstring(f"<div>{closed}</div>")


def test_sounds_are_waves_and_no_picture_is_large(folder):
    import base64
    import io
    import wave

    from coffer._html import _png

    noise = np.random.default_rng(0)
    memory = io.BytesIO()
    with wave.open(memory, "wb") as out:
        out.setparams((1, 2, 8000, 0, "NONE", ""))
        out.writeframes(noise.integers(-9000, 9000, 800).astype("<i2").tobytes())
    sound = memory.getvalue()
    with coffer.mldf.create("n.mldf", {"image": "image-png", "audio": "audio-compressed", "text": "text"}) as writer:
        for _ in range(12):
            png = base64.b64decode(_png(noise.integers(0, 255, (96, 96, 3), np.uint8)).split(",")[1])
            writer.add({"image": png, "audio": sound, "text": "\u202e" + HOSTILE * 50})
    with coffer.open("n.mldf") as data:
        text = data._repr_html_()
    assert len(text) < 200_000 and "more samples" in text
    assert text.count("<path d='M0,") == text.count("<img src='data:") > 0
    assert "\u202e" not in text and "‹U+202E›" in text and "<script" not in text
    _well_formed(text)


def test_a_long_name_is_cut(folder):
    coffer.mcf.save_file({"x" * 5000 + str(i): np.zeros(1) for i in range(50)}, "m.mcf")
    text = coffer.open("m.mcf")._repr_html_()
    assert len(text) < 20_000 and "…" in text


# ---- Pages ----

def test_a_page_has_the_numbers_of_the_file(folder):
    coffer.pycauset.write("a.pycauset", np.arange(6.0).reshape(2, 3))
    coffer.pycauset.write("b.pycauset", np.ones((2, 3)))
    page = coffer.page("a.pycauset")
    assert page.kind == "matrix" and page.errors == 0 and "grid.values" in page and "texts" in page.keys()
    assert page["grid.values"].tolist() == [0, 1, 2, 3, 4, 5] and page["texts"] == []
    assert page.summary["files"][0]["info"]["rows"] == 2
    both = coffer.page("a.pycauset", "b.pycauset")
    assert both["grid.other"].tolist() == [1.0] * 6 and both.summary["diff"]["equal"] is False


def test_a_page_is_saved_as_html(folder):
    coffer.pycauset.write("a.pycauset", np.eye(2))
    page = coffer.page("a.pycauset")
    if page._html is None:
        with pytest.raises(coffer.UnsupportedError, match="npm ci"):
            page.save("a.html")
        return
    page.save("a.html")
    with open("a.html", "rb") as file:
        assert file.read() == page.html and page.html.startswith(b"<!doctype html>")
    with pytest.raises(FileExistsError):
        page.save("a.html")
    page.save("a.html", overwrite=True)
    with pytest.raises(coffer.CofferError):
        coffer.page("a.pycauset", max_size=1)
    with pytest.raises(FileNotFoundError, match="missing"):
        coffer.page("a.pycauset", "missing")


def test_empty_files_have_a_picture_too(folder):
    coffer.mcf.save_file({"x": np.zeros((0, 3))}, "m.mcf")
    with coffer.mldf.create("s.mldf", {"n": "int"}):
        pass
    with coffer.mscan.create("r.mscan"):
        pass
    coffer.pycauset.write("z.pycauset", np.zeros((1, 1)))
    for path in ("m.mcf", "s.mldf", "r.mscan", "z.pycauset"):
        _well_formed(coffer.open(path)._repr_html_())


def test_a_gallery_keeps_proportions_and_survives_damage(folder):
    import base64
    import re
    import struct

    from coffer._html import _png

    png = base64.b64decode(_png(np.full((40, 80, 3), 9, np.uint8)).split(",")[1])
    with coffer.mldf.create("p.mldf", {"image": "image-png"}) as writer:
        writer.add({"image": png})
        writer.add({"image": png})
    with coffer.open("p.mldf") as data:
        offset = data._entry(1, "image")["offset"]
    with open("p.mldf", "r+b") as file:
        file.seek(offset + 50)
        file.write(b"damage")
    with coffer.open("p.mldf") as data:
        text = data._repr_html_()
    shown = [base64.b64decode(found) for found in re.findall("base64,([^']*)", text)]
    assert [struct.unpack(">II", picture[16:24]) for picture in shown] == [(96, 48)]
    assert "sample 1" in text
    _well_formed(text)
