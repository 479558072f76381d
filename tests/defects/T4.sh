# Frames without symbols are compared by module and offset, so that two runs of one program do not differ.
cat >make.py <<'PY'
import sys
base, out, raw = int(sys.argv[2], 16), sys.argv[1], "raw" in sys.argv
lines = ["v 10400 %d" % (2 if raw else 3), "X ./app", "I 1000 100"]
if raw:
    lines += ["m x %x 0 2000" % base, "m /usr/lib/libx.so %x 0 5000" % (base + 0x10000)]
    lines += ["t %x 0" % (base + 0x1190), "t %x 1" % (base + 0x11234), "+ 40 2 1000"]
else:
    lines += ["s 5 ./app", "s 10 /usr/lib/libx.so"]
    lines += ["i %x 1" % (base + 0x1190), "i %x 2" % (base + 0x11234), "t 1 0", "t 2 1", "a 40 2", "+ 0"]
open(out, "w").write("\n".join(lines) + "\n")
PY
for form in raw interpreted; do
    python3 make.py a.heaptrack 555500000000 $form
    python3 make.py b.heaptrack 7f12ab400000 $form
    coffer flame a.heaptrack --what leaks
    coffer flame b.heaptrack --what leaks
    coffer diff a.heaptrack b.heaptrack
    echo "exit $?"
    coffer convert -q -f a.heaptrack a.mlyze 2>/dev/null
    coffer convert -q -f b.heaptrack b.mlyze 2>/dev/null
    coffer diff a.mlyze b.mlyze >/dev/null
    echo "exit $? for traces made of them"
done
