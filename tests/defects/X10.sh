# 512 bytes cut out of the records: repair must not make up a sequence of four billion tokens.
python3 - <<'END'
import json, struct
meta = json.dumps({"id_to_param_name_map": {"0": "wq", "1": "wk"}, "model_name": "m", "format_version": "1.1",
                   "sequences": [{"sequence_id": 0, "num_tokens": 60}]}).encode()
records = b"".join(struct.pack("<IHHHH", i // 10, i % 2, i % 5, 40000 + i, 60000 - i) for i in range(600))
data = struct.pack("<5sHII", b"MSCAN", 1, 15 + len(meta), 600) + meta + records
cut = 15 + len(meta) + 3000
open("cut.mscan", "wb").write(data[:cut] + data[cut + 512:])
# The same, with as many bytes after it, so that the header agrees with the size.
open("filled.mscan", "wb").write(data[:cut] + data[cut + 512:] + data[-512:])
open("good.mscan", "wb").write(data)
END
coffer check cut.mscan
coffer repair cut.mscan
echo "exit $?"
coffer info cut.repaired.mscan | grep -E 'records|tokens|sequences'
coffer get good.mscan --as csv >good.csv
coffer get cut.repaired.mscan --as csv >cut.csv
echo "records that the original does not have: $(grep -vxFc -f good.csv cut.csv)"

coffer repair filled.mscan >filled.txt
echo "exit $?"
grep -o 'records dropped.*' filled.txt
coffer ls filled.repaired.mscan

# A scan of our own: what could be verified is known, and the rest stays marked.
coffer get good.mscan --as csv -o good.csv -f
coffer convert good.csv ours.mscan
size=$(stat -c %s ours.mscan)
{ head -c 18000 ours.mscan; tail -c $((size - 18512)) ours.mscan; } >ours-cut.mscan
coffer repair ours-cut.mscan
echo "exit $?"
coffer check ours-cut.repaired.mscan
echo "exit $?"
