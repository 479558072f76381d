# Rows and tables are compared with their checksum before anything is taken from them, in every verb that reads a set.
seq 1 40 | sed 's/.*/{"label": &, "text": "caption of sample &"}/' >list.jsonl
coffer pack list.jsonl good.mldf --page-size 4K >/dev/null
python3 - <<'END'
import struct
whole = bytearray(open("good.mldf", "rb").read())
rows, = struct.unpack_from("<Q", whole, 9 + 32)
def write(name, place):
    changed = bytearray(whole)
    changed[place] ^= 4
    open(name, "wb").write(changed)
write("row.mldf", rows + 24 * 7)   # the label of sample 7
write("table.mldf", len(whole) - 4)  # a checksum in the allocation table
write("header.mldf", 9 + 4)        # the flag that says that there are checksums
END
for set in row table header; do
    echo "# $set"
    for verb in "get $set.mldf 3.text" "head $set.mldf -n 2" "stats $set.mldf" "diff good.mldf $set.mldf" \
        "compact $set.mldf -o out.mldf" "concat good.mldf $set.mldf out.mldf" "split $set.mldf --parts a=0.5,b=0.5 -o parts" \
        "convert $set.mldf out.jsonl" "append good.mldf $set.mldf" "delete $set.mldf 1" "set $set.mldf 2.label=9"; do
        coffer $verb >out 2>err
        echo "exit $?: ${verb%% *}: $(head -n 1 err | cut -d ' ' -f 3-)"
        [ ! -e out.mldf ] && [ ! -e out.jsonl ] && [ ! -e parts ] || echo "something was written"
        rm -rf out.mldf out.jsonl parts
    done
    coffer check --full $set.mldf | sed 's/ at *[0-9]* / at N /; s/, [0-9]* to [0-9]*, / /; s/[0-9a-f]\{8\}/CRC/g'
done
coffer check --full good.mldf
