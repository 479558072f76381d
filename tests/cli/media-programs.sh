# FLAC, MP3, Ogg, WebP and TIFF are decoded by programs: what a file does to a codec is an error of one call.
mkdir media
cp "$DATA"/media/ramp.flac "$DATA"/media/tone.mp3 "$DATA"/media/tone.ogg "$DATA"/media/tone.opus media
coffer pack media sounds.mldf --decode | sed 's/, [0-9.]* KiB.*//'
coffer check --decode sounds.mldf
for sample in 0 1 2 3; do
    coffer get sounds.mldf $sample.audio --as npy | wc -c
done
mkdir pictures
cp "$DATA"/media/small.webp "$DATA"/media/small.tiff pictures
coffer pack pictures pictures.mldf --decode | sed 's/, [0-9.]* KiB.*//'

echo "# damaged bytes"
mkdir damaged
python3 - media pictures damaged <<'END'
import os, sys
for folder in sys.argv[1:3]:
    for name in sorted(os.listdir(folder)):
        data = bytearray(open(os.path.join(folder, name), "rb").read())
        for at in range(len(data) // 2, len(data), 7):
            data[at] ^= 0x55
        open(os.path.join(sys.argv[3], name), "wb").write(data)
END
coffer pack damaged damaged.mldf --decode >/dev/null 2>&1
echo "ended by a signal: $([ $? -gt 127 ] && echo yes || echo no)"

echo "# a program that ends, crashes or talks nonsense"
mkdir modules
cat >modules/program <<'END'
#!/usr/bin/env python3
import os, signal, socket, struct, sys
link = socket.socket(fileno=3)
version = os.environ["VERSION"].encode() + b"\0" + b"1.0\0"
link.sendall(struct.pack("<II", 0, len(version)) + version)
link.recv(8)
if os.environ["MODE"] == "crashes":
    os.kill(os.getpid(), signal.SIGSEGV)
elif os.environ["MODE"] == "data":
    link.sendall(struct.pack("<II", 3, 1 << 20) + bytes(1 << 20))
elif os.environ["MODE"] == "done":
    link.sendall(struct.pack("<II", 4, 4) + bytes(4))
elif os.environ["MODE"] == "unknown":
    link.sendall(struct.pack("<II", 999, 0))
while os.environ["MODE"] != "ends" and link.recv(65536):
    pass
END
chmod +x modules/program
cp modules/program modules/coffer-sound
cp modules/program modules/coffer-webp
VERSION=$(coffer --version | sed -n 's/^coffer //p')
export VERSION COFFER_MODULE_PATH="$PWD/modules"
for MODE in ends crashes data done unknown; do
    export MODE
    coffer get sounds.mldf 0.audio --as npy 2>&1 >/dev/null | sed "s/^/$MODE: /"
    coffer pack --decode pictures new.mldf -f 2>&1 | grep -i webp | sed "s/^/$MODE: /"
done
