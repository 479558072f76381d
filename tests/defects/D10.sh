# A set that was cut off keeps the samples in front of the cut: rows and table entries have a second copy between payloads.
python3 - <<'END'
import json
for name, count, words in ("small", 60, 100), ("large", 400, 1500):
    with open(name + ".jsonl", "w") as file:
        for i in range(count):
            file.write(json.dumps({"n": i, "text": "word %d " % i * words}) + "\n")
END
for name in small large; do
    coffer pack $name.jsonl $name.mldf --page-size 4K >/dev/null
    coffer check --full $name.mldf
done
python3 - <<'END'
import json, struct, subprocess
for name, words in ("small", 100), ("large", 1500):
    whole = open(name + ".mldf", "rb").read()
    table, = struct.unpack_from("<Q", whole, 9 + 48)
    places = [dict(zip(("offset", "size"), struct.unpack_from("<QI", whole, at))) for at in range(table, len(whole), 16)]
    ends = [entry["offset"] + entry["size"] for entry in places]
    for percent in 30, 60, 95:
        size = len(whole) * percent // 100
        open("cut.mldf", "wb").write(whole[:size])
        assert subprocess.run(["coffer", "check", "cut.mldf"], stdout=subprocess.DEVNULL).returncode == 1
        done = subprocess.run(["coffer", "repair", "cut.mldf", "-o", "saved.mldf", "--force"], stdout=subprocess.DEVNULL)
        assert done.returncode == 1, done
        assert subprocess.run(["coffer", "check", "--full", "saved.mldf"], stdout=subprocess.DEVNULL).returncode == 0
        out = subprocess.run(["coffer", "get", "saved.mldf", "--field", "text", "--json"], stdout=subprocess.PIPE, check=True).stdout
        texts = json.loads(out)
        assert texts == ["word %d " % i * words for i in range(len(texts))]
        # At most 16 KiB of values, or one large sample, in front of the cut are not yet in a block.
        there = sum(end <= size for end in ends)
        missed = sum(end <= size for end in ends[len(texts):])
        assert len(texts) and sum(e["size"] for e in places[len(texts):there]) <= 32 << 10, (percent, len(texts), there)
        print("%s, cut at %d %%: saved all but %s of the samples whose values are there" % (name, percent, "a few" if missed else "none"))
END
echo "# what the tutorial's reader does: header, rows and values by their pointers, sizes from the allocation table"
python3 - <<'END'
import bisect, struct
whole = open("small.mldf", "rb").read()
assert whole[:9] == b"\x89MLDF\r\n\x1a\n"
major, minor, flags, samples, fields, _, page, descriptors, metadata, data, table = struct.unpack_from("<HHIQHHI4Q", whole, 9)
entries = [struct.unpack_from("<QII", whole, at) for at in range(table, len(whole), 16)]
starts = [entry[0] for entry in entries]
assert starts == sorted(starts) and (len(whole) - table) % 16 == 0
for i in range(samples):
    n, at, size = struct.unpack_from("<qQI", whole, metadata + 24 * i)
    assert n == i and entries[bisect.bisect_left(starts, at)][:2] == (at, size)
    assert whole[at:at + size].decode() == "word %d " % i * 100
print("%d samples" % samples)
END
