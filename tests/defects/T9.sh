# A newer version is noted, and bytes that are reserved are kept by repair and compress.
python3 "$DATA/support/trace.py" run.mlyze
python3 - <<'PY'
data = bytearray(open("run.mlyze", "rb").read())
newer = bytearray(data)
newer[4] = 7
open("newer.mlyze", "wb").write(newer)
data[100:104] = b"KEEP"
open("reserved.mlyze", "wb").write(data)
open("cut.mlyze", "wb").write(data[:-3])
PY
coffer check newer.mlyze
coffer peak newer.mlyze --by function --top 1
coffer check reserved.mlyze
echo "exit $?"
coffer repair cut.mlyze -o repaired.mlyze
echo "exit $?"
coffer compress reserved.mlyze -o packed.mlyze
coffer compress packed.mlyze --plain -o plain.mlyze
for name in repaired packed plain; do
    dd if=$name.mlyze bs=1 skip=100 count=4 2>/dev/null && echo
done
cmp reserved.mlyze plain.mlyze && echo 'the same bytes again'
coffer repair newer.mlyze -o newer-again.mlyze
cmp newer.mlyze newer-again.mlyze && echo 'nothing was changed'
