# A journal of another file of the same name is not applied, and neither is one of another user.
printf '1,2\n3,4\n' >m.csv
coffer convert m.csv m.pycauset --dtype f64
printf 'an older matrix of that name, which is gone' >gone
journal() { # HEAD SIZE: a journal that puts "evil" at 4096
    crc() { gzip -c | tail -c 8 | head -c 4; }
    body() {
        printf 'CFRJ\002\0\0\0'
        printf '\234\021\0\0\0\0\0\0' # old size, 4508
        printf '\001\0\0\0'
        if [ "$1" ]; then cat "$1"; else printf '\0\0\0\0'; fi
        printf '\053\0\0\0' # a head of 43 bytes
        crc <gone
        printf '\0\020\0\0\0\0\0\0\004\0\0\0evil'
    }
    body '' | crc >sum
    body sum
}
wc -c <m.pycauset
journal >m.pycauset-journal
coffer get m.pycauset values
echo "exit $?"
coffer set m.pycauset properties.a=1
echo "exit $?"
coffer repair m.pycauset
echo "exit $?"
rm m.pycauset-journal
coffer get m.pycauset values
echo "--- a journal of version 1, as 0.1 wrote it, that another user put there (only root can make one)"
if [ "$(id -u)" = 0 ]; then
    python3 - <<'END'
import os, struct, zlib
size = os.path.getsize("m.pycauset")
body = lambda crc: struct.pack("<4sIQII", b"CFRJ", 1, size, 1, crc) + struct.pack("<QI", 4096, 8) + struct.pack("<d", 666)
open("m.pycauset-journal", "wb").write(body(zlib.crc32(body(0))))
os.chown("m.pycauset-journal", 65534, 65534)
END
    coffer get m.pycauset values 2>/dev/null
    echo "exit $?"
    coffer set m.pycauset properties.a=1 2>/dev/null
    echo "exit $?"
    rm m.pycauset-journal
else
    printf 'exit 1\nexit 1\n'
fi
coffer get m.pycauset values
echo "--- a link and a pipe in the place of the journal"
ln -s elsewhere m.pycauset-journal
for target in missing present; do
    [ $target = present ] && printf 'CFRJ' >elsewhere
    coffer get m.pycauset values >/dev/null 2>&1
    echo "exit $?"
    coffer set m.pycauset properties.a=1 2>&1 | head -1
done
rm m.pycauset-journal
cat elsewhere
echo
mkfifo m.pycauset-journal
timeout 10 coffer get m.pycauset values
timeout 10 coffer set m.pycauset properties.a=1
ls
