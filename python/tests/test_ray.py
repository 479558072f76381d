"""Training sets in Ray Data. Debian has no Ray: `make check-python-latest` runs these tests."""

import os

import numpy as np
import pytest

import coffer

ray = pytest.importorskip("ray")
pytest.importorskip("ray.data")
import coffer.ray  # noqa: E402


@pytest.fixture(scope="module", autouse=True)
def cluster(tmp_path_factory):
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, configure_logging=False,
             object_store_memory=100 << 20)
    yield
    ray.shutdown()


def test_samples_become_rows(dataset):
    rows = coffer.ray.read_mldf(dataset, samples_per_task=10).take_all()
    assert sorted(row["label"] for row in rows) == list(range(25))
    seven = next(row for row in rows if row["label"] == 7)
    assert seven["text"] == "caption 7" and seven["raw"] == bytes([7])
    np.testing.assert_array_equal(seven["vector"], np.full(3, 7, "f4"))


def test_some_fields_are_read(dataset):
    found = coffer.ray.read_mldf(dataset, fields=["label", "score"], override_num_blocks=4)
    assert found.count() == 25 and found.sum("label") == 300
    assert set(found.schema().names) == {"label", "score"}
    with pytest.raises(KeyError, match="no field wrong"):
        coffer.ray.read_mldf(dataset, fields=["wrong"])


def test_a_file_that_changes_is_an_error(dataset):
    found = coffer.ray.read_mldf(dataset, samples_per_task=5)
    os.utime(dataset, (1, 1))
    with pytest.raises(Exception, match="train.mldf: the file changed"):
        found.take_all()
