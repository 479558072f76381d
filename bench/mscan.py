"""Count, sum, min and max of both columns by parameter with numpy, DuckDB and Polars.

usage: mscan.py FILE OFFSET RECORDS THREADS RUNS

Prints one line of JSON for each peer: {"peer", "version", "load", "seconds": [...]}, or {"peer", "missing"}.
The columns are taken out of the packed records first ("load", seconds); the runs are the grouping alone.
"""
import json
import os
import sys
import time

path, offset, records, threads, runs = sys.argv[1], *map(int, sys.argv[2:6])
os.environ["POLARS_MAX_THREADS"] = str(threads)
METRICS = ("activation", "grad_norm")


def say(**values):
    print(json.dumps(values), flush=True)


def measure(name, version, load, work):
    work()
    seconds = []
    for _ in range(runs):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    say(peer=name, version=version, load=load, seconds=seconds)


def with_numpy(numpy, columns, load):
    def work():
        keys = columns["param_id"]
        result = {"count": numpy.bincount(keys)}
        for metric in METRICS:
            values = columns[metric]
            result[metric, "sum"] = numpy.bincount(keys, weights=values)
            low = numpy.full(65536, 65535, numpy.uint16)
            numpy.minimum.at(low, keys, values)
            high = numpy.zeros(65536, numpy.uint16)
            numpy.maximum.at(high, keys, values)
            result[metric, "min"], result[metric, "max"] = low, high
        return result

    if threads == 1:  # numpy does this on one thread, whatever it is given
        measure("numpy", numpy.__version__, load, work)


def with_duckdb(duckdb, columns, load):
    connection = duckdb.connect(config={"threads": threads})
    start = time.perf_counter()
    connection.register("columns", columns)
    connection.execute("CREATE TABLE scan AS SELECT * FROM columns")
    load += time.perf_counter() - start
    parts = ", ".join(f"sum({m}), min({m}), max({m})" for m in METRICS)
    query = f"SELECT param_id, count(*), {parts} FROM scan GROUP BY param_id"
    measure("DuckDB", duckdb.__version__, load, lambda: connection.execute(query).fetchall())


def with_polars(polars, columns, load):
    start = time.perf_counter()
    frame = polars.DataFrame(columns)
    load += time.perf_counter() - start
    parts = [polars.len()]
    for metric in METRICS:
        column = polars.col(metric)
        parts += [
            column.cast(polars.UInt64).sum().alias(metric + "_sum"),
            column.min().alias(metric + "_min"),
            column.max().alias(metric + "_max"),
        ]
    measure("Polars", polars.__version__, load, lambda: frame.group_by("param_id").agg(parts))


def main():
    try:
        import numpy
    except ImportError:
        for peer in ("numpy", "DuckDB", "Polars"):
            say(peer=peer, missing="numpy is not installed (make bench-peers)")
        return
    start = time.perf_counter()
    packed = numpy.memmap(
        path,
        dtype=[("token_idx", "<u4"), ("param_id", "<u2"), ("block_idx", "<u2"), ("activation", "<u2"), ("grad_norm", "<u2")],
        mode="r",
        offset=offset,
        shape=(records,),
    )
    columns = {name: numpy.ascontiguousarray(packed[name]) for name in ("param_id", *METRICS)}
    load = time.perf_counter() - start
    with_numpy(numpy, columns, load)
    for name, module, run in (("DuckDB", "duckdb", with_duckdb), ("Polars", "polars", with_polars)):
        try:
            peer = __import__(module)
        except ImportError:
            say(peer=name, missing="not installed (make bench-peers)")
            continue
        run(peer, columns, load)


main()
