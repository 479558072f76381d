# An MScanWriter file whose metadata began without "sequences": repair keeps the right records or refuses.
cat >write.py <<'END'
import json, struct, sys
# What the MScanWriter does: metadata first, records, then the final metadata over the beginning.
def write(path, start, records, indent, growth=0):
    meta = dict(start)
    front = json.dumps(meta, indent=indent).encode()
    packed = b"".join(struct.pack("<IHHHH", *r) for r in records)
    data = bytearray(struct.pack("<5sHII", b"MSCAN", 1, 15 + len(front), 0) + front + packed)
    meta.setdefault("sequences", [])
    meta["sequences"] = meta["sequences"] + [{"sequence_id": 0, "num_tokens": 100, "source": "x" * growth}]
    front = json.dumps(meta, indent=indent).encode()
    front = struct.pack("<5sHII", b"MSCAN", 1, 15 + len(front), len(records)) + front
    data[:len(front)] = front
    open(path, "wb").write(data)

names = {"id_to_param_name_map": {"0": "wq", "1": "wk"}, "model_name": "m", "format_version": "1.1"}
records = [(i // 10, i % 2, i % 10 // 2, 1000 + i, 7 * i) for i in range(1000)]
for growth in range(48):
    write(f"missing-{growth}.mscan", names, records, 2, growth)
    write(f"compact-{growth}.mscan", names, records, None, growth)
    write(f"empty-{growth}.mscan", {**names, "sequences": []}, records, 2, growth)
# Everything 0: any division of the bytes into records makes sense, and the JSON grew in another place.
write("zeros.mscan", {**names, "sequences": [], "note": ""}, [(0, 0, 0, 0, 0)] * 1000, 2)
data = bytearray(open("zeros.mscan", "rb").read())
at = data.index(b'"note": ""')
data[at:at + 10] = b'"note": "grown"'
struct.pack_into("<I", data, 7, struct.unpack_from("<I", data, 7)[0] + 5)
del data[-5:]
open("zeros.mscan", "wb").write(data)
END
python3 write.py
right=0 wrong=0
for file in missing-*.mscan compact-*.mscan empty-*.mscan; do
    coffer repair "$file" -o out.mscan -f >/dev/null 2>&1
    status=$?
    # The last record is (99, 1, 4, 1999, 6993); every kept one follows the same rule.
    if [ $status -eq 1 ] && coffer get out.mscan --as csv 2>/dev/null | tail -n +2 | awk -F, '
        NR == 1 { first = $4 - 1000 }
        { i = first + NR - 1
          if ($1 != int(i / 10) || $2 != i % 2 || $3 != int(i % 10 / 2) || $4 != 1000 + i || $5 != 7 * i % 65536) bad = 1 }
        END { exit bad || NR < 900 || first + NR != 1000 }'
    then right=$((right + 1)); else wrong=$((wrong + 1)); fi
done
echo "right: $right, wrong: $wrong"

coffer check missing-0.mscan
coffer repair missing-0.mscan
echo "exit $?"
coffer repair zeros.mscan
echo "exit $?"
ls zeros*
