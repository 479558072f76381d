# Damage in the tables that say where the data is.
flip() { # FROM TO OFFSET BIT
    python3 - "$@" <<'EOF'
import sys
data = bytearray(open(sys.argv[1], "rb").read())
data[int(sys.argv[3])] ^= 1 << int(sys.argv[4])
open(sys.argv[2], "wb").write(data)
EOF
}

# A flipped bit in the version of the index: the tensors are there, and are saved.
printf '1,2,3\n4,5,6\n7,8,9.5\n' >m.csv
coffer convert m.csv m.pycauset && coffer convert m.pycauset a.npy && coffer pack a.npy good.mcf >pack.txt || exit
index=$(coffer ls good.mcf --what sections --json | python3 -c '
import json, sys
print([s["offset"] for s in map(json.loads, sys.stdin) if s.get("name") == "TensorIndex"][0] + 2)')
flip good.mcf index.mcf "$index" 4
coffer repair index.mcf -o index-repaired.mcf
echo "exit $?"
coffer diff good.mcf index-repaired.mcf

# Rows that were overwritten are taken from the copy, like rows that are missing.
printf '{"id":%d,"text":"sample %d"}\n' 1 1 2 2 3 3 >rows.jsonl
coffer convert rows.jsonl good.mldf
python3 - <<'EOF'
data = bytearray(open("good.mldf", "rb").read())
start = data.index(b"sample 1") - 200
data[start:start + 512] = bytes(512)
open("rows.mldf", "wb").write(data)
EOF
coffer repair rows.mldf --from good.mldf -o rows-repaired.mldf
echo "exit $?"
coffer diff good.mldf rows-repaired.mldf
