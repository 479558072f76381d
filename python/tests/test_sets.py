import multiprocessing
import os
import pickle

import numpy as np
import pytest

import coffer


def test_samples_fields_and_slices(dataset):
    with coffer.open(dataset) as data:
        assert len(data) == 25 and data.fields == ("text", "label", "score", "vector", "extra", "raw")
        sample = data[3]
        assert sample["text"] == "caption 3" and sample["label"] == 3 and sample["score"] == 0.75
        np.testing.assert_array_equal(sample["vector"], np.full(3, 3, "f4"))
        assert sample["extra"] == {"list": [3]} and sample["raw"] == b"\x03"
        assert data[-1, "label"] == 24 and data[np.int64(2), "label"] == 2
        assert [row["label"] for row in data[20:]] == [20, 21, 22, 23, 24]
        np.testing.assert_array_equal(data[::-5, "label"], [24, 19, 14, 9, 4])
        np.testing.assert_array_equal(data[[1, -1], "label"], [1, 24])
        np.testing.assert_array_equal(data[data.column("label") > 22, "label"], [23, 24])
        assert sum(1 for _ in data) == 25


def test_wrong_places_are_IndexErrors_and_KeyErrors(dataset):
    with coffer.open(dataset) as data:
        for index in (25, -26, 1 << 70):
            with pytest.raises(IndexError):
                data[index]
        with pytest.raises(KeyError):
            data[0, "nothing"]
        with pytest.raises(KeyError):
            data.column("nothing")
        with pytest.raises(IndexError):
            data[[25], "label"]
        with pytest.raises(TypeError):
            data["label"]
    with pytest.raises(ValueError, match="closed"):
        data[0]


def test_columns_and_batches_are_arrays(dataset):
    with coffer.open(dataset) as data:
        np.testing.assert_array_equal(data.column("label"), np.arange(25))
        np.testing.assert_array_equal(data.column("score", 2, 4), [0.5, 0.75])
        batch = data.batch([3, 3, 0])
        np.testing.assert_array_equal(batch["label"], [3, 3, 0])
        assert batch["vector"].shape == (3, 3) and batch["text"] == ["caption 3", "caption 3", "caption 0"]
        assert data.batch([])["label"].shape == (0,)


def test_values_of_the_wrong_kind_are_refused_and_nothing_is_written(folder):
    with pytest.raises(TypeError, match="label"):
        with coffer.mldf.create("x.mldf", {"label": "int", "text": "text"}) as writer:
            writer.add({"label": [], "text": "x"})
    with pytest.raises(KeyError, match="color"):
        with coffer.mldf.create("x.mldf", {"label": "int"}) as writer:
            writer.add({"color": 3})
    assert list(folder.iterdir()) == []


def test_a_number_that_is_missing_is_not_stored_as_zero(dataset, folder):
    with pytest.raises(ValueError, match="label.*cannot mark numbers as absent"):
        with coffer.mldf.create("x.mldf", {"label": "int", "text": "text"}) as writer:
            writer.add({"text": "x"})
    assert sorted(path.name for path in folder.iterdir()) == [dataset]
    with pytest.raises(ValueError, match="score"):
        coffer.mldf.set_values(dataset, {(0, "score"): None})
    assert coffer.open(dataset)[0, "score"] == 0.0


def test_a_file_is_not_overwritten_unasked(dataset):
    with pytest.raises(FileExistsError):
        coffer.mldf.create(dataset)
    with coffer.mldf.create(dataset, overwrite=True) as writer:
        writer.add({"label": 1})
    assert len(coffer.open(dataset)) == 1


def test_append_set_delete_and_concat(dataset):
    with coffer.mldf.append(dataset) as writer:
        writer.add({"text": "new", "label": 99, "score": 0.0, "vector": np.zeros(3, "f4"), "extra": {}, "raw": b""})
    coffer.mldf.set_values(dataset, {(0, "label"): 77, (-1, "text"): "newer", (1, "extra"): None})
    coffer.mldf.delete(dataset, [2, 3])
    with coffer.open(dataset) as data:
        assert len(data) == 24 and data[0, "label"] == 77 and data[1, "extra"] is None and data[2, "label"] == 4
        assert data[-1, "text"] == "newer"
    coffer.mldf.concat([dataset, dataset], "both.mldf")
    assert len(coffer.open("both.mldf")) == 48
    assert not coffer.check("both.mldf", full=True).errors


