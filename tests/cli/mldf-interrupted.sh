# Ctrl-C while a set is packed: what is there is gone on with, to the same bytes. While it is changed: it is as it was, or as it
# should be, and nothing is left beside it.
python3 - <<'END'
import json, os, signal, subprocess, time

with open("list.jsonl", "w") as file:
    for i in range(60000):
        file.write('{"n": %d, "text": "%s"}\n' % (i, "word %d " % i * 20))
subprocess.run(["coffer", "pack", "list.jsonl", "whole.mldf", "--zstd"], check=True, stdout=subprocess.DEVNULL)
whole = open("whole.mldf", "rb").read()


def interrupt(words, pause):
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    time.sleep(pause)
    process.send_signal(signal.SIGINT)
    said = process.stderr.read().decode()
    return process.wait(), said


pack = ["coffer", "pack", "list.jsonl", "out.mldf", "--zstd"]
told = 0
for pause in 0.02, 0.05, 0.1, 0.2, 0.4:
    status, said = interrupt(pack, pause)
    assert status in (0, 3, -signal.SIGINT), (status, said)
    assert (status == 0) == os.path.exists("out.mldf"), (status, os.listdir())
    told += "--resume" in said
    if status != 0:
        left = sorted(set(os.listdir()) - {"list.jsonl", "whole.mldf"})
        assert left in ([], ["out.mldf.partial", "out.mldf.partial-rows"]), left
        subprocess.run(pack + ["--resume"], check=True, stdout=subprocess.DEVNULL)
    assert open("out.mldf", "rb").read() == whole, pause
    os.unlink("out.mldf")
print("packing was interrupted: it went on to the same bytes, nothing is left behind")

tasks = {
    "append": ["coffer", "append", "set.mldf", "whole.mldf"],
    "delete": ["coffer", "delete", "set.mldf", "5..40000"],
    "set --add-field": ["coffer", "set", "set.mldf", "--add-field", "note:json?"],
    "compact": ["coffer", "compact", "set.mldf"],
}
counts = {"append": 120000, "delete": 20005, "set --add-field": 60000, "compact": 60000}
for name, words in tasks.items():
    for pause in 0.005, 0.02, 0.05, 0.1, 0.2:
        open("set.mldf", "wb").write(whole)
        status, said = interrupt(words, pause)
        assert status in (0, 3, -signal.SIGINT), (name, status, said)
        left = set(os.listdir()) - {"list.jsonl", "whole.mldf", "set.mldf"}
        assert not left, (name, left)
        check = subprocess.run(["coffer", "check", "--full", "--json", "set.mldf"], stdout=subprocess.PIPE)
        assert check.returncode == 0, (name, check.stdout)
        info = subprocess.run(["coffer", "info", "--json", "set.mldf"], stdout=subprocess.PIPE).stdout
        samples = json.loads(info)["samples"]
        assert samples in (60000, counts[name]), (name, samples)
        if open("set.mldf", "rb").read() != whole:
            assert samples == counts[name], name
    print(name, "was interrupted: the set is whole, nothing is left behind")
END
echo "# a full disk"
coffer get whole.mldf text >/dev/full 2>errors
echo "exit $?"
sed "s/no incomplete file.*/…/" errors
coffer get whole.mldf text | head -n 1 | cut -c 1-20
coffer order whole.mldf | head -n 1 >/dev/null
