"""coffer.dask without a cluster: collections, shards that are joined, and the bytes of the command."""

import io
import json
import os
import pickle
import subprocess
import tarfile
from pathlib import Path

import numpy as np
import pytest

import coffer

dask = pytest.importorskip("dask")
cloudpickle = pytest.importorskip("cloudpickle")
import dask.array  # noqa: E402
import dask.bag  # noqa: E402

import coffer.dask  # noqa: E402
from conftest import ROOT  # noqa: E402


@pytest.fixture(autouse=True)
def in_this_process():
    with dask.config.set(scheduler="sync"):
        yield


def command(*args, expected=(0,)):
    """Runs the command and returns what it prints."""
    here = Path(coffer.__file__).parent
    program = next(path for path in (here / "bin" / "coffer", here.parent.parent / "coffer") if path.exists())
    done = subprocess.run([program, *args], stdout=subprocess.PIPE)
    assert done.returncode in expected
    return done.stdout


def read(path):
    return Path(path).read_bytes()


def touch(path):
    """Changes what identifies a file, and nothing else."""
    found = os.stat(path)
    os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns + 1_000_000_000))


# ---- Reading ----

def test_a_set_becomes_a_bag_or_a_table(dataset):
    bag = coffer.dask.from_mldf(dataset, samples_per_task=4)
    assert bag.npartitions == 7
    samples = bag.compute()
    assert [sample["label"] for sample in samples] == list(range(25))
    assert samples[7]["text"] == "caption 7" and samples[7]["vector"].tolist() == [7, 7, 7]
    assert coffer.dask.from_mldf(dataset, fields=["label"]).compute()[3] == {"label": 3}
    table = coffer.dask.from_mldf(dataset, samples_per_task=10, fields=["label", "text"], collection="dataframe")
    assert table.npartitions == 3
    assert table.compute()["label"].tolist() == list(range(25))
    with pytest.raises(KeyError, match="no field wrong; the fields are text"):
        coffer.dask.from_mldf(dataset, fields=["wrong"])


def test_a_table_reads_the_columns_that_are_needed(dataset, monkeypatch):
    asked = []
    real = coffer.mldf.Dataset.batch
    monkeypatch.setattr(coffer.mldf.Dataset, "batch",
                        lambda self, samples, fields=None: (asked.append(list(fields)), real(self, samples, fields))[1])
    table = coffer.dask.from_mldf(dataset, samples_per_task=10, collection="dataframe")
    del asked[:]  # of the types of the columns
    assert table["label"].sum().compute() == 300
    assert asked == [["label"]] * 3


def test_scans_and_matrices(matrix, scan):
    array = coffer.dask.from_pycauset(matrix, chunks=(2, 3))
    np.testing.assert_array_equal(array.compute(), np.arange(12.0).reshape(3, 4))
    table = coffer.dask.from_mscan(scan, records_per_task=5)
    assert table.npartitions == 3 and table["activation"].sum().compute() == 660


def test_events_are_read_block_by_block(trace_with_blocks):
    path, events = trace_with_blocks
    table = coffer.dask.from_mlyze(path, events_per_task=1)
    with coffer.open(path) as trace:
        assert table.npartitions == trace._trace.block_count() > 2
        expected = trace.events()
    found = table.compute()
    assert len(found) == events
    for name, column in expected.items():
        np.testing.assert_array_equal(found[name].to_numpy(), column)


@pytest.fixture
def trace_with_blocks(folder):
    lines = "".join(f"main;f{i} {i}\n" for i in range(1, 9000))  # a block has at most 64 KiB of events
    Path("in.collapsed").write_text(lines)
    coffer.convert("in.collapsed", "run.mlyze", from_="collapsed")
    with coffer.open("run.mlyze") as trace:
        return "run.mlyze", len(trace)


def test_a_trace_of_another_profiler_is_read_by_one_task(folder):
    path = ROOT / "tests/compat/mlyze-tools/grow.heaptrack.zst"
    table = coffer.dask.from_mlyze(path, events_per_task=10)
    with coffer.open(path) as trace:
        assert table.npartitions == 1 and len(table.compute()) == len(trace) > 10