def test_a_writer_copies_the_samples_of_other_sets(dataset):
    with coffer.open(dataset) as data, coffer.mldf.create("copy.mldf") as writer:
        writer.copy(data)  # the fields come from the set
        writer.copy(data)
        assert len(writer) == 50
    with coffer.open(dataset) as data, coffer.open("copy.mldf") as copy:
        assert copy.schema == data.schema and copy[30, "text"] == data[5, "text"]
        with pytest.raises(coffer.FormatError, match="in the first set it is") as caught:
            with coffer.mldf.create("other.mldf", {"label": "int"}) as writer:
                writer.copy(data)
        assert caught.value.path == data.path and not os.path.exists("other.mldf")


def test_damage_is_not_handed_out(dataset):
    with coffer.open(dataset) as data:
        place = data._entry(3, "text")["offset"]
    with open(dataset, "r+b") as file:
        file.seek(place)
        file.write(b"X")
    with coffer.open(dataset) as data:
        assert data[2, "text"] == "caption 2"
        with pytest.raises(coffer.ChecksumError):
            data[3, "text"]
    with coffer.open(dataset, verify=False) as data:
        assert data[3, "text"] == "Xaption 3"


def test_the_order_is_a_permutation_for_any_number_of_ranks(dataset):
    with coffer.open(dataset) as data:
        whole = data.order(seed=5, epoch=2)
        assert sorted(whole) == list(range(25)) and list(whole) != list(range(25))
        assert list(data.order(seed=5, epoch=2, first=10, count=5)) == list(whole[10:15])
        for world in (2, 3, 7):
            parts = np.concatenate([data.order(seed=5, epoch=2, rank=rank, world=world) for rank in range(world)])
            assert sorted(parts) == list(range(25))


def _label(data, index):
    return data[index, "label"]


def test_a_set_works_in_forked_and_spawned_processes(dataset):
    data = coffer.open(dataset)
    assert pickle.loads(pickle.dumps(data))[4, "label"] == 4
    for method in ("fork", "spawn"):
        with multiprocessing.get_context(method).Pool(2) as pool:
            assert pool.starmap(_label, [(data, i) for i in range(5)]) == [0, 1, 2, 3, 4]


def test_pictures_are_decoded_and_scaled(folder):
    from coffer._html import _png
    import base64

    pixels = np.zeros((8, 6, 3), np.uint8)
    pixels[2:4, 1:3] = (200, 100, 50)
    png = base64.b64decode(_png(pixels).split(",")[1])
    with coffer.mldf.create("p.mldf") as writer:
        writer.add({"image": png})
    with coffer.open("p.mldf") as data:
        np.testing.assert_array_equal(data[0, "image"], pixels)
        assert data.image(0, "image", size=(4, 3)).shape == (4, 3, 3)
        assert data.image(0, "image", channels=1).shape == (8, 6, 1)
        assert data.bytes(0, "image") == png
        assert "<img" in data._repr_html_()
    with coffer.open("p.mldf", decode=False) as data:
        assert data[0, "image"] == png


