# convert, repair and append write checksums: a flipped bit never passes check --full.
cat >flip.py <<'END'
import sys
data = bytearray(open(sys.argv[1], "rb").read())
data[int(sys.argv[3])] ^= 1 << int(sys.argv[4])
open(sys.argv[2], "wb").write(data)
END
try_flips() { # FILE: bits of the header, of the metadata, of the spaces after it and of the records
    size=$(stat -c %s "$1")
    passed=0
    for byte in 0 5 8 12 40 100 5000 $((size - 1)) $((size - 6)) $((size - 12)) $((size - 17)); do
        python3 flip.py "$1" flipped.mscan $byte 4
        if coffer check --full flipped.mscan >/dev/null 2>&1; then passed=$((passed + 1)); fi
    done
    echo "$1: flips that passed: $passed"
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
python3 flip.py converted.mscan flipped.mscan $(($(stat -c %s converted.mscan) - 2)) 3
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
