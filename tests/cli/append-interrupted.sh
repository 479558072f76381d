# Ctrl-C while a file grows: it is as it was, or has everything; no journal is left, and the signal is told.
python3 - <<'END'
import signal, struct, subprocess, time, os
def npy(path, count):
    descr = "{'descr': [('token_idx','<u4'),('param_id','<u2'),('block_idx','<u2'),('activation','<u2'),('grad_norm','<u2')], 'fortran_order': False, 'shape': (%d,), }" % count
    head = descr.ljust(64 * 4 - 11) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\1\0" + struct.pack("<H", len(head)) + head.encode())
        for token in range(count // 100):
            file.write(struct.pack("<IHHHH", token, 0, 0, 1, 2) * 100)
npy("more.npy", 3000000)
npy("small.npy", 100)
for name in "more", "small":
    subprocess.run(["coffer", "convert", name + ".npy", name + ".mscan"], check=True)
before = open("small.mscan", "rb").read()
interrupted = 0
for pause in 0.01, 0.02, 0.05, 0.1, 0.2:
    open("grown.mscan", "wb").write(before)
    process = subprocess.Popen(["coffer", "append", "grown.mscan", "more.mscan"], stdout=subprocess.DEVNULL)
    time.sleep(pause)
    process.send_signal(signal.SIGINT)
    status = process.wait()
    if status == 0:
        continue
    assert status == -signal.SIGINT, status
    leftovers = [name for name in os.listdir() if "grown" in name and name != "grown.mscan"]
    assert leftovers == [], leftovers
    size = os.path.getsize("grown.mscan")
    assert size == len(before) or size > 36000000, size
    interrupted += 1
print("interrupted" if interrupted else "never interrupted")
END
