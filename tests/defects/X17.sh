# append and split leave nothing behind: not after an error, and not after a signal.
PYTHONPATH=$DATA/cli python3 - <<'END'
import os, subprocess
from interrupt import interrupt, points

with open("list.jsonl", "w") as file:
    for i in range(300):
        file.write('{"n": %d, "text": "%s"}\n' % (i, "word %d " % i * 2000))
with open("bad.jsonl", "w") as file:
    file.write(open("list.jsonl").read() + '{"n": 7, "text": \n')
with open("other.jsonl", "w") as file:
    file.write('{"n": 1, "picture": "none.png"}\n')
subprocess.run(["coffer", "pack", "list.jsonl", "set.mldf"], check=True, stdout=subprocess.DEVNULL)
whole = open("set.mldf", "rb").read()
inputs = {"list.jsonl", "bad.jsonl", "other.jsonl", "set.mldf"}

for name in "bad.jsonl", "other.jsonl":
    done = subprocess.run(["coffer", "append", "set.mldf", name], stderr=subprocess.PIPE, text=True)
    assert done.returncode != 0, done
    assert set(os.listdir()) == inputs, os.listdir()
    assert open("set.mldf", "rb").read() == whole
    print("append of %s: nothing is left" % name)

for words in ["append", "set.mldf", "list.jsonl"], ["split", "set.mldf", "--every", "100"]:
    where = points(words, 16)
    for name in set(os.listdir()) - inputs:
        os.unlink(name)
    for point in where:
        open("set.mldf", "wb").write(whole)
        status, said = interrupt(words, point)
        left = set(os.listdir()) - inputs
        if words[0] == "split": # its finished parts are another matter
            assert left <= {"set-00000.mldf", "set-00001.mldf", "set-00002.mldf"}, (point, left)
        else:
            assert not left, (point, left)
        for name in left:
            os.unlink(name)
    print(words[0] + " was interrupted: no partial or temporary file is left")
END
