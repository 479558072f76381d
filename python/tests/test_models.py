import json
import os
import pickle
import threading

import numpy as np
import pytest

import coffer
from conftest import VECTORS


def test_tensors_are_read_only_views_of_the_file(model):
    with coffer.open(model) as file:
        array = file["embed"]
        assert array.dtype == np.float32 and not array.flags.writeable and not array.flags.owndata
        np.testing.assert_array_equal(array, [[0, 1, 2], [3, 4, 5]])
        assert file["scale"] == 2 and file["scale"].shape == ()


def test_an_array_outlives_its_file(model):
    with coffer.open(model) as file:
        array = file["embed"]
    assert file.closed and array.sum() == 15
    with pytest.raises(ValueError, match="closed"):
        file["embed"]
    del file
    assert array.sum() == 15


def test_bytes_and_file_objects_give_the_same_arrays(model):
    data = open(model, "rb").read()
    with open(model, "rb") as handle:
        for given in (data, bytearray(data), memoryview(data), handle):
            np.testing.assert_array_equal(coffer.open(given)["embed"], coffer.open(model)["embed"])


def test_every_vector_of_quantized_tensors_decodes_bit_for_bit():
    with coffer.open(VECTORS / "mcf" / "quantised.mcf") as file:
        for name in file:
            tensor = file[name]
            expected = np.fromfile(VECTORS / "mcf" / "quant-expected" / f"{name}.f32", "<f4").reshape(tensor.shape)
            np.testing.assert_array_equal(tensor.dequantize(), expected)
            out = np.empty(tensor.shape, np.float32)
            assert tensor.dequantize(out=out) is out
            np.testing.assert_array_equal(out, expected)
            if tensor.ndim == 2:
                np.testing.assert_array_equal(tensor.rows(0, 1), expected[:1])
                np.testing.assert_array_equal(tensor[-1], expected[-1])
            assert tensor.raw.nbytes == tensor.nbytes


def test_an_output_of_the_wrong_shape_or_type_is_refused():
    with coffer.open(VECTORS / "mcf" / "quantised.mcf") as file:
        tensor = file["k4.4x512"]
        for out in (np.empty((512, 4), np.float32), np.empty((4, 512)), np.empty((512, 4), np.float32).T):
            with pytest.raises(ValueError):
                tensor.dequantize(out=out)


def test_a_model_is_a_mapping(model):
    with coffer.open(model) as file:
        assert list(file) == ["embed", "scale"] and len(file) == 2
        assert "embed" in file and "nothing" not in file and 3 not in file
        with pytest.raises(KeyError):
            file["nothing"]
        assert file.metadata["license"] == "MIT"
        assert file.tensor_info("embed")["shape"] == (2, 3)
        assert "<Model" in repr(file) and "<table>" in file._repr_html_()


def test_damage_is_not_handed_out(model):
    with coffer.open(model) as file:
        offset = file.tensor_info("embed")["offset"]
    with open(model, "r+b") as file:
        file.seek(offset + 5)
        file.write(b"\xff")
    with coffer.open(model) as file:
        with pytest.raises(coffer.ChecksumError, match="embed"):
            file["embed"]
    with coffer.open(model, verify=False) as file:
        assert file["embed"].shape == (2, 3)


def test_sections_are_parsed(folder):
    with coffer.open(VECTORS / "mcf" / "plain.mcf") as file:
        assert file.sections["TensorIndex"] > 0
        with pytest.raises(KeyError):
            file.section("nothing.json")


def test_handles_pickle_by_path_and_notice_a_change(model):
    file = coffer.open(model)
    again = pickle.loads(pickle.dumps(file))
    np.testing.assert_array_equal(again["embed"], file["embed"])
    stored = pickle.dumps(file)
    coffer.mcf.save_file({"embed": np.zeros(100)}, model, overwrite=True)
    with pytest.raises(coffer.ChangedError):
        pickle.loads(stored)
    with pytest.raises(TypeError):
        pickle.dumps(coffer.open(open(model, "rb").read()))


