# A file that ends inside its descriptors gets a finding, and a repair that cannot read them exits with 3.
set="$DATA/vectors/mldf/all-types-208.mldf"
for size in 40 73 200 280 2000 2150 2152; do
    head -c $size "$set" >cut.mldf
    coffer check cut.mldf | head -n 2
    coffer check --json cut.mldf | grep -o '"format":[^,]*'
    coffer repair cut.mldf -o out.mldf 2>&1 | head -n 1
    coffer repair cut.mldf -o out.mldf >/dev/null 2>&1
    echo "exit $?"
done
echo "# one field, and the last four bytes of its descriptor are missing"
printf '{"n": 1}\n' >list.jsonl
coffer pack list.jsonl one.mldf --page-size 4K >/dev/null
head -c $((73 + 205)) one.mldf >cut.mldf
coffer check cut.mldf
echo "exit $?"
echo "# descriptors that make no sense"
python3 - "$set" <<'END'
import sys
whole = bytearray(open(sys.argv[1], "rb").read())
def write(name, place, value):
    changed = bytearray(whole)
    changed[place:place + len(value)] = value
    open(name, "wb").write(changed)
write("size.mldf", 73 + 68, b"\0\0\0\0")
write("name.mldf", 73, b"\0")
write("text.mldf", 73, b"\xff\xfe")
write("flags.mldf", 73 + 66, b"\xff\xff")
END
for name in size name text flags; do
    coffer check $name.mldf | sed -n 1,2p
    coffer repair $name.mldf -o $name-2.mldf >said 2>&1
    echo "exit $?: $(head -n 2 said | tail -n 1)"
    [ ! -e $name-2.mldf ] || coffer check $name-2.mldf | head -n 2
done
