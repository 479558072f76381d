"""Jobs of coffer.dask on a cluster of processes, one of which is killed while it works."""

import os
import signal
from pathlib import Path

import numpy as np
import pytest

import coffer

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")
import dask.array  # noqa: E402
import dask.bag  # noqa: E402

import coffer.dask  # noqa: E402
from conftest import ROOT, latest  # noqa: E402


@pytest.fixture(scope="module")
def triggers(tmp_path_factory):
    """A folder: the first worker that calls a function of the C part whose name is there dies in the middle of it."""
    return tmp_path_factory.mktemp("triggers")


@pytest.fixture(scope="module")
def processes(triggers):
    # A busy machine needs longer than the usual 15 seconds to start a worker again; the cluster would then end it, which
    # counts as another death of its tasks.
    with dask.config.set({"distributed.comm.timeouts.connect": "5 minutes", "distributed.comm.timeouts.tcp": "5 minutes",
                          "distributed.deploy.lost-worker-timeout": "5 minutes",
                          "distributed.scheduler.allowed-failures": 1,
                          "distributed.nanny.pre-spawn-environ.PYTHONDONTWRITEBYTECODE": "1"}):
        with distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None,
                                      silence_logs=100) as local, distributed.Client(local) as client:
            client.wait_for_workers(2)
            register = getattr(client, "register_plugin", None) or client.register_worker_plugin
            register(dying_functions(str(triggers)))
            yield client


@pytest.fixture
def cluster(processes):
    """Two workers that live, also after a test that killed one."""
    processes.wait_for_workers(2)
    return processes


def dying_functions(folder):
    class Dying(distributed.WorkerPlugin):
        """Workers that are started again have it, too."""

        name = "dying"

        def setup(self, worker):
            from coffer import _core

            for name in ("quantize", "pack_set"):
                setattr(_core, name, self.dying(name, getattr(_core, name)))

        def dying(self, name, real):
            def call(*args):
                try:
                    os.unlink(os.path.join(folder, name))
                except FileNotFoundError:
                    return real(*args)
                out = next(arg for arg in args if isinstance(arg, str) and ".parts-" in arg)
                with open(f"{out}.half", "w") as half:  # as a write leaves it that is killed
                    half.write("half")
                real(*args[:-1], lambda *_: os.kill(os.getpid(), signal.SIGKILL))
                os.kill(os.getpid(), signal.SIGKILL)

            return call

    return Dying()


