# Ctrl-C while a set is packed: the pack can be resumed, to the same bytes. While it is changed: it has the old content or
# all of the new one, and no other file is left.
PYTHONPATH=$DATA/cli python3 - <<'END'
import json, os, subprocess
from interrupt import interrupt, points

with open("list.jsonl", "w") as file:
    for i in range(12000):
        file.write('{"n": %d, "text": "%s"}\n' % (i, "word %d " % i * 120))
subprocess.run(["coffer", "pack", "list.jsonl", "whole.mldf", "--zstd"], check=True, stdout=subprocess.DEVNULL)
whole = open("whole.mldf", "rb").read()

pack = ["pack", "list.jsonl", "out.mldf", "--zstd"]
where = points(pack)
os.unlink("out.mldf")
resumable = finished = 0
for point in where:
    status, said = interrupt(pack, point)
    assert (status == 0) == os.path.exists("out.mldf"), (point, status, os.listdir())
    finished += status == 0
    if status != 0:
        left = sorted(set(os.listdir()) - {"list.jsonl", "whole.mldf"})
        assert left in ([], ["out.mldf.partial", "out.mldf.partial-rows"]), (point, left)
        assert ("--resume" in said) == (left != []), (point, said)
        resumable += left != []
        subprocess.run(["coffer"] + pack + ["--resume"], check=True, stdout=subprocess.DEVNULL)
    assert open("out.mldf", "rb").read() == whole, point
    os.unlink("out.mldf")
assert resumable and finished, (resumable, finished)
print("packing was interrupted: it was resumed to the same bytes, nothing is left")

def inode_of(path):
    return os.stat(path).st_ino

tasks = {
    "append": ["append", "set.mldf", "whole.mldf"],
    "delete": ["delete", "set.mldf", "5..4000"],
    "set --add-field": ["set", "set.mldf", "--add-field", "note:json?"],
    "compact": ["compact", "set.mldf"],
}
counts = {"append": 24000, "delete": 8005, "set --add-field": 12000, "compact": 12000}
for name, words in tasks.items():
    open("set.mldf", "wb").write(whole)
    for point in points(words, 16):
        open("set.mldf", "wb").write(whole)
        inode = inode_of("set.mldf")
        status, said = interrupt(words, point)
        left = set(os.listdir()) - {"list.jsonl", "whole.mldf", "set.mldf"}
        assert not left, (name, point, left)
        check = subprocess.run(["coffer", "check", "--full", "--json", "set.mldf"], stdout=subprocess.PIPE)
        assert check.returncode == 0, (name, point, check.stdout)
        info = subprocess.run(["coffer", "info", "--json", "set.mldf"], stdout=subprocess.PIPE).stdout
        samples = json.loads(info)["samples"]
        assert samples in (12000, counts[name]), (name, point, samples)
        changed = open("set.mldf", "rb").read() != whole
        if changed:
            assert samples == counts[name], (name, point)
        done = changed if name != "compact" else inode_of("set.mldf") != inode
        assert done == (status == 0), (name, point, status)
    print(name, "was interrupted: the set is intact, nothing is left")
END
echo "# a full disk"
coffer get whole.mldf text >/dev/full 2>errors
echo "exit $?"
sed "s/no incomplete file.*/…/" errors
coffer get whole.mldf text | head -n 1 | cut -c 1-20
coffer order whole.mldf | head -n 1 >/dev/null
