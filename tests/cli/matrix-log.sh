# The states a file has been in.
m=$DATA/vectors/pycauset
cp "$m/dense-f64.pycauset" m.pycauset
coffer set m.pycauset properties.label=one >/dev/null
coffer set m.pycauset properties.label=two properties.long="$(printf '%0100d' 7)" >/dev/null
coffer set m.pycauset --delete properties.long --json properties.tags='["a"]' >/dev/null
coffer set m.pycauset --json 'provenance={"date": "2026-11-15"}' >/dev/null
coffer log m.pycauset
coffer log m.pycauset --max 1
coffer log m.pycauset --json | python3 -m json.tool --no-ensure-ascii | head -60
echo "# a commit that was never finished"
python3 - <<'END'
import struct
with open("m.pycauset", "r+b") as file:
    data = file.read()
    slots = [struct.unpack_from("<7Q", data, at) for at in (16, 144)]
    new = max(range(2), key=lambda i: slots[i][0])
    old = slots[1 - new]
    file.seek(16 + 128 * new)
    file.write(bytes(128))
END
coffer log m.pycauset --max 2
coffer check m.pycauset
echo "exit $?"
echo "# going back"
coffer info m.pycauset --generation 2 --json | grep -o '"generation":[0-9]*'
coffer info m.pycauset --generation 77 2>&1
echo "exit $?"
coffer repair m.pycauset --to 2 -o back.pycauset
coffer get back.pycauset properties
coffer log back.pycauset
coffer repair m.pycauset --to 2 --in-place
coffer get m.pycauset properties.label
coffer repair m.pycauset --to 99 2>&1
echo "exit $?"
coffer repair m.pycauset --to 0 2>&1
echo "exit $?"
coffer log "$DATA/compat/pycauset/vector-cached-ref.pycauset"
coffer log missing.pycauset 2>&1
echo "exit $?"
coffer log "$m/both-slots-corrupt.pycauset" 2>&1
echo "exit $?"
coffer log "$DATA/vectors/mscan/two-sequences.mscan" 2>&1
echo "exit $?"
ls