def test_an_empty_set_has_one_empty_partition(folder):
    with coffer.mldf.create("empty.mldf", {"label": "int"}):
        pass
    bag = coffer.dask.from_mldf("empty.mldf")
    assert bag.npartitions == 1 and bag.compute() == []


def test_a_graph_has_paths_and_ranges_only(folder):
    with coffer.mldf.create("big.mldf") as writer:
        for i in range(64):
            writer.add({"data": bytes([i]) * 10_000})
    coffer.pycauset.write("big.pycauset", np.zeros((256, 256)))
    for collection in (coffer.dask.from_mldf("big.mldf", samples_per_task=1),
                       coffer.dask.from_mldf("big.mldf", samples_per_task=1, collection="dataframe"),
                       coffer.dask.from_pycauset("big.pycauset", chunks=(32, 32))):
        graph = dict(collection.__dask_graph__())
        assert len(graph) >= 64
        assert len(cloudpickle.dumps(graph)) < 600 * len(graph) + 4000


def test_a_file_that_changes_between_tasks_is_an_error(dataset, matrix, scan):
    collections = [coffer.dask.from_mldf(dataset, samples_per_task=5), coffer.dask.from_pycauset(matrix, chunks=2),
                   coffer.dask.from_mscan(scan, records_per_task=5)]
    for path in (dataset, matrix, scan):
        touch(path)
    for collection, path in zip(collections, (dataset, matrix, scan)):
        with pytest.raises(coffer.ChangedError, match=path):
            collection.compute()


def test_a_rewritten_file_gets_another_name(matrix, dataset):
    first, second = coffer.dask.from_pycauset(matrix).name, coffer.dask.from_mldf(dataset).name
    assert coffer.dask.from_mldf(dataset).name == second
    coffer.pycauset.write(matrix, np.zeros((3, 4)), overwrite=True)
    touch(dataset)
    assert coffer.dask.from_pycauset(matrix).name != first
    assert coffer.dask.from_mldf(dataset).name != second


# ---- Writing ----

def numbered(count):
    return [{"label": i, "text": f"text {i % 7} " * (i % 30), "vector": np.full(i % 5, i, "f4")} for i in range(count)]


@pytest.mark.parametrize("options", [{}, {"page_size": 4096, "dedup": True}, {"zstd_level": 7}])
def test_a_bag_becomes_the_set_that_one_process_writes(folder, options):
    samples = numbered(300)
    schema = coffer.mldf.infer_schema(samples[1])
    if "zstd_level" in options:
        schema[1]["zstd"] = True
    with coffer.mldf.create("one.mldf", schema, **options) as writer:
        writer.extend(samples)
    coffer.dask.to_mldf(dask.bag.from_sequence(samples, npartitions=7), "out.mldf", schema, **options)
    assert sorted(os.listdir(".")) == ["one.mldf", "out.mldf"]
    assert read("out.mldf") == read("one.mldf")
    assert coffer.dask.from_mldf("out.mldf", samples_per_task=13).pluck("label").compute() == list(range(300))


def test_encrypted_sets_are_joined_with_the_key(folder):
    key = bytes(range(32))
    schema = [{"name": "text", "type": "text", "encrypted": True}]
    bag = dask.bag.from_sequence([{"text": f"secret {i}"} for i in range(20)], npartitions=3)
    coffer.dask.to_mldf(bag, "out.mldf", schema, key=key)
    assert coffer.dask.from_mldf("out.mldf", key=key, samples_per_task=6).pluck("text").compute()[17] == "secret 17"
    assert coffer.check("out.mldf", full=True, key=key).ok


def test_a_failing_task_leaves_nothing(folder):
    def broken(i):
        if i == 90:
            raise RuntimeError("broken sample")
        return {"label": i}

    bag = dask.bag.from_sequence(range(100), npartitions=5).map(broken)
    for scheduler in ("sync", "threads"):
        with dask.config.set(scheduler=scheduler), pytest.raises(RuntimeError, match="broken sample"):
            coffer.dask.to_mldf(bag, "out.mldf")
        assert os.listdir(".") == []