def test_batches_take_lists_tuples_arrays_slices_and_masks(dataset):
    with coffer.open(dataset) as data:
        expected = data.column("label")[[3, -2, 0]]
        for which in ([3, -2, 0], (3, -2, 0), np.array([3, -2, 0]), np.array([3, 23, 0], np.uint64),
                      np.array([3, -2, 0], np.int32), [np.int64(3), np.int64(-2), np.int64(0)],
                      np.array([3, 9, -2, 9, 0])[::2]):
            np.testing.assert_array_equal(data.batch(which, ["label"])["label"], expected)
        np.testing.assert_array_equal(data.batch(slice(20, None), ["label"])["label"], np.arange(20, 25))
        mask = data.column("label") % 2 == 0
        np.testing.assert_array_equal(data.batch(mask, ["label"])["label"], np.arange(0, 25, 2))
        np.testing.assert_array_equal(data.batch(mask.tolist(), ["label"])["label"], np.arange(0, 25, 2))
        for wrong in ([25], [-26], np.array([25]), np.array([1 << 63], np.uint64), np.array([-26])):
            with pytest.raises(IndexError):
                data.batch(wrong, ["label"])
        for wrong in ([0.5], ["a"], np.array([[1]])):
            with pytest.raises(TypeError):
                data.batch(wrong, ["label"])


def test_threads_read_batches_of_one_set(dataset):
    from concurrent.futures import ThreadPoolExecutor

    with coffer.open(dataset) as data, ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda i: data.batch([i % 25] * 8)["label"], range(200)))
        assert [int(labels[0]) for labels in found] == [i % 25 for i in range(200)]


def test_image_size_gives_batches_of_pictures_as_one_array(folder):
    pixels = np.arange(4 * 6 * 3, dtype="u1").reshape(4, 6, 3)
    with coffer.mldf.create("p.mldf", {"image": "image-png", "label": "int"}) as writer:
        for i, (height, width) in enumerate([(4, 6), (8, 8), (3, 5)]):
            writer.add({"image": png(np.full((height, width, 3), 40 * i, "u1")), "label": i})
        writer.add({"image": png(pixels), "label": 3})
    with coffer.mldf.Dataset("p.mldf", image_size=(4, 6)) as data:
        batch = data.batch([0, 1, 2, 3])
        assert batch["image"].shape == (4, 4, 6, 3) and batch["image"].dtype == np.uint8
        assert [int(image.min()) for image in batch["image"][:3]] == [0, 40, 80]
        assert [int(image.max()) for image in batch["image"][:3]] == [0, 40, 80]
        np.testing.assert_array_equal(batch["image"][3], pixels)
        np.testing.assert_array_equal(data[1, "image"], batch["image"][1])
        out = np.zeros((5, 4, 6, 3), "u1")
        np.testing.assert_array_equal(data.batch([3, 1], out={"image": out})["image"][0], pixels)
        np.testing.assert_array_equal(out[1], batch["image"][1])
        assert pickle.loads(pickle.dumps(data)).image_size == (4, 6)
    for wrong in ((0, 6), (4,), (4, 1 << 20)):
        with pytest.raises(ValueError, match="image_size"):
            coffer.mldf.Dataset("p.mldf", image_size=wrong)


def png(pixels):
    import struct
    import zlib

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    height, width, _ = pixels.shape
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def _wav(samples, rate):
    import io
    import wave

    file = io.BytesIO()
    with wave.open(file, "wb") as writer:
        writer.setnchannels(samples.shape[1])
        writer.setsampwidth(2)
        writer.setframerate(rate)
        writer.writeframes(samples.astype("<i2").tobytes())
    return file.getvalue()


def test_sounds_are_stored_as_files_and_decoded(folder):
    samples = np.stack([np.sin(np.arange(800) / 10) * 20000, np.arange(800) - 400], 1).astype("i2")
    wav = _wav(samples, 8000)
    with coffer.mldf.create("s.mldf") as writer:
        writer.add({"sound": wav})
    with coffer.open("s.mldf") as data:
        found = data[0, "sound"]
        assert data.schema[0]["type"] == "audio-compressed" and found.dtype == np.float32
        np.testing.assert_allclose(found * 32768, samples, atol=1)
        assert data.bytes(0, "sound") == wav and data._entry(0, "sound")["sample_rate"] == 8000
    assert coffer.check("s.mldf", full=True, decode=True).ok
    with pytest.raises(coffer.CofferError):
        with coffer.mldf.create("t.mldf", {"sound": "audio"}) as writer:
            writer.add({"sound": b"not a sound"})
    assert [path.name for path in folder.iterdir()] == ["s.mldf"]