def die_once(flag):
    """Kills the process that calls it first."""
    try:
        os.close(os.open(flag, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return
    os.kill(os.getpid(), signal.SIGKILL)


def files(folder="."):
    return sorted(os.listdir(folder))


def test_a_set_is_read_although_a_worker_dies(cluster, dataset, folder):
    flag, die = str(folder / "died"), die_once
    bag = coffer.dask.from_mldf(dataset, samples_per_task=5)
    labels = bag.map(lambda sample: (die(flag), sample["label"])[1] if sample["label"] == 12 else sample["label"])
    assert labels.compute() == list(range(25))
    assert files() == ["died", "train.mldf"]


def test_a_set_is_written_although_a_worker_dies(cluster, folder):
    flag, die = str(folder / "died"), die_once

    def sample(i):
        if i == 57:
            die(flag)
        return {"label": i, "text": f"text {i}"}

    bag = dask.bag.from_sequence(range(100), npartitions=8).map(sample)
    coffer.dask.to_mldf(bag, folder / "out.mldf")
    assert files() == ["died", "out.mldf"]
    with coffer.mldf.create("one.mldf") as writer:
        writer.extend({"label": i, "text": f"text {i}"} for i in range(100))
    assert Path("out.mldf").read_bytes() == Path("one.mldf").read_bytes()


def test_a_matrix_is_written_although_a_worker_dies(cluster, folder):
    flag, die = str(folder / "died"), die_once

    def block(values):
        if values[0, 0] == 0:
            die(flag)
        return values * 2

    values = np.arange(600.0).reshape(20, 30)
    array = dask.array.from_array(values, chunks=(7, 11)).map_blocks(block, dtype="f8", meta=np.empty((0, 0)))
    coffer.dask.to_pycauset(array, folder / "out.pycauset")
    assert files() == ["died", "out.pycauset"]
    coffer.pycauset.write("one.pycauset", values * 2)
    assert Path("out.pycauset").read_bytes() == Path("one.pycauset").read_bytes()


def test_a_model_is_quantized_although_a_worker_dies(cluster, triggers):
    random = np.random.default_rng(3)
    coffer.mcf.save_file({f"w{i}": random.normal(size=(64, 128)).astype("f4") for i in range(6)}, "model.mcf")
    coffer.mcf.quantize("model.mcf", "one.mcf", "k4")
    (triggers / "quantize").touch()
    coffer.dask.quantize("model.mcf", "out.mcf", "k4", bytes_per_task=1)
    assert files(triggers) == [] and files() == ["model.mcf", "one.mcf", "out.mcf"]
    assert Path("out.mcf").read_bytes() == Path("one.mcf").read_bytes()


def test_a_set_is_packed_although_a_worker_dies(cluster, triggers):
    os.mkdir("data")
    for i in range(50):
        Path(f"data/{i:02}.txt").write_text(f"text {i}")
    coffer.dask.pack("data", "one.mldf", samples_per_task=50)
    (triggers / "pack_set").touch()
    report = coffer.dask.pack("data", "out.mldf", samples_per_task=9)
    assert files(triggers) == [] and files() == ["data", "one.mldf", "out.mldf"] and len(files("data")) == 50
    assert Path("out.mldf").read_bytes() == Path("one.mldf").read_bytes()
    assert report["packed"] == 50 and report["complete"]


def test_an_error_of_a_task_names_the_file(cluster, folder):
    coffer.mcf.save_file({"bad": np.full((4, 32), np.inf, "f4")}, "model.mcf")
    with pytest.raises(coffer.FormatError, match="model.mcf: \"bad\" is infinite") as caught:
        coffer.dask.quantize("model.mcf", "out.mcf", "k4")
    assert caught.value.code == "bad-value" and files() == ["model.mcf"]


def test_the_example_of_the_guide_is_true(cluster, folder):
    text = (ROOT / "docs" / "python.md").read_text().split("## More than one machine")[1]
    block = text.split("```python norun\n")[1].split("```")[0]
    lines = [line for line in block.splitlines() if "Client(" not in line]
    assert len(lines) == len(block.splitlines()) - 1
    coffer.mcf.save_file({"w": np.ones((32, 64), "f4")}, "w.safetensors")
    os.mkdir("llama")
    os.rename("w.safetensors", "llama/model.safetensors")
    for i in range(5):
        os.makedirs(f"pictures/{i}")
        Path(f"pictures/{i}/a.ppm").write_bytes(b"P6 2 2 255\n" + bytes([i]) * 12)
    exec("\n".join(lines), {})
    assert files() == ["llama", "llama-k4.mcf", "pictures", "threes.mldf", "train.mldf"]
    with coffer.open("threes.mldf", decode=False) as threes, coffer.open("train.mldf", decode=False) as train:
        assert threes.schema == train.schema and threes[:] == [train[3]]
    assert coffer.check("llama-k4.mcf", full=True).ok


@latest
def test_a_worker_that_dies_again_and_again_fails_the_job_and_leaves_nothing(cluster, folder):
    def sample(i):
        if i == 5:
            os.kill(os.getpid(), signal.SIGKILL)
        return {"label": i}

    bag = dask.bag.from_sequence(range(10), npartitions=2).map(sample)
    with pytest.raises(distributed.scheduler.KilledWorker):
        coffer.dask.to_mldf(bag, "out.mldf", {"label": "int"})
    assert files() == []
