# Every bit of a trace that coffer writes is covered by a checksum, the times of blocks and plain traces too.
python3 "$DATA/support/trace.py" plain.mlyze
coffer compress plain.mlyze -o packed.mlyze
coffer compress packed.mlyze --plain -o back.mlyze
cmp plain.mlyze back.mlyze && echo 'the same bytes again'
printf 'main;work 100\nmain 50\n' >a.collapsed
coffer convert a.collapsed own.mlyze
coffer compress own.mlyze --plain -o own-plain.mlyze
coffer check --full own.mlyze own-plain.mlyze
python3 - <<'PY'
import struct
def flip(name, out, at, bit):
    data = bytearray(open(name, "rb").read())
    data[at] ^= 1 << bit
    open(out, "wb").write(data)
data = open("packed.mlyze", "rb").read()
block = 256 + struct.unpack_from("<I", data, 16)[0]
flip("packed.mlyze", "time.mlyze", block + 16, 3)
flip("packed.mlyze", "count.mlyze", 32, 0)
flip("packed.mlyze", "reserved.mlyze", 200, 5)
data = open("own-plain.mlyze", "rb").read()
flip("own-plain.mlyze", "size.mlyze", len(data) - 5, 1)
flip("own-plain.mlyze", "start.mlyze", 8, 0)
flip("own-plain.mlyze", "digits.mlyze", data.index(b'coffer_crc32":"') + 15, 0)
PY
for name in time count reserved size start digits; do
    coffer check --full $name.mlyze
    echo "exit $?"
done
coffer peak size.mlyze
echo "exit $?"