@pytest.mark.parametrize("extension", ["mcf", "safetensors"])
@pytest.mark.parametrize("dtype", ["bool", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8"])
def test_save_and_load_keep_every_type(extension, dtype):
    values = np.arange(12).reshape(3, 4).astype(dtype)
    if (extension, dtype) == ("mcf", "bool"):
        with pytest.raises(TypeError, match="no type for bool"):
            coffer.mcf.save_file({"x": values}, "m.mcf")
        assert not os.listdir(".")
        return
    coffer.mcf.save_file({"x": values, "empty": values[:0]}, f"m.{extension}")
    loaded = coffer.mcf.load_file(f"m.{extension}")
    assert loaded["x"].dtype == values.dtype and loaded["empty"].shape == (0, 4)
    np.testing.assert_array_equal(loaded["x"], values)
    assert coffer.check(f"m.{extension}", full=True).ok


def test_save_file_never_overwrites_unasked(model):
    before = open(model, "rb").read()
    with pytest.raises(FileExistsError):
        coffer.mcf.save_file({"x": np.zeros(3)}, model)
    assert open(model, "rb").read() == before


def test_a_tensor_that_is_not_contiguous_or_big_endian_is_stored_as_it_looks():
    values = np.arange(12.0).reshape(3, 4)
    coffer.mcf.save_file({"t": values.T, "s": values[:, ::2], "b": values.astype(">f8")}, "m.mcf")
    with coffer.open("m.mcf") as file:
        np.testing.assert_array_equal(file["t"], values.T)
        np.testing.assert_array_equal(file["s"], values[:, ::2])
        np.testing.assert_array_equal(file["b"], values)


def test_safe_open_has_the_interface_of_safetensors(model):
    with coffer.mcf.safe_open(model, framework="np", device="cpu") as file:
        assert file.keys() == ["embed", "scale"]
        np.testing.assert_array_equal(file.get_slice("embed")[:, 1:], [[1, 2], [4, 5]])
        assert file.get_tensor("embed").shape == (2, 3)


def test_quantize_reports_the_error_of_each_tensor():
    weights = np.random.default_rng(1).standard_normal((8, 512)).astype("f4")
    coffer.mcf.save_file({"a": weights, "b": weights}, "big.mcf")
    report = coffer.mcf.quantize("big.mcf", "small.mcf", {"*": "k4", "b": "q8"})
    rows = {row["name"]: row for row in report["tensors"]}
    assert rows["a"]["type"] == "k4" and rows["b"]["type"] == "q8" and rows["b"]["snr_db"] > rows["a"]["snr_db"] > 10
    with coffer.open("small.mcf") as file:
        assert file["a"].quant_type == "k4" and file.quality("a")["snr_db"] == pytest.approx(rows["a"]["snr_db"])
        assert np.abs(np.asarray(file["b"]) - weights).max() < 0.05


def test_pack_keeps_the_config(folder):
    (folder / "hf").mkdir()
    coffer.mcf.save_file({"w": np.ones((2, 2), "f4")}, "hf/model.safetensors")
    (folder / "hf" / "config.json").write_text(json.dumps({"model_type": "llama"}))
    (folder / "hf" / "README.md").write_text("# A model")
    report = coffer.mcf.pack("hf", "packed.mcf")
    assert report["files"]["found"] == 3 and not report["files"]["left_out"]
    with coffer.open("packed.mcf") as file:
        assert file.config == {"model_type": "llama"} and list(file) == ["w"]
        assert file.file("README.md") == b"# A model" and "README.md" in file.files
        file.unpack("again")
    for name in ("model.safetensors", "config.json", "README.md"):
        assert (folder / "again" / name).read_bytes() == (folder / "hf" / name).read_bytes()
    with coffer.open("hf") as file:
        assert list(file) == ["w"]


def test_threads_may_read_one_model(model):
    file, errors = coffer.open(model), []

    def work():
        for _ in range(300):
            if file["embed"].sum() != 15:
                errors.append("wrong")

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors


def test_the_editor_changes_everything_in_one_commit(model):
    before = open(model, "rb").read()
    with pytest.raises(RuntimeError):
        with coffer.mcf.edit(model) as edit:
            edit.config = {"model_type": "llama"}
            edit.files["a.txt"] = "x"
            raise RuntimeError
    assert open(model, "rb").read() == before and os.listdir(".") == [model]
    with coffer.open(model, "r+") as edit:
        edit.config = {"model_type": "llama", "layers": [1]}
        edit.config["layers"].append(2)
        edit.tokenizer = {"version": "1.0"}
        edit.sections["generation_config.json"] = {"top_p": 0.5}
        edit.info["model_name"] = "tiny"
        edit.info["kv.general.size"] = 7
        edit.info["kv.general.rate"] = 0.5
        del edit.info["kv.license"]
        edit.files["notes/a.txt"] = "grüße"
        assert edit.info["model_name"] == "tiny" and "notes/a.txt" in edit.files
        assert open(model, "rb").read() == before
    with coffer.open(model) as file:
        assert file.config == {"model_type": "llama", "layers": [1, 2]} and file.tokenizer == {"version": "1.0"}
        assert json.loads(file.section("generation_config.json")) == {"top_p": 0.5}
        assert file.file("notes/a.txt").decode() == "grüße" and file.metadata["model_name"] == "tiny"
        assert file.metadata["general.size"] == 7 and file.metadata["general.rate"] == 0.5
        assert "license" not in file.metadata and file["embed"].sum() == 15
    with coffer.mcf.edit(model) as edit:
        edit.config["layers"] = []
        edit.tokenizer = None
        del edit.files["notes/a.txt"]
        edit.checksums()
    with coffer.open(model) as file:
        assert file.config["layers"] == [] and "tokenizer.json" not in file.sections and not file.files
    assert coffer.check(model, full=True).ok


def test_the_editor_refuses_what_would_break_the_file(model):
    before = open(model, "rb").read()
    with coffer.mcf.edit(model) as edit:
        with pytest.raises(coffer.LockedError):
            coffer.mcf.edit(model)
        with pytest.raises(ValueError):
            edit.sections["config.json"] = b"{not json"
        with pytest.raises((ValueError, coffer.CofferError)):
            edit.sections["TensorIndex"] = b"x"
        with pytest.raises((KeyError, ValueError)):
            edit.sections["nothing.json"] = b"{}"
        with pytest.raises(KeyError, match="kv.nothing"):
            del edit.info["kv.nothing"]
        with pytest.raises(TypeError):
            edit.info["kv.list"] = [1]
        with pytest.raises((ValueError, coffer.CofferError)):
            edit.files["../escape"] = b"x"
    assert open(model, "rb").read() == before
    with pytest.raises(ValueError, match="appends to mldf"):
        coffer.open(model, "a")
    with pytest.raises(ValueError, match="only a file with a path"):
        coffer.open(before, "r+")


def test_rows_raw_and_dlpack(model):
    weights = np.random.default_rng(1).standard_normal((8, 256)).astype("f4")
    coffer.mcf.save_file({"w": weights}, "w.mcf")
    coffer.mcf.quantize("w.mcf", "q.mcf", "q8")
    with coffer.open("w.mcf") as plain, coffer.open("q.mcf") as packed:
        np.testing.assert_array_equal(plain.rows("w", 2, 4), weights[2:4])
        assert plain.rows("w", 0, 1, "f16").dtype == np.float16 and np.shares_memory(plain.rows("w", 2, 4), plain["w"])
        assert plain.raw("w").tobytes() == weights.tobytes()
        decoded = packed["w"].dequantize()
        np.testing.assert_array_equal(packed.rows("w", 2, 4), decoded[2:4])
        np.testing.assert_array_equal(np.from_dlpack(packed["w"]), decoded)
        np.testing.assert_array_equal(packed.raw("w"), packed["w"].raw)
        assert packed.raw("w").nbytes == packed["w"].nbytes


def test_the_helpers_agree_with_the_safetensors_package(folder):
    safetensors = pytest.importorskip("safetensors")
    import safetensors.numpy

    tensors = {"b": np.arange(6, dtype="f4").reshape(2, 3), "a": np.array(3, "i8"), "empty": np.zeros((0, 2), "f2"),
               "flags": np.array([True, False])}
    safetensors.numpy.save_file(tensors, "theirs.safetensors", {"license": "MIT"})
    coffer.mcf.save_file(tensors, "ours.safetensors", {"license": "MIT"})
    for path in ("theirs.safetensors", "ours.safetensors"):
        theirs, ours = safetensors.numpy.load_file(path), coffer.mcf.load_file(path)
        assert set(theirs) == set(ours) == set(tensors)
        for name, values in tensors.items():
            assert theirs[name].dtype == ours[name].dtype == values.dtype and ours[name].shape == values.shape
            np.testing.assert_array_equal(ours[name], values)
        with safetensors.safe_open(path, framework="np") as one, coffer.mcf.safe_open(path, framework="np") as other:
            assert sorted(one.keys()) == other.keys() and one.metadata() == other.metadata() == {"license": "MIT"}
            part, same = one.get_slice("b"), other.get_slice("b")
            assert list(part.get_shape()) == same.get_shape() and part.get_dtype() == same.get_dtype() == "F32"
            np.testing.assert_array_equal(part[:, 1:], same[:, 1:])
            np.testing.assert_array_equal(one.get_tensor("a"), other.get_tensor("a"))
            for file in (one, other):
                with pytest.raises(Exception, match="nothing"):
                    file.get_tensor("nothing")
    for save in (safetensors.numpy.save_file, coffer.mcf.save_file):
        with pytest.raises(TypeError):
            save(tensors, "bad.safetensors", {"n": 3})
    for load in (safetensors.numpy.load_file, coffer.mcf.load_file):
        with pytest.raises(FileNotFoundError):
            load("missing.safetensors")


def test_damage_in_a_quantized_tensor_is_not_decoded(folder):
    weights = np.random.default_rng(1).normal(0, 1, (64, 512)).astype("f4")
    coffer.mcf.save_file({"w": weights}, "w.safetensors")
    coffer.mcf.quantize("w.safetensors", "w.mcf", "k4")
    with coffer.open("w.mcf") as model:
        expected = model["w"].dequantize()
        np.testing.assert_array_equal(model["w"].rows(3, 9), expected[3:9])
        place = model.tensor_info("w")["offset"] + model.tensor_info("w")["bytes"] - 1
    for access in ("mmap", "read"):
        with coffer.open("w.mcf", access=access) as model:
            np.testing.assert_array_equal(model["w"].dequantize(), expected)
    with open("w.mcf", "r+b") as file:
        file.seek(place)
        last = file.read(1)
        file.seek(place)
        file.write(bytes([last[0] ^ 1]))
    for access in ("mmap", "read"):
        with coffer.open("w.mcf", access=access) as model:
            with pytest.raises(coffer.ChecksumError):
                model["w"].dequantize()


def test_large_results_are_the_same_with_and_without_an_array_of_the_caller(folder):
    weights = np.random.default_rng(1).normal(0, 1, (2048, 2304)).astype("f4")
    coffer.mcf.save_file({"w": weights}, "w.safetensors")
    coffer.mcf.quantize("w.safetensors", "w.mcf", "q8", method="absmax")
    with coffer.open("w.mcf") as model, coffer.open("w.mcf", access="read") as copied:
        whole = model["w"].dequantize()
        assert whole.ctypes.data % 64 == 0 and float(np.abs(whole - weights).max()) < 0.05
        out = np.empty(weights.size + 1, "f4")[1:].reshape(weights.shape)
        np.testing.assert_array_equal(model["w"].dequantize(out=out), whole)
        np.testing.assert_array_equal(copied["w"].dequantize(), whole)
