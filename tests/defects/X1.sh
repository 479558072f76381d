# HDF5 files are read by a program of its own: what damaged files do to libhdf5 is an error, not a crash.
exec 2>&1
h5=$DATA/hdf5
echo "a group that contains itself"
coffer ls "$h5/group-in-itself.h5"
coffer convert "$h5/group-in-itself.h5" m.pycauset && coffer convert m.pycauset - --to csv
echo "bytes that are not in a file"
coffer ls - <"$h5/two-datasets.h5"
echo "a program that crashes, hangs up, lies, or is of another version"
mkdir bad
cat >bad/coffer-hdf5 <<'PY'
#!/usr/bin/env python3
import os, signal, socket, struct, sys
link = socket.socket(fileno=3)
how = open("how").read().strip()
def send(kind, body):
    link.sendall(struct.pack("<II", kind, len(body)) + body)
if how == "mute":
    sys.exit(0)
version = "9.9" if how == "old" else open("version").read().strip()
send(0, version.encode() + b"\0" + b"1.10")
def receive(size):
    got = b""
    while len(got) < size:
        got += link.recv(size - len(got))
    return got
receive(struct.unpack("<II", receive(8))[1])
if how == "crash":
    os.kill(os.getpid(), signal.SIGSEGV)
if how == "slow":
    os.kill(os.getpid(), signal.SIGPROF)
if how == "long":
    link.sendall(struct.pack("<II", 17, 0xffffffff))
if how == "far":
    send(12, struct.pack("<QI", 1 << 60, 100))
if how == "data":
    send(16, b"x" * 100)
if how == "text":
    send(17, struct.pack("<iI", -8, 1000) + b"abc")
if how == "write":
    send(13, struct.pack("<Q", 0) + b"overwritten")
sys.exit(0)
PY
chmod +x bad/coffer-hdf5
coffer --version | sed -n '1s/^coffer //p' >version
cp "$h5/truth.h5" in.h5
for how in crash slow hangup long far data text write old mute; do
    echo "-- $how"
    echo $how >how
    COFFER_MODULE_PATH=$PWD/bad coffer convert in.h5 out.pycauset >said 2>&1
    echo "exit $?"
    sed 's/Coffer [0-9.]*/Coffer VERSION/' said
    rm said
done
cmp in.h5 "$h5/truth.h5"
echo "nothing is left"
ls -A
