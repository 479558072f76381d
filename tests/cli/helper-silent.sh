# A malicious file that controls a helper program cannot make the command wait: not by refusing to end, not by sending nonsense.
mkdir modules
cat >modules/coffer-hdf5 <<'END'
#!/usr/bin/env python3
import os, signal, socket, struct, sys
link = socket.socket(fileno=3)
version = os.environ["VERSION"].encode() + b"\0" + b"1.0\0"
link.sendall(struct.pack("<II", 0, len(version)) + version)
link.recv(8)
if os.environ["MODE"] == "long":
    link.sendall(struct.pack("<II", 1, 0xffffffff))
elif os.environ["MODE"] == "unknown":
    link.sendall(struct.pack("<II", 999, 0))
elif os.environ["MODE"] == "ends":
    sys.exit(0)
elif os.environ["MODE"] == "crashes":
    os.kill(os.getpid(), signal.SIGSEGV)
signal.signal(signal.SIGTERM, signal.SIG_IGN)
while True:
    signal.pause()
END
chmod +x modules/coffer-hdf5
VERSION=$(coffer --version | sed -n 's/^coffer //p')
export VERSION COFFER_MODULE_PATH="$PWD/modules"
set -- "$DATA"/hdf5/*.h5
for MODE in long unknown ends crashes; do
    export MODE
    timeout 20 coffer info "$1" 2>&1 | sed 's|^coffer: [^:]*: ||'
done