def test_without_a_cluster_tasks_run_in_threads(folder):
    process = os.getpid()
    bag = dask.bag.from_sequence(range(8), npartitions=4).map(lambda i: {"label": i, "here": os.getpid() == process})
    with dask.config.set(scheduler=None):
        coffer.dask.to_mldf(bag, "out.mldf")
    assert coffer.open("out.mldf").column("here").tolist() == [1] * 8
    empty = dask.bag.from_sequence(range(8), npartitions=4).filter(lambda i: i > 4).map(lambda i: {"label": i})
    with pytest.raises(ValueError, match="first partition has no samples .*; pass a schema"):
        coffer.dask.to_mldf(empty, "other.mldf")
    coffer.dask.to_mldf(empty, "other.mldf", {"label": "int"})
    assert coffer.open("other.mldf").column("label").tolist() == [5, 6, 7]


def test_a_sample_that_does_not_fit_is_named(folder):
    samples = numbered(10)
    for wrong, kind, text in (({"label": "many"}, ValueError, "invalid literal"), ({"size": 3}, KeyError, "no field")):
        bag = dask.bag.from_sequence([*samples, wrong], npartitions=3)
        with pytest.raises(kind, match=f"out.mldf: partition 2, sample 2: .*{text}"):
            coffer.dask.to_mldf(bag, "out.mldf")
    assert os.listdir(".") == []


def test_an_existing_file_is_replaced_only_when_asked(folder):
    bag = dask.bag.from_sequence(numbered(10), npartitions=2)
    Path("out.mldf").write_bytes(b"precious")
    for job in (lambda: coffer.dask.to_mldf(bag, "out.mldf"),
                lambda: coffer.dask.to_pycauset(dask.array.ones((2, 2)), "out.mldf"),
                lambda: coffer.dask.pack(".", "out.mldf")):
        with pytest.raises(FileExistsError, match="overwrite=True"):
            job()
    assert read("out.mldf") == b"precious" and os.listdir(".") == ["out.mldf"]
    coffer.dask.to_mldf(bag, "out.mldf", overwrite=True)
    assert len(coffer.open("out.mldf")) == 10


