# set, delete, concat and split for scans; terms are explained; findings for what passed silently.
cp "$DATA/vectors/mscan/two-sequences.mscan" s.mscan
chmod u+w s.mscan
coffer set s.mscan model_name=renamed block_size=64 params.0=model.layers.0.q sequences.1.source='second text' note='{"a": [1]}'
coffer get s.mscan model_name
coffer get s.mscan block_size
coffer get s.mscan sequences --as csv
coffer get s.mscan metadata.note.a.0
coffer get s.mscan params --as csv | head -2
coffer check --full s.mscan
coffer set s.mscan --delete note --string block_size=64
coffer get s.mscan note
coffer set s.mscan sequences.0.num_tokens=7
coffer set s.mscan checksums=1
coffer set s.mscan nothing.here.x=1
coffer set s.mscan

coffer concat s.mscan "$DATA/vectors/mscan/two-sequences.mscan" all.mscan
coffer ls all.mscan
coffer check --full all.mscan
coffer concat s.mscan s.mscan
coffer concat s.mscan s.mscan all.mscan
mkdir parts
coffer split all.mscan -o parts
coffer split all.mscan --every 3 -o parts --force --json
mkdir linked
ln -s ../s.mscan linked/all-3.mscan
coffer split all.mscan --every 3 -o linked --force
ls linked
coffer concat parts/all-0.mscan parts/all-3.mscan again.mscan
coffer diff all.mscan again.mscan
coffer delete all.mscan 1..3
coffer ls all.mscan
coffer delete all.mscan --param '*.q_proj.weight'
coffer stats all.mscan --by param --csv | cut -d, -f2,3
coffer check --full all.mscan
coffer delete all.mscan 17
coffer delete all.mscan

# A scan with marks of a repair is not copied until they are accepted.
python3 - <<'END'
data = bytearray(open("again.mscan", "rb").read())
data[-1] ^= 1
open("bent.mscan", "wb").write(data)
END
coffer repair bent.mscan >/dev/null
coffer split bent.repaired.mscan
coffer convert bent.repaired.mscan bent.csv
coffer stats bent.repaired.mscan >/dev/null
echo "exit $?"
coffer set bent.repaired.mscan --delete damage
coffer check --full bent.repaired.mscan

# What was not reported before.
python3 - <<'END'
import json, struct
meta = json.dumps({"id_to_param_name_map": {"0": "w"}, "format_version": "1.1",
                   "sequences": [{"sequence_id": 0, "num_tokens": 1, "source": 7},
                                 {"sequence_id": 5, "num_tokens": 1}]}).encode()
open("odd.mscan", "wb").write(struct.pack("<5sHII", b"MSCAN", 1, 15 + len(meta), 0) + meta)
END
coffer check odd.mscan
coffer help stats mscan | grep -c -E 'sps \(surprise\)|dsc is sps by parameter|saturated counts'
