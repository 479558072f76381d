# A file that changes between an interrupted pack and its resumption is packed again.
PYTHONPATH=$DATA/cli python3 - <<'END'
import json, os, subprocess
from interrupt import interrupt, points

os.mkdir("texts")
def write(i, text):
    with open("texts/%04d.txt" % i, "w") as file:
        file.write(text)
def restore():
    for i in range(60):
        write(i, "text %04d" % i * 8000)
    with open("list.jsonl", "w") as file:
        for i in range(60):
            file.write('{"n": %d, "text": "texts/%04d.txt"}\n' % (i, i))
    os.utime("list.jsonl", (1, 1))
def values():
    out = subprocess.run(["coffer", "get", "set.mldf", "--field", "text", "--json"], stdout=subprocess.PIPE, check=True).stdout
    return json.loads(out)

restore()
for name in "texts", "list.jsonl":
    pack = ["pack", name, "set.mldf"]
    where = points(pack, 120)
    os.unlink("set.mldf")
    # Interrupted as late as possible.
    def interrupt_late():
        while not os.path.exists("set.mldf.partial"):
            if os.path.exists("set.mldf"):
                os.unlink("set.mldf")
            interrupt(pack, where[-1])
            if not os.path.exists("set.mldf.partial"):
                where.pop()
    def run(change):
        restore()
        interrupt_late()
        assert os.path.exists("set.mldf.partial"), os.listdir()
        change()
        done = json.loads(subprocess.run(["coffer"] + pack + ["--resume", "--json"], stdout=subprocess.PIPE, check=True).stdout)
        found = values()
        os.unlink("set.mldf")
        return done, found
    done, found = run(lambda: None)
    assert done["resumed"] > 20 and "changed_since" not in done, done
    done, found = run(lambda: os.utime("texts/0005.txt", (5, 5)))
    assert done["resumed"] > 20 and "changed_since" not in done, done
    print(name + ": nothing has changed: resumed; a new time alone does not count")
    for i in 0, 20:
        done, found = run(lambda: write(i, "TEXT %04d" % i * 8000))
        assert done["resumed"] <= i and "changed_since" in done, done
        assert [n for n, text in enumerate(found) if text != "text %04d" % n * 8000] == [i], i
        assert found[i] == "TEXT %04d" % i * 8000
        print(name + ": file %d has changed: %s" % (i, done["changed_since"]))
END
