# A journal beside the file: the old state is shown, and repair rolls back to it.
cp "$DATA/vectors/mscan/two-sequences.mscan" scan.mscan
cp scan.mscan before
python3 - <<'END'
import struct, zlib
old = open("scan.mscan", "rb").read()
saved = old[:15]
body = struct.pack("<QI", 0, len(saved)) + saved
head = b"CFRJ" + struct.pack("<IQI", 1, len(old), 1)
crc = zlib.crc32(head + b"\0\0\0\0" + body)
open("scan.mscan-journal", "wb").write(head + struct.pack("<I", crc) + body)
with open("scan.mscan", "r+b") as file:
    file.write(b"half a header!!")
    file.seek(0, 2)
    file.write(b"new records")
END
coffer info scan.mscan
echo "exit $?"
coffer check scan.mscan
echo "exit $?"
coffer repair scan.mscan -o copy.mscan
cmp copy.mscan before && ls
coffer repair scan.mscan --json
echo "exit $?"
cmp scan.mscan before && ls
coffer repair scan.mscan
echo "exit $?"

# A journal that was never finished says nothing, and goes.
printf CFRJ > scan.mscan-journal
coffer repair scan.mscan
echo "exit $?"
cmp scan.mscan before && ls

# One that does not fit the file is not applied.
python3 - <<'END'
import struct, zlib
head = b"CFRJ" + struct.pack("<IQI", 1, 1000000, 0)
open("scan.mscan-journal", "wb").write(head + struct.pack("<I", zlib.crc32(head + b"\0\0\0\0")))
END
coffer check scan.mscan 2>&1
echo "exit $?"
coffer repair scan.mscan 2>&1
echo "exit $?"
cmp scan.mscan before && ls
