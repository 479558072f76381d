"""Whatever is written can be read, and check finds nothing."""

import os

import numpy as np
from hypothesis import HealthCheck, given, settings, strategies as st
from hypothesis.extra import numpy as hnp

import coffer

quick = settings(max_examples=25, deadline=None, database=None, suppress_health_check=list(HealthCheck))
numbers = st.sampled_from(["i1", "u2", "i4", "f2", "f4", "f8"])
names = st.text(st.characters(blacklist_categories=("Cs", "Cc")), min_size=1, max_size=20)


def _arrays(dims):
    return numbers.flatmap(lambda kind: hnp.arrays(kind, hnp.array_shapes(min_dims=0, max_dims=dims, min_side=0, max_side=5)))


@quick
@given(st.dictionaries(names, _arrays(4), min_size=1, max_size=5))
def test_models(tensors):
    coffer.mcf.save_file(tensors, "m.mcf", overwrite=True)
    assert coffer.check("m.mcf", full=True).errors == 0
    with coffer.open("m.mcf") as model:
        assert set(model) == set(tensors)
        for name, values in tensors.items():
            np.testing.assert_array_equal(model[name], values)


@quick
@given(st.lists(st.fixed_dictionaries({"n": st.integers(-2**63, 2**63 - 1), "x": st.floats(allow_nan=False),
                                       "t": st.text(st.characters(blacklist_categories=("Cs",)), max_size=30),
                                       "b": st.binary(max_size=30)}), min_size=1, max_size=8))
def test_sets(samples):
    with coffer.mldf.create("s.mldf", {"n": "int", "x": "float", "t": "text", "b": "bytes"}, overwrite=True) as writer:
        writer.extend(samples)
    assert coffer.check("s.mldf", full=True).errors == 0
    with coffer.open("s.mldf") as data:
        assert [data[i] for i in range(len(data))] == samples


@quick
@given(hnp.arrays(st.sampled_from(["i4", "f4", "f8", "c16"]), hnp.array_shapes(min_dims=2, max_dims=2, max_side=7)))
def test_matrices(values):
    coffer.pycauset.write("m.pycauset", values, kind="dense", overwrite=True)
    assert coffer.check("m.pycauset", full=True).errors == 0
    with coffer.open("m.pycauset") as matrix:
        np.testing.assert_array_equal(matrix[:], values)


@quick
@given(hnp.arrays(np.dtype(coffer.mscan.RECORD), st.integers(0, 20), elements=st.tuples(
    st.integers(0, 9), st.just(0), st.integers(0, 65535), st.integers(0, 65535), st.integers(0, 65535))))
def test_scans(records):
    if os.path.exists("s.mscan"):
        os.remove("s.mscan")
    with coffer.mscan.create("s.mscan", model_name="x") as writer:
        writer.param("p")
        writer.sequence(records, 10)
    assert coffer.check("s.mscan", full=True).errors == 0
    with coffer.open("s.mscan") as scan:
        np.testing.assert_array_equal(scan[:], records)


# ---- Traces: written as heaptrack writes them, with the answers computed here ----

functions = st.text(st.characters(blacklist_categories=("Cs", "Cc", "Zs", "Zl", "Zp")), min_size=1, max_size=12)


def _heaptrack(names, kinds, events):
    """A file of heaptrack: a stack main -> name for each name, a kind of allocation (size, stack), and events."""
    lines = ["v 10500 3", "X program", "I 1000 100"]
    for text in ("libprogram", "main", *names):
        lines.append(f"s {len(text.encode()):x} {text}")
    lines += ["i 10 1 2", "t 1 0"]
    for number in range(len(names)):
        lines += [f"i {number + 32:x} 1 {number + 3:x}", f"t {number + 2:x} 1"]
    lines += [f"a {size:x} {stack % len(names) + 2:x}" for size, stack in kinds]
    for step, (kind, is_free) in enumerate(events):
        lines += [f"c {step:x}", f"{'-' if is_free else '+'} {kind % len(kinds):x}"]
    return "\n".join(lines).encode() + b"\n"


@quick
@given(st.lists(functions, min_size=1, max_size=4, unique=True),
       st.lists(st.tuples(st.integers(1, 1 << 20), st.integers(0, 3)), min_size=1, max_size=5),
       st.lists(st.tuples(st.integers(0, 4), st.booleans()), max_size=40))
def test_traces(names, kinds, wanted):
    live, events, peak, total, now = [0] * len(kinds), [], 0, 0, 0
    for kind, is_free in wanted:
        kind %= len(kinds)
        if is_free and live[kind] == 0:
            continue
        events.append((kind, is_free))
        live[kind] += -1 if is_free else 1
        now += -kinds[kind][0] if is_free else kinds[kind][0]
        total += 0 if is_free else kinds[kind][0]
        peak = max(peak, now)
    with open("t.heaptrack", "wb") as file:
        file.write(_heaptrack(names, kinds, events))
    coffer.convert("t.heaptrack", "t.mlyze", overwrite=True)
    assert coffer.check("t.mlyze", full=True).errors == 0
    with coffer.open("t.mlyze") as trace, coffer.open("t.heaptrack") as same:
        totals = trace.totals()
        assert (totals["peak_bytes"], totals["total_allocated_bytes"], totals["live_bytes_at_end"]) == (peak, total, now)
        assert totals["allocs"] == sum(not is_free for _, is_free in events) and len(trace) >= len(events)
        assert sum(row["live_bytes"] for row in trace.leaks(1000)) == now == trace.flame("live")["bytes"]
        expected = {}
        for (size, stack), count in zip(kinds, live):
            name = names[stack % len(names)]
            expected[name] = expected.get(name, 0) + size * count
        found = {}
        for row in trace.leaks(1000):
            found[row["stack"][-1][0]] = found.get(row["stack"][-1][0], 0) + row["live_bytes"]
        assert found == {name: size for name, size in expected.items() if size}
        assert same.totals() == totals and trace.diff(same)["equal"]
