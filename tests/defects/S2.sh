# convert, repair and append write checksums: a flipped bit never passes check --full.
cat >flip.py <<'END'
import os, sys
data = open(sys.argv[1], "rb").read()
os.makedirs("flips", exist_ok=True)
# Bits of the header, of the metadata, of the spaces after it and of the records.
for byte in (0, 5, 8, 12, 40, 100, 5000, -1, -6, -12, -17):
    flipped = bytearray(data)
    flipped[byte] ^= 16
    open(f"flips/{byte}.mscan", "wb").write(flipped)
END
try_flips() { # FILE
    python3 flip.py "$1"
    echo "$1: flips that passed: $(coffer check --full flips/*.mscan 2>/dev/null | grep -c ', ok')"
}
printf 'token_idx,param_id,block_idx,activation,grad_norm\n0,0,0,5,6\n0,1,0,7,8\n1,0,1,9,10\n1,1,0,50,60\n' >rows.csv
coffer convert rows.csv converted.mscan
coffer check --full converted.mscan
try_flips converted.mscan
coffer repair "$DATA/vectors/mscan/truncated-records.mscan" -o repaired.mscan >/dev/null
try_flips repaired.mscan
cp "$DATA/vectors/mscan/two-sequences.mscan" appended.mscan
chmod u+w appended.mscan
coffer append appended.mscan rows.csv
try_flips appended.mscan

# Verbs that read records stop at damage.
python3 flip.py converted.mscan
cp flips/-1.mscan flipped.mscan
for verb in get stats heatmap ls; do
    coffer $verb flipped.mscan >/dev/null
    echo "$verb: exit $?"
done
coffer diff converted.mscan flipped.mscan
echo "diff: exit $?"
coffer convert flipped.mscan out.csv
echo "convert: exit $?"
coffer append converted.mscan flipped.mscan
echo "append: exit $?"
coffer repair flipped.mscan
echo "repair: exit $?"
coffer check --full flipped.repaired.mscan
echo "check: exit $?"
