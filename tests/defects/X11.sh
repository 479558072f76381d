# Descriptors alone cannot make a verb take gigabytes: the size of a row is bounded before memory is allocated.
python3 - <<'END'
import struct
def write(path, samples):
    body = struct.pack("<64sHHII128s4x", b"label", 1, 0, 8, 0, b"") + struct.pack("<64sHHII128s4x", b"huge", 999, 0, 3 << 30, 0, b"")
    header = struct.pack("<HHIQHHI4Q8x", 1, 0, 1, samples, 2, 0, 4096, 73, 4096, 4096, 4096)
    open(path, "wb").write((b"\x89MLDF\r\n\x1a\n" + header + body).ljust(4096, b"\0"))
write("huge.mldf", 0)
write("other.mldf", 0)
END
for verb in "check huge.mldf" "info huge.mldf" "compact huge.mldf -o out.mldf" "concat huge.mldf huge.mldf out.mldf" \
    "repair huge.mldf -o out.mldf" "head huge.mldf" "split huge.mldf --parts a=0.5,b=0.5" "append huge.mldf other.mldf"; do
    coffer $verb 2>&1
    echo "exit $?: ${verb%% *}"
done
ls