def test_a_failing_job_keeps_the_file_that_it_was_to_replace(folder):
    Path("out.mldf").write_bytes(b"precious")
    bag = dask.bag.from_sequence(range(4)).map(lambda i: {"label": 1 // i})
    with pytest.raises(ZeroDivisionError):
        coffer.dask.to_mldf(bag, "out.mldf", {"label": "int"}, overwrite=True)
    assert read("out.mldf") == b"precious" and os.listdir(".") == ["out.mldf"]


def test_a_replaced_file_keeps_its_permissions_and_links(folder):
    Path("real.mldf").touch()
    os.chmod("real.mldf", 0o640)
    os.symlink("real.mldf", "out.mldf")
    coffer.dask.to_mldf(dask.bag.from_sequence(numbered(4)), "out.mldf", overwrite=True)
    assert os.path.islink("out.mldf") and os.stat("real.mldf").st_mode & 0o777 == 0o640
    assert len(coffer.open("real.mldf")) == 4 and sorted(os.listdir(".")) == ["out.mldf", "real.mldf"]


def test_a_file_that_appears_during_the_job_is_kept(folder):
    def writes(i):
        Path("out.mldf").write_bytes(b"precious")
        return {"label": i}

    bag = dask.bag.from_sequence(range(4), npartitions=2).map(writes)
    with pytest.raises(FileExistsError):
        coffer.dask.to_mldf(bag, "out.mldf", {"label": "int"})
    assert read("out.mldf") == b"precious" and os.listdir(".") == ["out.mldf"]


def test_parts_of_a_client_that_was_killed_are_removed(folder):
    left = Path("out.mldf.parts-0123")
    left.mkdir()
    (left / "owner").touch()
    (left / "part.mldf").write_bytes(b"half of it")
    (Path("other.mldf.parts-0123")).mkdir()
    coffer.dask.to_mldf(dask.bag.from_sequence(numbered(4)), "out.mldf")
    assert sorted(os.listdir(".")) == ["other.mldf.parts-0123", "out.mldf"]


def test_parts_of_a_job_that_runs_are_kept(folder):
    from coffer.dask._parts import Job

    with Job("out.mldf", False) as first:
        with Job("out.mldf", False) as second:
            assert os.path.isdir(first.folder) and os.path.isdir(second.folder)
        assert os.path.isdir(first.folder)
    assert os.listdir(".") == []


@pytest.mark.parametrize("kind, values", [
    ("auto", np.arange(35.0).reshape(5, 7)), ("auto", np.arange(12, dtype="i4").reshape(3, 4)),
    ("auto", np.arange(9.0)), ("auto", np.eye(7, 5) > 0), ("auto", np.arange(6, dtype="c16").reshape(2, 3)),
    ("triangular", np.triu(np.arange(36.0).reshape(6, 6), 1)), ("triangular", np.triu(np.ones((6, 6)))),
    ("symmetric", np.add.outer(np.arange(6.0), np.arange(6.0))),
    ("antisymmetric", np.subtract.outer(np.arange(6.0), np.arange(6.0))),
    ("causal", np.triu(np.ones((9, 9)), 1)),
])
def test_an_array_becomes_the_matrix_that_one_process_writes(folder, kind, values):
    coffer.pycauset.write("one.pycauset", values, kind=kind, metadata={"properties": {"label": "x"}})
    array = dask.array.from_array(values, chunks=2 if values.ndim == 1 else (2, 3))
    coffer.dask.to_pycauset(array, "out.pycauset", kind=kind, metadata={"properties": {"label": "x"}})
    assert read("out.pycauset") == read("one.pycauset")
    assert sorted(os.listdir(".")) == ["one.pycauset", "out.pycauset"]


def test_a_matrix_that_would_lose_values_is_refused(folder, monkeypatch):
    from coffer.dask import _write

    monkeypatch.setattr(_write, "_STRIP_BYTES", 64)
    values = np.add.outer(np.arange(12.0), np.arange(12.0))
    values[11, 2] = -1
    with pytest.raises(ValueError, match="out.pycauset: the matrix is not symmetric"):
        coffer.dask.to_pycauset(dask.array.from_array(values, chunks=5), "out.pycauset", kind="symmetric")
    with pytest.raises(ValueError, match=r"out.pycauset: block at \([0-9]+, [0-9]+\): .*only zeros and ones"):
        coffer.dask.to_pycauset(dask.array.from_array(values, chunks=5), "out.pycauset", kind="causal")
    with pytest.raises(ValueError):
        coffer.dask.to_pycauset(dask.array.from_array(values, chunks=5), "out.pycauset", kind="triangular")
    assert os.listdir(".") == []


# ---- Quantizing ----

@pytest.fixture
def weights(folder):
    random = np.random.default_rng(5)
    tensors = {f"layer.{i}.weight": random.normal(size=(16 + i, 96)).astype("f4") for i in range(5)}
    tensors["layer.0.copy"] = tensors["layer.0.weight"]
    tensors["norm"] = np.ones(96, "f4")
    coffer.mcf.save_file(tensors, "model.safetensors", {"license": "MIT"})
    return "model.safetensors"


def save_moments():
    """For two of the layers, and one that the model does not have."""
    inputs = np.random.default_rng(6).normal(size=(200, 12)) @ np.random.default_rng(7).normal(size=(12, 96))
    sums = (inputs.T @ inputs + np.eye(96)).astype("f4")
    tensors = {f"{name}.moments": sums for name in ("layer.1", "layer.2.weight", "other")}
    coffer.mcf.save_file({**tensors, **{name.replace("moments", "count"): np.array([200]) for name in tensors}}, "moments.mcf")


@pytest.mark.parametrize("arguments, options", [
    (["--type", "k4"], {"type": "k4"}),
    (["--type", "q8", "--type", "*.1.*=k6", "--type", "layer.2*=keep", "--method", "absmax", "--align", "4K"],
     {"type": {"*": "q8", "*.1.*": "k6", "layer.2*": "keep"}, "method": "absmax", "align": 4096}),
    (["--type", "int8", "--domain", "activations", "--clip", "99", "--no-dedup", "--no-checksums"],
     {"type": "int8", "activations": True, "percentile": 99, "dedup": False, "checksums": False}),
    (["--target-bpw", "5.5", "--name", "small"], {"target_bpw": 5.5, "name": "small"}),
    (["--min-snr", "30", "--type", "*.1.*=q8", "--hessian", "moments.mcf"],
     {"min_snr": 30, "type": {"*.1.*": "q8"}, "hessian": "moments.mcf"}),
    (["--type", "Q3_K_M", "--hessian", "moments.mcf"], {"type": "Q3_K_M", "hessian": "moments.mcf"}),
    (["--type", "k3", "--exclude", "*.3.*", "--weights", "importance.npy"],
     {"type": "k3", "exclude": ["*.3.*"], "weights": "importance.npy"}),
])
def test_quantize_gives_the_bytes_of_the_command(weights, arguments, options):
    np.save("importance.npy", np.linspace(0.5, 2, 96).astype("f4"))
    save_moments()
    if arguments[:2] == ["--type", "q8"]:
        arguments = ["--type", "*=q8", *arguments[2:]]
    command("quantize", weights, "one.mcf", *arguments)
    report = coffer.dask.quantize(weights, "out.mcf", bytes_per_task=8000, **options)
    assert read("out.mcf") == read("one.mcf")
    assert sorted(os.listdir(".")) == ["importance.npy", "model.safetensors", "moments.mcf", "one.mcf", "out.mcf"]
    assert report["quantised"] > 0 and {row["name"] for row in report["tensors"]} >= {"norm", "layer.4.weight"}


def test_quantize_reports_what_one_process_reports(weights):
    save_moments()
    for moments in (None, "moments.mcf"):
        expected = coffer.mcf.quantize(weights, "one.mcf", "k4", hessian=moments, overwrite=True)
        assert coffer.dask.quantize(weights, "out.mcf", "k4", hessian=moments, bytes_per_task=8000,
                                    overwrite=True) == expected


def test_quantize_takes_folders_and_gguf(weights):
    os.mkdir("model")
    os.rename(weights, "model/model.safetensors")
    Path("model/config.json").write_text('{"model_type": "tiny"}')
    command("quantize", "model", "one.mcf", "--type", "k4")
    coffer.dask.quantize("model", "out.mcf", "k4", bytes_per_task=1)
    assert read("out.mcf") == read("one.mcf")
    command("pack", "model", "plain.mcf")
    command("convert", "plain.mcf", "model.gguf")
    command("quantize", "model.gguf", "two.mcf", "--type", "q8")
    coffer.dask.quantize("model.gguf", "out2.mcf", "q8")
    assert read("out2.mcf") == read("two.mcf")


def test_a_model_that_changes_during_the_job_is_an_error(weights, monkeypatch):
    from coffer.dask import _jobs

    real = _jobs._quantize_part

    def changing(*args):
        result = real(*args)
        touch(weights)
        return result

    monkeypatch.setattr(_jobs, "_quantize_part", changing)
    with pytest.raises(coffer.ChangedError, match="model.safetensors"):
        coffer.dask.quantize(weights, "out.mcf", "k4", bytes_per_task=8000)
    assert os.listdir(".") == [weights]


def test_quantize_says_what_is_wrong(weights):
    with pytest.raises(ValueError, match="pass type"):
        coffer.dask.quantize(weights, "out.mcf")
    with pytest.raises(ValueError, match="no tensor name matches"):
        coffer.dask.quantize(weights, "out.mcf", {"wrong*": "k4"})
    with pytest.raises(ValueError, match="same file"):
        coffer.dask.quantize(weights, weights, "k4", overwrite=True)
    coffer.mcf.save_file({"w": np.full((4, 32), np.nan, "f4")}, "nan.mcf")
    with pytest.raises(coffer.FormatError, match="nan.mcf: \"w\" is NaN"):
        coffer.dask.quantize("nan.mcf", "out.mcf", "k4")
    assert sorted(os.listdir(".")) == ["model.safetensors", "nan.mcf"]


# ---- Packing ----

@pytest.fixture
def texts(folder):
    for i in range(60):
        Path(f"data/{'odd' if i % 2 else 'even'}").mkdir(parents=True, exist_ok=True)
        Path(f"data/{'odd' if i % 2 else 'even'}/{i:03}.txt").write_text(f"text {i % 7} " * (i % 20 + 1))
    Path("data/extra.bin").write_bytes(b"\0")
    return "data"


@pytest.mark.parametrize("arguments, options", [
    ([], {}),
    (["--zstd", "--zstd-level", "9", "--dedup", "--page-size", "16K"],
     {"zstd": True, "zstd_level": 9, "dedup": True, "page_size": 16384}),
    (["--zstd", "--dictionary", "1024", "--exclude", "*3.txt"],
     {"zstd": True, "dictionary": 1024, "exclude": ["*3.txt"]}),
    (["--no-checksums", "--kind", "text"], {"checksums": False, "kind": "text"}),
])
def test_pack_gives_the_bytes_of_the_command(texts, arguments, options):
    expected = json.loads(command("pack", texts, "one.mldf", "--json", *arguments, expected=(0, 1)))
    report = coffer.dask.pack(texts, "out.mldf", samples_per_task=7, **options)
    assert read("out.mldf") == read("one.mldf")
    assert sorted(os.listdir(".")) == ["data", "one.mldf", "out.mldf"]
    for name in ("samples", "found", "packed", "skipped", "complete", "unit", "classes", "left_out"):
        assert report[name] == expected[name], name


def test_pack_takes_manifests_arrays_and_pictures(folder):
    rows = [f'{{"caption": "number {i}", "score": {i / 2}}}' for i in range(40)]
    Path("rows.jsonl").write_text("\n".join(rows))
    np.save("rows.npy", np.arange(120, dtype="f4").reshape(40, 3))
    Path("pictures").mkdir()
    for i in range(12):
        header = f"P6 {8 + i} 6 255\n".encode()
        Path(f"pictures/{i}.ppm").write_bytes(header + bytes(range(i, i + 6)) * (8 + i) * 3)
    for source, arguments, options in (("rows.jsonl", [], {}), ("rows.npy", [], {}), ("pictures", [], {}),
                                       ("pictures", ["--jpeg-quality", "70", "--max-size", "7"],
                                        {"jpeg_quality": 70, "max_size": 7})):
        command("pack", "--force", source, "one.mldf", *arguments)
        report = coffer.dask.pack(source, "out.mldf", samples_per_task=5, overwrite=True, **options)
        assert read("out.mldf") == read("one.mldf"), source
        assert report["complete"]


def test_pack_takes_shards_tables_and_several_folders(texts):
    for shard in range(2):
        with tarfile.open(f"shard{shard}.tar", "w") as tar:
            for i in range(10):
                for ending, data in (("txt", f"text {shard} {i}".encode()), ("cls", str(i % 3).encode())):
                    member = tarfile.TarInfo(f"{shard}{i:03}.{ending}")
                    member.size = len(data)
                    tar.addfile(member, io.BytesIO(data))
    rows = "".join(f"data/{'odd' if i % 2 else 'even'}/{i:03}.txt,{'big' if i > 20 else 'small'}\n" for i in range(40))
    Path("rows.csv").write_text("file,size\n" + rows)
    for inputs, arguments, options in ((["shard0.tar", "shard1.tar"], [], {}),
                                       (["rows.csv"], ["--labels", "size"], {"labels": "size"}),
                                       (["data/odd", "data/even"], [], {})):
        command("pack", "--force", *inputs, "one.mldf", *arguments, expected=(0, 1))
        coffer.dask.pack(inputs, "out.mldf", samples_per_task=6, overwrite=True, **options)
        assert read("out.mldf") == read("one.mldf"), inputs


def test_an_output_inside_the_input_is_not_packed(texts):
    coffer.dask.pack(texts, "data/out.mldf", samples_per_task=10)
    assert len(coffer.open("data/out.mldf")) == 60
    assert sorted(os.listdir("data")) == ["even", "extra.bin", "odd", "out.mldf"]
    with pytest.raises(ValueError, match="refusing to replace"):
        coffer.dask.pack(texts, "data/odd/001.txt", overwrite=True)
    assert os.listdir(".") == ["data"]


def test_an_input_that_changes_during_the_job_is_an_error(texts, monkeypatch):
    from coffer.dask import _jobs

    real = _jobs._pack_part

    def changing(*args):
        result = real(*args)
        touch("data/odd/001.txt")
        return result

    monkeypatch.setattr(_jobs, "_pack_part", changing)
    with pytest.raises(coffer.ChangedError, match="a file was changed"):
        coffer.dask.pack(texts, "out.mldf", samples_per_task=20)
    monkeypatch.setattr(_jobs, "_pack_part", lambda *args: (Path("data/odd/new.txt").write_text("new"), real(*args))[1])
    with pytest.raises(coffer.ChangedError, match="added, removed or changed"):
        coffer.dask.pack(texts, "out.mldf", samples_per_task=20)
    assert os.listdir(".") == ["data"]


def test_files_that_cannot_be_packed_are_named_or_left_out(folder):
    Path("pictures").mkdir()
    for i in range(9):
        Path(f"pictures/{i}.ppm").write_bytes(b"P6 2 2 255\n" + bytes(12) if i != 5 else b"P6 2 2 255\n")
    with pytest.raises(coffer.FormatError, match="5.ppm"):
        coffer.dask.pack("pictures", "out.mldf", samples_per_task=2)
    assert os.listdir(".") == ["pictures"]
    report = coffer.dask.pack("pictures", "out.mldf", samples_per_task=2, keep_going=True)
    assert [row["sample"] for row in report["left_out"]] == ["5.ppm"]
    assert report["skipped"] == 1 and not report["complete"]
    command("pack", "-k", "pictures", "one.mldf", expected=(1,))
    assert read("out.mldf") == read("one.mldf")


def test_pack_makes_models_too(weights):
    os.mkdir("model")
    os.rename(weights, "model/model.safetensors")
    command("pack", "model", "one.mcf", "--cast", "bf16")
    report = coffer.dask.pack("model", "out.mcf", cast="bf16")
    assert read("out.mcf") == read("one.mcf") and report["files"]
    assert sorted(os.listdir(".")) == ["model", "one.mcf", "out.mcf"]


def test_pack_says_what_is_wrong(texts):
    with pytest.raises(TypeError, match="unknown option qualty"):
        coffer.dask.pack(texts, "out.mldf", qualty=3)
    with pytest.raises(ValueError, match="it can be images"):
        coffer.dask.pack(texts, "out.mldf", kind="image")
    with pytest.raises(FileNotFoundError, match="nothing"):
        coffer.dask.pack("nothing", "out.mldf")
    assert os.listdir(".") == ["data"]


def test_a_worker_with_another_version_is_refused(texts, weights, monkeypatch):
    from coffer.dask import _parts

    real = _parts.same_version
    monkeypatch.setattr("coffer.dask._jobs.same_version", lambda client: real(client + ".1"))
    for job in (lambda: coffer.dask.pack(texts, "out.mldf"), lambda: coffer.dask.quantize(weights, "out.mcf", "k4")):
        with pytest.raises(RuntimeError, match="install the same version everywhere"):
            job()


def test_files_of_a_server_are_read_by_the_tasks(server, dataset, weights, matrix, folder):
    bag = coffer.dask.from_mldf(f"{server}/{dataset}", samples_per_task=10, fields=["label"])
    assert bag.npartitions == 3 and [sample["label"] for sample in bag.compute()] == list(range(25))
    assert coffer.dask.from_pycauset(f"{server}/{matrix}", chunks=2).sum().compute() == sum(range(12))
    coffer.dask.quantize(f"{server}/{weights}", "out.mcf", "k4", bytes_per_task=1)
    coffer.dask.quantize(weights, "local.mcf", "k4")
    assert coffer.diff("out.mcf", "local.mcf")["equal"]
    coffer.mldf.set_values(dataset, {(0, "label"): 77})
    with pytest.raises(coffer.ChangedError, match="changed while the job ran"):
        bag.compute()
    with pytest.raises(ValueError, match="tasks open paths and addresses"):
        coffer.dask.from_mldf("memory://train.mldf")
    with pytest.raises(ValueError, match="files are written to paths"):
        coffer.dask.to_mldf(bag, f"{server}/out.mldf")


def test_errors_travel_between_processes(folder):
    with pytest.raises(coffer.ChangedError) as caught:
        from coffer.dask._parts import expect

        expect({str(folder / "gone"): (1, 2, 3)})
    error = pickle.loads(pickle.dumps(caught.value))
    assert isinstance(error, coffer.ChangedError) and "gone" in str(error)
