# Ctrl-C during split leaves all parts or none, and files that were there before are not lost.
PYTHONPATH=$DATA/cli python3 - <<'END'
import os, subprocess
from interrupt import interrupt, points

with open("list.jsonl", "w") as file:
    for i in range(3000):
        file.write('{"n": %d, "text": "%s"}\n' % (i, "word %d " % i * 20))
subprocess.run(["coffer", "convert", "list.jsonl", "all.mldf"], check=True)
before = set(os.listdir())
split = ["split", "all.mldf", "--parts", "train=0.5,val=0.3,test=0.2"]
parts = {"all-train.mldf", "all-val.mldf", "all-test.mldf"}
none = all_parts = 0
for point in points(split):
    for name in parts & set(os.listdir()):
        os.unlink(name)
    status, said = interrupt(split, point)
    left = set(os.listdir()) - before
    assert left in (set(), parts), (point, status, left)
    none += left == set()
    all_parts += left == parts
assert none and all_parts, (none, all_parts)
print("all parts or none")

for name in parts & set(os.listdir()):
    os.unlink(name)
open("all-test.mldf", "w").write("mine")
done = subprocess.run(["coffer"] + split, capture_output=True, text=True)
print(done.returncode, done.stderr, end="")
print(sorted(set(os.listdir()) - before), open("all-test.mldf").read())
END
